/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the service's messages: from text to a struct, without I/O. */
#ifndef CLIENT_REPLY_H
#define CLIENT_REPLY_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

enum reply_kind {
	REPLY_OUTPUT,  /* a piece of the script's output, before the answer */
	REPLY_OTHER,   /* a notification that is ignored */
	REPLY_PROMPT, /* a request of the service, elicitation/create, in message */
	REPLY_WITHDRAWN, /* a notification, perhaps about a question, in message */
	REPLY_OUTCOME, /* the answer about a script, whether it was run or not */
	REPLY_STRUCTURED, /* the answer of a tool that runs nothing: outcome has no status */
	REPLY_RESOURCE, /* the answer: contents of a resource, in result */
	REPLY_REFUSED, /* the answer: the call was not accepted; text says why */
};

enum reply_stream { REPLY_STDOUT, REPLY_STDERR, REPLY_STREAMS };

struct reply {
	enum reply_kind kind;
	json_t *message;	  /* owned (reply_free); the members below point into it */
	enum reply_stream stream; /* REPLY_OUTPUT */
	uint64_t offset;	  /* REPLY_OUTPUT: bytes of this stream before it */
	const char *text;	  /* REPLY_OUTPUT, REPLY_REFUSED */
	size_t text_len;
	json_t *outcome; /* REPLY_OUTCOME, REPLY_STRUCTURED: structuredContent */
	json_t *result;	 /* REPLY_OUTCOME, REPLY_REFUSED: the result, or NULL */
};

/* Parses one line, without its end, while the request with this id (from 1 on; also its progress
 * token) waits. A message of an earlier request, from 0 on, is REPLY_OTHER. 0; or -EBADMSG: the
 * message is not allowed here, and *reply_r is unchanged. */
int reply_parse(const char *line, size_t len, int id, struct reply *reply_r);

void reply_free(struct reply *reply);

/* A string member of an object; NULL: it is absent or something else. len_r may be NULL. */
const char *reply_string(const json_t *object, const char *key, size_t *len_r);

#endif
