/* SPDX-License-Identifier: Apache-2.0 */
/* How requests of HTTP/1.1 follow one another: where a head ends, and where its body. evhttp takes
 * much for a head and for chunks that another server reads differently, such as one in front of
 * this one. So the bytes are checked before it sees them, and nothing passes that has two meanings:
 * lines end with CRLF, none is folded, the size of a chunk has digits and nothing else, nothing
 * follows the last chunk.
 *
 * Which length counts where a head has several is http/head.c's to refuse.
 */
#ifndef HTTP_FRAMING_H
#define HTTP_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAMING_LINE_MAX 64	/* bytes of a line that are looked at */

/* START ──line──> HEAD ──empty line──> START, BODY or SIZE;  BODY ──its bytes──> START
 * SIZE ──line──> DATA or LAST;  DATA ──its bytes──> AFTER ──empty line──> SIZE
 * LAST ──empty line──> START
 * Zeroed: START. */
struct http_framing {
	enum {
		FRAMING_START,
		FRAMING_HEAD,
		FRAMING_BODY,
		FRAMING_SIZE,
		FRAMING_DATA,
		FRAMING_AFTER,
		FRAMING_LAST,
	} state;
	uint64_t left;			/* bytes of the body or the chunk that are still to come */
	uint64_t length;		/* of the body, as the head says */
	bool chunked;
	bool cr;			/* the last byte was one */
	size_t len;			/* of the line so far, without its end */
	char line[FRAMING_LINE_MAX];
};

/* The next n bytes of the connection. NULL; or what is wrong with them (static): then the
 * connection must be closed. */
const char *http_framing_take(struct http_framing *framing, const char *bytes, size_t n);

#endif
