/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the service's own Python programs for packages in a worker, with the installer's limits.
 * Output of pip becomes progress messages and, after a failure, the reason.
 */
#ifndef TOOLS_PACKAGES_PROGRAM_H
#define TOOLS_PACKAGES_PROGRAM_H

#include <stdbool.h>

#include <jansson.h>

#include "mcp/tool.h"

#define PROGRAM_WORDS_MAX 2000	/* bytes of the installer's words in a message */

struct program;

/* answer: the program's answer, an object, borrowed; NULL: it failed, and words (never NULL) are
 * the installer's own, or outcome has the reason. warnings: the installer's own too; "": none. */
typedef void program_ended(void *arg, const json_t *answer, const char *words,
			   const struct outcome *outcome);

struct program_request {
	const char *text;		/* Python */
	char *argument;			/* JSON for argv[1] */
	const char *profile;
	const int *channel;		/* as execution_request has it */
	bool sealed;			/* without a way to the index */
};

/* Runs it; ended is called once from a later turn of the loop. 0, or an error of execution_start,
 * with why_r filled. */
int program_start(const struct tool_host *host, const struct program_request *request,
		  program_ended *ended, void *arg, struct program **program_r,
		  struct why *why_r);
void program_cancel(struct program *program, enum cancel_reason reason);

#endif
