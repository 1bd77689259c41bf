/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the messages of the service. No I/O. */
#ifndef CLIENT_REPLY_H
#define CLIENT_REPLY_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

enum reply_kind {
	REPLY_OUTPUT,  /* a piece of the script's output, before the answer */
	REPLY_PROGRESS, /* a step before the script runs, such as a package that is loaded: text */
	REPLY_OTHER,   /* a notification that is ignored */
	REPLY_PROMPT, /* a request of the service, elicitation/create: message */
	REPLY_WITHDRAWN, /* notifications/cancelled, perhaps about a question: message */
	REPLY_OUTCOME, /* the answer about a script, which was run or was not */
	REPLY_STRUCTURED, /* the answer of a tool that runs no script: outcome has no status */
	REPLY_RESOURCE, /* the answer with the contents of a resource: result */
	REPLY_REFUSED, /* the answer that the call was not accepted; text says why */
};

enum reply_stream { REPLY_STDOUT, REPLY_STDERR, REPLY_STREAMS };

struct reply {
	enum reply_kind kind;
	json_t *message;	  /* owned (reply_free); the members below point into it */
	enum reply_stream stream; /* REPLY_OUTPUT */
	uint64_t offset;	  /* REPLY_OUTPUT: bytes of this stream before the piece */
	const char *text;	  /* REPLY_OUTPUT, REPLY_PROGRESS, REPLY_REFUSED */
	size_t text_len;
	json_t *outcome; /* REPLY_OUTCOME, REPLY_STRUCTURED: structuredContent */
	json_t *result;	 /* REPLY_OUTCOME, REPLY_REFUSED: the result, or NULL */
};

/* Parses one line, without its newline. id: of the request that waits for its answer, at least 1;
 * it is also the progress token. A message that belongs to a request with a lower id gives
 * REPLY_OTHER. 0; or -EBADMSG: the message is not allowed here, and *reply_r is unchanged. */
int reply_parse(const char *line, size_t len, int id, struct reply *reply_r);

void reply_free(struct reply *reply);

/* The text of a string member; NULL: the member is absent, or is not a string. len_r may be NULL.
 */
const char *reply_string(const json_t *object, const char *key, size_t *len_r);

#endif
