/* SPDX-License-Identifier: Apache-2.0 */
/* Probes: questions that only an interpreter can answer. A program of the service runs in a jailed
 * worker, as an execution of the calling tenant. The value of its last expression is the answer.
 * The answer is hostile data; the module that has asked must check it.
 */
#ifndef TOOLS_SHARED_INSIDE_H
#define TOOLS_SHARED_INSIDE_H

#include <stddef.h>

#include <jansson.h>

#include "mcp/tool.h"

#define INSIDE_WALL_MS 15000	/* the wall time of a probe; less if the default limit is less */

struct inside;

/* May a program ask for the tools of other servers? */
enum inside_lists {
	LISTS_NONE,
	LISTS_NOW,		/* it gets the lists that are known now */
	LISTS_AWAITED,		/* it also waits for the lists of servers that are being started */
};

struct inside_probe {
	const char *program;		/* Python, ends with NUL */
	const char *input;		/* its standard input */
	size_t input_len;
	const char *profile;
	/* The following members are for programs that do more than answer a question. */
	const char *argument;		/* argv[1]; NULL: none */
	const struct limits *limits;	/* NULL: the standard ones, INSIDE_WALL_MS at most */
	const int *channel;		/* as in struct execution_request */
	const struct config_network *network;	/* as in struct execution_request */
	enum inside_lists lists;
	/* Gets output as it arrives. arg: the same as for answered. May be NULL. */
	void (*on_output)(void *arg, enum stream stream, const char *bytes, size_t len);
};

/* answer: an object, borrowed; NULL: there is none, and outcome has the reason. Without an answer
 * the status of outcome can be any; it is OUTCOME_OK if the value was not an object. */
typedef void inside_answered(void *arg, const json_t *answer, const struct outcome *outcome);

/* Asks a question. answered is called once, from a later turn of the loop; after that the question
 * is freed. If the probe has lists, host is borrowed until then. 0, or an error of execution_start,
 * with why_r. */
int inside_ask(const struct tool_host *host, const struct inside_probe *probe,
	       inside_answered *answered, void *arg, struct inside **inside_r,
	       struct why *why_r);

/* Asks a question for a run of a tool that consists only of this question. run: the arg of
 * answered, malloc'd. Returns run; or NULL: the host was answered with the error, and run is freed.
 */
struct tool_run *inside_run(const struct tool_host *host, const struct inside_probe *probe,
			    inside_answered *answered, struct tool_run *run,
			    struct inside **inside_r);

/* Drops the question: answered is not called. */
void inside_cancel(struct inside *inside, enum cancel_reason reason);

#endif
