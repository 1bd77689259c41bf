/* SPDX-License-Identifier: Apache-2.0 */
/* What a script writes, on the terminal or wherever it is to go. */
#ifndef CLIENT_SHOW_H
#define CLIENT_SHOW_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "client/reply.h"

/* One stream of one call. Set fd, zero the rest; show_done frees what it keeps. */
struct shown {
	int fd;
	char *bytes; /* what was printed before the answer */
	size_t len, room;
	bool has_gap; /* a piece did not follow: the answer will tell the rest */
};

/* For call_wait: arg is an array of REPLY_STREAMS, by enum reply_stream. 0 or -errno. */
int show_piece(void *arg, const struct reply *piece);

/* Prints what the answer has of the stream of this name beyond what was shown. */
int show_rest(const struct shown *s, const json_t *outcome, const char *name);

/* Prints a traceback that the script's own stderr does not have, on standard error. */
int show_traceback(const json_t *outcome);

/* Writes all of it, also when fd is non-blocking. 0 or -errno. */
int show_bytes(int fd, const char *bytes, size_t len);

void show_done(struct shown shown[REPLY_STREAMS]);

#endif
