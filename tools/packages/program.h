/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the service's own Python programs for packages in a worker, with the limits for installers.
 * Output of pip becomes progress messages. After a failure it is the reason.
 */
#ifndef TOOLS_PACKAGES_PROGRAM_H
#define TOOLS_PACKAGES_PROGRAM_H

#include <stdbool.h>

#include <jansson.h>

#include "mcp/tool.h"

#define PROGRAM_WORDS_MAX 2000	/* bytes of the installer's words in a message */

struct program;

/* answer: the program's answer, an object, borrowed; NULL: the program has failed. words: the
 * installer's errors and warnings; "": none. outcome: of the execution; it has the reason of a
 * failure if words is "". */
typedef void program_ended(void *arg, const json_t *answer, const char *words,
			   const struct outcome *outcome);

struct program_request {
	const char *text;		/* Python */
	char *argument;			/* JSON for argv[1] */
	const char *profile;
	const int *channel;		/* as in struct execution_request */
	bool sealed;			/* it has no network */
};

/* Runs a program. ended is called once from a later turn of the loop. 0, or an error of
 * execution_start, with why_r. */
int program_start(const struct tool_host *host, const struct program_request *request,
		  program_ended *ended, void *arg, struct program **program_r,
		  struct why *why_r);
void program_cancel(struct program *program, enum cancel_reason reason);

#endif
