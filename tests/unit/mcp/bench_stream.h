/* SPDX-License-Identifier: Apache-2.0 */
/* An MCP stream over the fake engine for tests: feed it lines, look at what it sends. */
#ifndef TESTS_UNIT_MCP_BENCH_STREAM_H
#define TESTS_UNIT_MCP_BENCH_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

struct bench;

struct catalog;
struct config;

struct bench *bench_new(void);

/* As bench_new, with a catalog of the test's own, and with values of the configuration changed
 * by adjust; both may be NULL. */
struct bench *bench_new_with(const struct catalog *catalog, void (*adjust)(struct config *));

/* One more stream of the same server, for another user. To be freed before the first one. */
struct bench *bench_beside(struct bench *bench, unsigned int uid);

void bench_free(struct bench *bench);

void bench_line(struct bench *bench, const char *text, size_t len);
void bench_say(struct bench *bench, const char *text);	/* ends with NUL */

/* Runs the loop until n more lines were sent, at most 5 s; fails the test otherwise. */
void bench_wait(struct bench *bench, size_t n);

/* Runs what is due now. */
void bench_turn(struct bench *bench);

/* bench_unread: the number of lines that were sent and not returned by bench_next. bench_next: the
 * next line, without its newline, valid until the next call. NULL: there is none. */
size_t bench_unread(const struct bench *bench);
const char *bench_next(struct bench *bench);

/* The next line, parsed. The test fails if there is none. The caller calls json_decref(). */
json_t *bench_next_json(struct bench *bench);

/* Does the handshake for this revision, and drops the answer. */
void bench_initialize(struct bench *bench, const char *revision);

/* As bench_initialize, for a client with these capabilities: a JSON object. */
void bench_initialize_as(struct bench *bench, const char *revision,
			 const char *capabilities);

/* The client shuts its writing side. */
void bench_end_input(struct bench *bench);

/* The client is gone; bench_free is still to be called. */
void bench_hang_up(struct bench *bench);

/* Calls are refused if calls in flight have so many bytes. At first there is no bound. */
void bench_set_held_most(struct bench *bench, size_t bytes);

/* Reports that a resource of the stream's tenant has changed. */
void bench_resource_changed(struct bench *bench, const char *uri);

size_t bench_in_flight(const struct bench *bench);
unsigned int bench_idle_calls(const struct bench *bench);

#endif
