/* SPDX-License-Identifier: Apache-2.0 */
/* A connection for one upload (mcp-python put). Its first line is
 *
 *   PUT SIZE NAME
 *
 * which is not JSON. The answer is {"pipe":true} with a descriptor: the writing end of a pipe to
 * the file helper. The client writes SIZE bytes into it and closes it. The last line is
 * {"uri":...,"size":...,"sha256":...} or {"error":...}; an error may also come in place of the
 * first answer. Then the connection is closed. If the client closes it first, nothing is kept.
 *
 * The service sends a descriptor and accepts none. Each connection gets only one, because
 * descriptors that clients have not received count against the number that the service may have in
 * flight.
 */
#ifndef SUPERVISOR_INTAKE_H
#define SUPERVISOR_INTAKE_H

#include <stdbool.h>
#include <stddef.h>

struct intake;
struct tenant;

struct intake_options {
	struct tenant *tenant;		/* borrowed until the end */
	int socket;			/* borrowed too; no output waits in it */
	/* Passes the last line, malloc'd, which belongs to the callee. The intake is freed. May be
	 * called from within intake_new. */
	void (*on_end)(void *arg, char *line, size_t len);
	void *arg;
};

bool intake_is_asked(const char *line, size_t len);

/* NULL: it has ended. */
struct intake *intake_new(const struct intake_options *options, const char *line, size_t len);

/* The client has gone. NULL is fine. */
void intake_cancel(struct intake *intake);

#endif
