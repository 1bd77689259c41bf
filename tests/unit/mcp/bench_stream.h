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

/* The same with a catalog of the test's own, and with values of the configuration changed
 * by adjust; both may be NULL. */
struct bench *bench_new_with(const struct catalog *catalog, void (*adjust)(struct config *));

/* One more stream of the same server, of a user; freed before the first one. */
struct bench *bench_beside(struct bench *bench, unsigned int uid);

void bench_free(struct bench *bench);

void bench_line(struct bench *bench, const char *text, size_t len);
void bench_say(struct bench *bench, const char *text);	/* ends with NUL */

/* Runs the loop until n more lines were sent, at most 5 s; fails the test otherwise. */
void bench_wait(struct bench *bench, size_t n);

/* Runs what is due now. */
void bench_turn(struct bench *bench);

/* How many lines were sent that bench_next has not given, and the next of them: without
 * its newline, valid until the one after. NULL: there is none. */
size_t bench_unread(const struct bench *bench);
const char *bench_next(struct bench *bench);

/* The next line, parsed; fails the test when there is none. For the caller to decref. */
json_t *bench_next_json(struct bench *bench);

/* Shakes hands for the revision and throws the answer away. */
void bench_initialize(struct bench *bench, const char *revision);

/* The same, of a client with these capabilities: a JSON object. */
void bench_initialize_as(struct bench *bench, const char *revision,
			 const char *capabilities);

/* The client shuts its writing side. */
void bench_end_input(struct bench *bench);

/* The client is gone; bench_free is still to be called. */
void bench_hang_up(struct bench *bench);

/* From how many bytes of calls in flight on the next one is refused; no bound at first. */
void bench_set_held_most(struct bench *bench, size_t bytes);

/* As whoever provides it would: a resource of the stream's tenant has changed. */
void bench_resource_changed(struct bench *bench, const char *uri);

size_t bench_in_flight(const struct bench *bench);
unsigned int bench_idle_calls(const struct bench *bench);

#endif
