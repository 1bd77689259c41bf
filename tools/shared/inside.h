/* SPDX-License-Identifier: Apache-2.0 */
/* Probes: questions that only an interpreter can answer. A program of the service runs in a jailed
 * worker, as an execution of the calling tenant; the value of its last expression is the answer.
 * The answer is hostile data, which the module that reads it checks.
 */
#ifndef TOOLS_SHARED_INSIDE_H
#define TOOLS_SHARED_INSIDE_H

#include <stddef.h>

#include <jansson.h>

#include "mcp/tool.h"

#define INSIDE_WALL_MS 15000	/* at most; less if the default limit is less */

struct inside;

/* May a program ask for the tools of other servers? */
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
	/* The following members are for programs that do more than answer a question. */
	const char *argument;		/* argv[1]; NULL: none */
	const struct limits *limits;	/* NULL: the standard ones, INSIDE_WALL_MS at most */
	const int *channel;		/* as in struct execution_request, like the next one */
	const struct config_network *network;
	enum inside_lists lists;
	/* Gets output as it arrives, with the arg of answered. May be NULL. */
	void (*on_output)(void *arg, enum stream stream, const char *bytes, size_t len);
};

/* answer: an object (borrowed); NULL: there is none, and outcome has the reason. In that case its
 * status can be any, even ok if the answer was not an object. */
typedef void inside_answered(void *arg, const json_t *answer, const struct outcome *outcome);

/* Asks. answered is called once from a later turn of the loop; then the question is freed. With
 * lists, host is borrowed until then. 0, or an error of execution_start, with why_r filled. */
int inside_ask(const struct tool_host *host, const struct inside_probe *probe,
	       inside_answered *answered, void *arg, struct inside **inside_r,
	       struct why *why_r);

/* Asks for a tool's run that consists only of this question; run is its arg, and malloc'd. Returns
 * run; or NULL: the host has the error, and run is freed. */
struct tool_run *inside_run(const struct tool_host *host, const struct inside_probe *probe,
			    inside_answered *answered, struct tool_run *run,
			    struct inside **inside_r);

/* Drops the question: answered is not called. */
void inside_cancel(struct inside *inside, enum cancel_reason reason);

#endif
