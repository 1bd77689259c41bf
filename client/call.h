/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of tools over a connected socket. Each call has one answer. */
#ifndef CLIENT_CALL_H
#define CLIENT_CALL_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "client/reply.h"

struct options;
struct prompt;

#define CALL_LINE_MAX ((size_t)64 << 20) /* bytes of an answer, as JSON */

/* A connection. The user zeroes it and sets fd (non-blocking, borrowed); also mask and interrupted,
 * if a wait can be interrupted. call_channel_done releases it. */
struct call_channel {
	int fd;
	/* The signal mask during a wait. If a handler has set *interrupted, the wait ends with
	 * -EINTR, and nothing is lost. interrupted NULL: waits are not interrupted. */
	const sigset_t *mask;
	const volatile sig_atomic_t *interrupted;
	/* Asks the user questions of the service during a wait; call_greet must be called before.
	 * NULL: no user is asked. */
	struct prompt *prompt;
	bool takes_structured; /* REPLY_STRUCTURED is accepted as an answer */
	/* The rest belongs to call.c. */
	char *out, *in;
	size_t out_len, out_at, out_room;
	size_t in_len, in_room;
	size_t scanned; /* bytes of in that hold no line end */
};

void call_channel_done(struct call_channel *channel);

/* Opens a session by a handshake. In a session the questions of the service are requests, which are
 * withdrawn together with their call. Without a session each request is independent. The message is
 * only queued. */
void call_greet(struct call_channel *channel);

/* Makes a tools/call of tool; takes ownership of arguments. streams: the service sends output as it
 * arrives. The message belongs to the caller. */
json_t *call_message(const struct call_channel *channel, int id, const char *tool,
		     json_t *arguments, bool streams);

/* Makes a resources/read of uri. The message belongs to the caller. */
json_t *call_read_message(const struct call_channel *channel, int id, const char *uri);

/* Puts the limits, the profile and the volume that the command line has into arguments. */
void call_add_limits(json_t *arguments, const struct options *options);

/* Adds the packages of --with to arguments. */
void call_add_packages(json_t *arguments, const struct options *options);

/* Sets a member; takes ownership of value, which may not be NULL. */
void call_set(json_t *object, const char *key, json_t *value);

/* Queues a message, and takes ownership of it. call_wait sends it. */
void call_send(struct call_channel *channel, json_t *message);

/* Reads until the answer with this id, which must be that of the last message; earlier answers are
 * skipped. Meanwhile questions are asked, and on_output gets each piece of the output; a negative
 * result of on_output ends the wait and is returned. 0 with *answer_r, which the caller frees
 * (REPLY_OUTCOME, REPLY_REFUSED, or with takes_structured REPLY_STRUCTURED); -ECONNRESET: the
 * connection ended first; -EBADMSG: a message cannot be parsed; -EINTR; or another -errno. */
int call_wait(struct call_channel *channel, int id,
	      int (*on_output)(void *arg, const struct reply *piece), void *arg,
	      struct reply *answer_r);

/* Prints a message about an error of call_wait, and returns the exit code. */
int call_failed(int error);

#endif
