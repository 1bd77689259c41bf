/* SPDX-License-Identifier: Apache-2.0 */
/* The process of another MCP server, which speaks lines on its standard input and output. It runs
 * outside of every jail, and its output is hostile: lines are bounded, and so is the output that
 * waits for it. It ends with this process.
 */
#ifndef UPSTREAM_PROCESS_H
#define UPSTREAM_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <event2/event_struct.h>

#define PROCESS_LINE_MAX (16 * 1024 * 1024)	/* bytes of a line that it may write */
#define PROCESS_WAITING_MAX (16 * 1024 * 1024)	/* bytes that it has not read yet */
#define PROCESS_SAID_MAX 256			/* bytes of its last line on standard error */

struct evbuffer;
struct event_base;

struct process {
	struct event_base *base;	/* borrowed, as is argv */
	char *const *argv;
	/* Gets a line without its end, followed by NUL; the process may be ended meanwhile. */
	void (*on_line)(void *arg, char *line, size_t len);
	/* It has ended by itself, or had to be ended; text is the reason. It can be started again.
	 */
	void (*on_end)(void *arg, const char *text);
	void *arg;
	/* The rest belongs to process.c. */
	pid_t pid;			/* 0: there is none */
	int pidfd, in, out, err;	/* -1: closed */
	char *line;			/* the beginning of the next line */
	size_t len, size;
	struct evbuffer *waiting;	/* to be written */
	char said[PROCESS_SAID_MAX];	/* on standard error, last; printable ASCII */
	bool said_more;			/* said is the beginning of a line that continues */
	struct event readable, writable, says, ended;
};

/* Zeroes what belongs to process.c; the first members are set. */
void process_init(struct process *process);

/* Starts it; there must be none. 0 or -errno. */
int process_start(struct process *process);

/* Writes a line, and adds its end. 0; -ENOBUFS: too much waits; -EPIPE: there is no process. */
int process_write(struct process *process, const char *line, size_t len);

/* Kills it with all processes of its group. on_end is not called. Does nothing if there is none. */
void process_end(struct process *process);

#endif
