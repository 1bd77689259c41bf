/* SPDX-License-Identifier: Apache-2.0 */
/* The process of another MCP server, which exchanges lines on its standard input and output. It
 * runs outside of every jail. Its output is hostile: a line is bounded, and so are the bytes that
 * wait until it reads them. It is killed when this process ends.
 */
#ifndef UPSTREAM_PROCESS_H
#define UPSTREAM_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <event2/event_struct.h>

#define PROCESS_LINE_MAX (16 * 1024 * 1024)	/* bytes of a line that it may write */
#define PROCESS_WAITING_MAX (16 * 1024 * 1024)	/* bytes that wait until it reads them */
#define PROCESS_SAID_MAX 256			/* bytes of its last line on standard error */

struct evbuffer;
struct event_base;

struct process {
	struct event_base *base;	/* borrowed */
	char *const *argv;		/* borrowed */
	/* Gets a line without its newline, followed by NUL. process_end may be called from within.
	 */
	void (*on_line)(void *arg, char *line, size_t len);
	/* The process has ended by itself, or was ended because of an error; text is the reason. It
	 * can be started again. */
	void (*on_end)(void *arg, const char *text);
	void *arg;
	/* The rest belongs to process.c. */
	pid_t pid;			/* 0: there is none */
	int pidfd, in, out, err;	/* -1: closed */
	char *line;			/* the beginning of the next line */
	size_t len, size;
	struct evbuffer *waiting;	/* to be written */
	char said[PROCESS_SAID_MAX];	/* its last line on standard error; printable ASCII */
	bool said_more;			/* said is the beginning of a line that continues */
	struct event readable, writable, says, ended;
};

/* Initializes the members that belong to process.c. The caller has set the others. */
void process_init(struct process *process);

/* Starts the process; none may be running. 0 or -errno. */
int process_start(struct process *process);

/* Writes a line and a newline. 0; -ENOBUFS: too many bytes wait; -EPIPE: there is no process. */
int process_write(struct process *process, const char *line, size_t len);

/* Kills the process and all processes of its group. on_end is not called. Does nothing if there is
 * none. */
void process_end(struct process *process);

#endif
