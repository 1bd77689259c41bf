/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that brings a file (mcp-python put), and nothing else. Its first line is
 *
 *   PUT SIZE NAME
 *
 * and no JSON. The answer is {"pipe":true} with a descriptor, the writing end of a pipe to the file
 * helper. The client writes SIZE bytes into it and closes it. Then, or instead of that, comes
 * {"uri":...,"size":...,"sha256":...} or {"error":...}, and the connection is closed. If the client
 * closes it first, nothing is kept.
 *
 * The service passes the descriptor, and takes none. It is one of each connection, because what a
 * client has not read counts against the descriptors that the service may have on their way.
 */
#ifndef SUPERVISOR_INTAKE_H
#define SUPERVISOR_INTAKE_H

#include <stdbool.h>
#include <stddef.h>

struct intake;
struct tenant;

struct intake_options {
	struct tenant *tenant;		/* borrowed until the end */
	int socket;			/* borrowed, likewise; nothing waits to be sent by it */
	/* The last line, malloc'd, the callee's. The intake is gone. May come from within
	 * intake_new. */
	void (*on_end)(void *arg, char *line, size_t len);
	void *arg;
};

bool intake_is_asked(const char *line, size_t len);

/* NULL: it has ended. */
struct intake *intake_new(const struct intake_options *options, const char *line, size_t len);

/* The client has gone. NULL is fine. */
void intake_cancel(struct intake *intake);

#endif
