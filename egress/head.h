/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request to a proxy: parsed strictly, and written again for its origin.
 * Pure code.
 */
#ifndef EGRESS_HEAD_H
#define EGRESS_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/network.h"

#define HEAD_MAX 32768		/* bytes of a head, its empty line included */
#define HEAD_LINES_MAX 128	/* header lines */

enum head_body { HEAD_BODY_NONE, HEAD_BODY_LENGTH, HEAD_BODY_CHUNKED };

struct head {
	struct network_target target;
	size_t len;		/* bytes of the head */
	bool connect;		/* a tunnel; else a request in absolute form */
	enum head_body body;
	uint64_t body_len;	/* of HEAD_BODY_LENGTH */
	/* Inside the bytes that were parsed. */
	size_t method_len, path, path_len;
};

/* Looks for a whole head at the start. 1: *head_r is filled; 0: more bytes are needed; or
 * the status to answer, negative: -400, -431 (too large), -501 (not spoken here). */
int head_parse(const char *bytes, size_t len, struct head *head_r);

/* The head that the origin gets, for a request in absolute form: its path, a Host that is
 * the target, "Connection: close", and of the other lines those that are meant for it.
 * malloc'ed, NULL when out of memory. */
char *head_for_origin(const struct head *head, const char *bytes, size_t *len_r);

/* ---- bodies ---- */

/* Where in a body we are; chunked ones are followed, not changed. */
struct head_body_state {
	enum head_body kind;
	unsigned int at;	/* of a chunked one: which part of it */
	uint64_t left;		/* bytes of the body, or of this chunk */
	size_t line;		/* bytes of this line of a chunked one */
};

void head_body_begin(struct head_body_state *state, const struct head *head);

/* How many of the bytes are the body's; *over_r: it ends with them. -400: not a body. */
int head_body_take(struct head_body_state *state, const char *bytes, size_t len,
		   size_t *taken_r, bool *over_r);

#endif
