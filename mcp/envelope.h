/* SPDX-License-Identifier: Apache-2.0 */
/* The _meta of a request's params: which era it belongs to, and its progress token. */
#ifndef MCP_ENVELOPE_H
#define MCP_ENVELOPE_H

#include <stdbool.h>

#include <jansson.h>

struct revision;

#define PROGRESS_TOKEN_MAX 1024		/* bytes as JSON text */

enum envelope_verdict {
	ENVELOPE_NONE,		/* names no revision: legacy, or malformed without a session */
	ENVELOPE_MODERN,	/* complete, with a revision that is served */
	ENVELOPE_MALFORMED,	/* text says what */
	ENVELOPE_UNSUPPORTED,	/* requested is a revision that is not served in this way */
};

/* Pointers are borrowed from the params. */
struct envelope {
	enum envelope_verdict verdict;
	const struct revision *revision;	/* with ENVELOPE_MODERN */
	const char *text;			/* with ENVELOPE_MALFORMED; static */
	const json_t *requested;		/* with ENVELOPE_UNSUPPORTED */
	const json_t *progress_token;		/* a string or an integer; NULL: none */
	bool streams;				/* wants the output itself as progress */
	const json_t *capabilities;		/* with ENVELOPE_MODERN: an object */
	const char *client;			/* its name; NULL: it did not say */
	int log_level;				/* enum log_level; -1: none asked for */
	bool has_modern_keys;			/* with ENVELOPE_NONE: it has some of the keys, but
						 * no version */
};

/* params may be NULL. */
void envelope_read(const json_t *params, struct envelope *envelope_r);

/* A string member without NUL inside; NULL: it is absent, or is something else. */
const char *text_member(const json_t *object, const char *key);

#endif
