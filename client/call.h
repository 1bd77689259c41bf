/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of tools over a connected socket, each with its one answer. */
#ifndef CLIENT_CALL_H
#define CLIENT_CALL_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "client/reply.h"

struct options;
struct prompt;

#define CALL_LINE_MAX ((size_t)64 << 20) /* of an answer, as JSON */

/* A connection. Zero it, then set fd (non-blocking, borrowed) and, if waiting is to be
 * interrupted, the two below; call_channel_done at the end. */
struct call_channel {
	int fd;
	/* With these signals' mask it waits; when a handler has set *interrupted, waiting
	 * ends with -EINTR, and nothing is lost. NULL: never. */
	const sigset_t *mask;
	const volatile sig_atomic_t *interrupted;
	/* Asks the user while it waits; call_greet comes first then. NULL: there is none. */
	struct prompt *prompt;
	bool takes_structured; /* REPLY_STRUCTURED is an answer; else it is not understood */
	/* call.c's own. */
	char *out, *in;
	size_t out_len, out_at, out_room;
	size_t in_len, in_room;
	size_t scanned; /* bytes of in that hold no line end */
};

void call_channel_done(struct call_channel *channel);

/* Opens a session, in which the service's questions come as requests, and are withdrawn with
 * the call that asks them. Without one each request is on its own. Queues only. */
void call_greet(struct call_channel *channel);

/* A tools/call of tool; takes arguments. With streams its output is told as it comes. The
 * message is the caller's. */
json_t *call_message(const struct call_channel *channel, int id, const char *tool,
		     json_t *arguments, bool streams);

/* A resources/read of uri. The message is the caller's. */
json_t *call_read_message(const struct call_channel *channel, int id, const char *uri);

/* Puts the limits, the profile and the volume that the command line has into arguments. */
void call_add_limits(json_t *arguments, const struct options *options);

/* Puts the packages of --with into arguments. */
void call_add_packages(json_t *arguments, const struct options *options);

/* Sets a member; takes value, which may not be NULL. */
void call_set(json_t *object, const char *key, json_t *value);

/* Queues a message; takes it. It goes out while call_wait waits. */
void call_send(struct call_channel *channel, json_t *message);

/* Reads until the answer with this id, which must be of what was sent last: earlier ones are
 * passed over. Questions are asked meanwhile. on_output hears of each piece of its output
 * before; a negative value from it ends the wait and is returned. Returns 0 with *answer_r
 * (REPLY_OUTCOME or REPLY_REFUSED; the caller frees it), -ECONNRESET when the connection ended
 * first, -EBADMSG when what came is not understood, -EINTR, or another -errno. */
int call_wait(struct call_channel *channel, int id,
	      int (*on_output)(void *arg, const struct reply *piece), void *arg,
	      struct reply *answer_r);

/* What a failure of call_wait means: says so, and returns the exit code. */
int call_failed(int error);

#endif
