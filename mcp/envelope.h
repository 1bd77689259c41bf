/* SPDX-License-Identifier: Apache-2.0 */
/* The _meta of a request's params: the era that the request belongs to, and its progress token. */
#ifndef MCP_ENVELOPE_H
#define MCP_ENVELOPE_H

#include <stdbool.h>

#include <jansson.h>

struct revision;

#define PROGRESS_TOKEN_MAX 1024		/* bytes as JSON text */

enum envelope_verdict {
	ENVELOPE_NONE,		/* it names no revision: the request is legacy. Most methods then
				 * need an earlier handshake (mcp/dispatch.c) */
	ENVELOPE_MODERN,	/* it is complete, with a revision that is served */
	ENVELOPE_MALFORMED,	/* text says what is wrong */
	ENVELOPE_UNSUPPORTED,	/* it names an unknown or legacy revision; see requested */
};

/* Pointers are borrowed from the params. */
struct envelope {
	enum envelope_verdict verdict;
	const struct revision *revision;	/* with ENVELOPE_MODERN */
	const char *text;			/* with ENVELOPE_MALFORMED; static */
	const json_t *requested;		/* with ENVELOPE_UNSUPPORTED */
	const json_t *progress_token;		/* a string or an integer; NULL: none */
	bool streams;				/* the client wants the output itself as progress */
	const json_t *capabilities;		/* with ENVELOPE_MODERN: an object */
	const char *client;			/* the client's name; NULL: not given */
	int log_level;				/* enum log_level; -1: none asked for */
	bool has_modern_keys;			/* with ENVELOPE_NONE: it has some of the modern
						 * keys, but no version */
};

/* Reads the _meta of params, of any shape. params may be NULL. */
void envelope_read(const json_t *params, struct envelope *envelope_r);

/* The text of a string member without NUL inside. NULL: the member is absent, or is not such a
 * string. */
const char *text_member(const json_t *object, const char *key);

#endif
