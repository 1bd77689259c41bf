/* SPDX-License-Identifier: Apache-2.0 */
/* A connection for one upload (mcp-python put). Its first line is
 *
 *   PUT SIZE NAME
 *
 * which is not JSON. The answer is {"pipe":true} with a descriptor: the writing end of a pipe to
 * the file helper. The client writes SIZE bytes into the pipe and closes it. Then the service sends
 * the last line, {"uri":...,"size":...,"sha256":...} or {"error":...}, and closes the connection.
 * An error may also come in place of the first answer. If the client closes the connection first,
 * nothing is kept.
 *
 * The service sends a descriptor and accepts none. Each connection gets only one, because the
 * kernel bounds the number of descriptors that the service has sent and clients have not received.
 */
#ifndef SUPERVISOR_INTAKE_H
#define SUPERVISOR_INTAKE_H

#include <stdbool.h>
#include <stddef.h>

struct intake;
struct tenant;

struct intake_options {
	struct tenant *tenant;		/* borrowed until the end */
	int socket;			/* borrowed until the end; no output may wait in it */
	/* Passes the last line, malloc'd, which belongs to the callee. The intake is freed. May be
	 * called from within intake_new. */
	void (*on_end)(void *arg, char *line, size_t len);
	void *arg;
};

/* Is this the first line of an upload? */
bool intake_is_asked(const char *line, size_t len);

/* Begins an upload. NULL: it has ended already, and on_end was called. */
struct intake *intake_new(const struct intake_options *options, const char *line, size_t len);

/* To be called when the client has left. NULL is fine. */
void intake_cancel(struct intake *intake);

#endif
