/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the head of a request to a proxy strictly, and writes a new one for the origin. Parses the
 * head of an origin's answer in the same way. Pure.
 *
 * The value of a request's header can contain {{secret:NAME}}, which is the place of a secret.
 */
#ifndef EGRESS_HEAD_H
#define EGRESS_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/network.h"

#define HEAD_MAX 32768		/* bytes of a head, its empty line included */
#define HEAD_LINES_MAX 128	/* header lines */
#define HEAD_SECRETS_MAX 8	/* places of secrets */

enum head_body { HEAD_BODY_NONE, HEAD_BODY_LENGTH, HEAD_BODY_CHUNKED };

/* A part of the bytes that were parsed. */
struct head_part {
	size_t at, len;
};

struct head_secret {
	struct head_part header;	/* the name of the header */
	struct head_part place;		/* {{secret:NAME}}, or an incomplete one */
	struct head_part name;
};

struct head {
	struct network_target target;
	size_t len;		/* bytes of the head */
	bool connect;		/* a tunnel; else a request in absolute form */
	enum head_body body;
	uint64_t body_len;	/* of HEAD_BODY_LENGTH */
	/* Inside the bytes that were parsed. */
	size_t method_len, path, path_len;
	struct head_secret secret[HEAD_SECRETS_MAX];
	size_t n_secrets;
};

/* Looks for a whole head at the start. 1: *head_r is filled; 0: more bytes are needed; or the
 * status of the answer, negative: -400, -431 (too large, or too many secrets), -501 (not
 * supported). */
int head_parse(const char *bytes, size_t len, struct head *head_r);

/* The head for the origin, of a request in absolute form: its path, the target as Host,
 * "Connection: close", and the other lines that are meant for the origin. values: the values of
 * head->secret, which replace their places. Such a request goes over TLS, and asks the origin not
 * to compress or to wait. Without secrets values may be NULL. malloc'ed; NULL: out of memory. */
char *head_for_origin(const struct head *head, const char *bytes, const char *const *values,
		      size_t *len_r);

/* ---- answers ---- */

struct head_answer {
	size_t len;			/* bytes of the head */
	unsigned int status;
	enum head_body body;		/* HEAD_BODY_NONE: until the connection ends */
	uint64_t body_len;
	bool is_encoded;		/* its Content-Encoding is not identity */
};

/* As head_parse(), for an answer. 1, 0, or -502: it is not a head, or exceeds the bounds. */
int head_parse_answer(const char *bytes, size_t len, struct head_answer *head_r);

/* The head for the script: "Connection: close", and the other lines that are about the answer and
 * not about the connection to the origin. malloc'ed; NULL: out of memory. */
char *head_for_script(const struct head_answer *head, const char *bytes, size_t *len_r);

/* ---- bodies ---- */

/* The position in a body. Chunked bodies are followed, not changed. */
struct head_body_state {
	enum head_body kind;
	unsigned int at;	/* in a chunked body: the part of it */
	uint64_t left;		/* bytes of the body, or of this chunk */
	size_t line;		/* bytes of the current line of a chunked body */
};

/* len: of HEAD_BODY_LENGTH. */
void head_body_begin(struct head_body_state *state, enum head_body kind, uint64_t len);

/* How many of the next bytes are content. 0: the next byte is not content. */
uint64_t head_body_content(const struct head_body_state *state);

/* How many of the bytes belong to the body; *over_r: it ends with them. -400: it is not a valid
 * body. */
int head_body_take(struct head_body_state *state, const char *bytes, size_t len,
		   size_t *taken_r, bool *over_r);

#endif
