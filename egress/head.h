/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the head of a request to a proxy strictly, and writes a new one for the origin. Parses the
 * head of an origin's answer in the same way. Pure.
 *
 * The value of a header in a request can contain {{secret:NAME}}: the proxy puts a secret there.
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
	struct head_part place;		/* {{secret:NAME}}, or an incomplete form of it */
	struct head_part name;		/* NAME */
};

struct head {
	struct network_target target;
	size_t len;		/* bytes of the head */
	bool connect;		/* CONNECT: a tunnel; otherwise a request in absolute form */
	enum head_body body;
	uint64_t body_len;	/* of HEAD_BODY_LENGTH */
	/* Positions in the bytes that were parsed. */
	size_t method_len, path, path_len;
	struct head_secret secret[HEAD_SECRETS_MAX];
	size_t n_secrets;
};

/* Parses a head at the start of bytes. 1: *head_r is filled in; 0: more bytes are needed; or the
 * negative status of the answer: -400, -431 (too large, or too many secrets), -501 (not supported).
 */
int head_parse(const char *bytes, size_t len, struct head *head_r);

/* Makes the head for the origin from a request in absolute form. It has the path, the target as
 * Host, "Connection: close", and the other lines that are meant for the origin. values: the values
 * of head->secret, which replace their places; without secrets it may be NULL. A request with
 * secrets goes over TLS; its head asks the origin not to compress, and not to wait for the body.
 * malloc'ed; NULL: out of memory. */
char *head_for_origin(const struct head *head, const char *bytes, const char *const *values,
		      size_t *len_r);

/* ---- answers ---- */

struct head_answer {
	size_t len;			/* bytes of the head */
	unsigned int status;
	enum head_body body;		/* HEAD_BODY_NONE: the end of the connection ends it */
	uint64_t body_len;
	bool is_encoded;		/* its Content-Encoding is not identity */
};

/* As head_parse(), for an answer. 1; 0; or -502: it is not a valid head, or exceeds the bounds. */
int head_parse_answer(const char *bytes, size_t len, struct head_answer *head_r);

/* Makes the head for the script: "Connection: close", and the lines that are about the answer
 * itself, without those about the connection to the origin. malloc'ed; NULL: out of memory. */
char *head_for_script(const struct head_answer *head, const char *bytes, size_t *len_r);

/* ---- bodies ---- */

/* The position in a body. The form of a chunked body is parsed to find its end; it is not changed.
 */
struct head_body_state {
	enum head_body kind;
	unsigned int at;	/* in a chunked body: the current part of the syntax */
	uint64_t left;		/* bytes that are left of the body, or of the current chunk */
	size_t line;		/* bytes of the current line of a chunked body */
};

/* Begins a body. len: with HEAD_BODY_LENGTH. */
void head_body_begin(struct head_body_state *state, enum head_body kind, uint64_t len);

/* How many of the next bytes are content, and not part of the chunks' syntax. 0: the next byte is
 * not content. */
uint64_t head_body_content(const struct head_body_state *state);

/* Finds how many of the bytes belong to the body: *taken_r; *over_r: the body ends with them. 0; or
 * -400: it is not a valid body. */
int head_body_take(struct head_body_state *state, const char *bytes, size_t len,
		   size_t *taken_r, bool *over_r);

#endif
