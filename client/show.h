/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a script's output to the terminal or another file. */
#ifndef CLIENT_SHOW_H
#define CLIENT_SHOW_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "client/reply.h"

/* One stream of one call. The user sets fd and zeroes the rest; show_done frees it. */
struct shown {
	int fd;
	char *bytes; /* the bytes that were printed before the answer */
	size_t len, room;
	bool has_gap; /* a piece was missing: the bytes after it are printed from the answer */
};

/* Prints a piece of output; the function for call_wait. arg: an array of REPLY_STREAMS, indexed by
 * enum reply_stream. 0 or -errno. */
int show_piece(void *arg, const struct reply *piece);

/* Prints the part of a stream in the answer that was not printed yet. name: of the stream. 0 or
 * -errno. */
int show_rest(const struct shown *s, const json_t *outcome, const char *name);

/* Prints the traceback on standard error, if the script's own stderr does not have it. */
int show_traceback(const json_t *outcome);

/* Writes all bytes, even if fd is non-blocking. 0 or -errno. */
int show_bytes(int fd, const char *bytes, size_t len);

/* Has standard output not taken all that show_bytes was given? The errno; 0: it has. */
int show_lost(void);

/* The exit code of a command that ends with code: EX_IOERR instead of 0 if standard output has not
 * taken all that was printed, which is said. */
int show_conclude(int code);

void show_done(struct shown shown[REPLY_STREAMS]);

#endif
