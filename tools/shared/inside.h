/* SPDX-License-Identifier: Apache-2.0 */
/* Probes: questions that only an interpreter can answer. A program of the service runs in a jailed
 * worker, as an execution of the tenant who asked; its trailing expression is the answer. The
 * answer is a stranger's data, and the module that reads it checks it.
 */
#ifndef TOOLS_SHARED_INSIDE_H
#define TOOLS_SHARED_INSIDE_H

#include <stddef.h>

#include <jansson.h>

#include "mcp/tool.h"

#define INSIDE_WALL_MS 15000	/* at most; less when the standard limit is less */

struct inside;

/* Whether a program may ask which tools other servers have. */
enum inside_lists {
	LISTS_NONE,
	LISTS_NOW,		/* those that are known now */
	LISTS_AWAITED,		/* a server that is just being started is waited for */
};

struct inside_probe {
	const char *program;		/* Python, ends with NUL */
	const char *input;		/* its standard input */
	size_t input_len;
	const char *profile;
	/* The rest is for programs that do more than answer a question. */
	const char *argument;		/* argv[1]; NULL: none */
	const struct limits *limits;	/* NULL: the standard ones, INSIDE_WALL_MS at most */
	const int *channel;		/* as execution_request has these two */
	const struct config_network *network;
	enum inside_lists lists;
	/* Output as it comes, to answered's arg; NULL: of no interest. */
	void (*on_output)(void *arg, enum stream stream, const char *bytes, size_t len);
};

/* answer: an object (borrowed), or NULL when there is none, and outcome says why; its
 * status may then be anything, ok too when what was said is no object. */
typedef void inside_answered(void *arg, const json_t *answer, const struct outcome *outcome);

/* Asks; answered is called once from a later turn of the loop, after which the result is
 * gone; with lists, the host stays until then. 0, or what execution_start returns, with why_r
 * filled. */
int inside_ask(const struct tool_host *host, const struct inside_probe *probe,
	       inside_answered *answered, void *arg, struct inside **inside_r,
	       struct why *why_r);

/* Asks for a run that is nothing but its question; run is its arg, and malloc'd. run, or NULL: the
 * host was told why, and run is freed. */
struct tool_run *inside_run(const struct tool_host *host, const struct inside_probe *probe,
			    inside_answered *answered, struct tool_run *run,
			    struct inside **inside_r);

/* The caller waits no longer; answered is not called. */
void inside_cancel(struct inside *inside, enum cancel_reason reason);

#endif
