/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that a script's input() asks its user for, when policy lets it and the client can
 * show forms: who may ask, what the user gets to see, what comes back. The engine does the
 * waiting (engine/execution.h), the run's host the asking (mcp/tool.h).
 */
#ifndef TOOLS_SCRIPT_SCRIPT_INPUT_H
#define TOOLS_SCRIPT_SCRIPT_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "mcp/tool.h"

/* Of one execution, embedded in the run of a tool. Zeroed: it has asked nothing. */
struct script_input {
	const char *tool;		/* its name, static */
	unsigned int number;		/* of the open question; 0: none is */
	/* A prompt that waits until another question of the run is answered; later NULL: none. */
	char *later;
	size_t later_len;
	unsigned int later_number;
};

/* What a tool's description says of it, after a sentence; "" when policy does not let it. */
const char *script_input_text(const struct config *config);

/* Lets a request ask, as far as its host lets it. */
void script_input_offer(const struct tool_host *host, struct execution_request *request);

/* Asks the user; the execution has its answer at once when they cannot be asked. As on_prompt
 * of execution_watcher. */
void script_input_ask(struct script_input *input, const struct tool_host *host,
		      struct execution *execution, unsigned int number, const char *prompt,
		      size_t len);

/* Keeps a prompt, because another question of the run is open, until script_input_ask_kept. That
 * does nothing without one. */
void script_input_keep(struct script_input *input, unsigned int number, const char *prompt,
		       size_t len);
void script_input_ask_kept(struct script_input *input, const struct tool_host *host,
			   struct execution *execution);

/* Gives the execution what the user has replied. */
void script_input_reply(struct script_input *input, const struct tool_host *host,
			struct execution *execution, const struct tool_reply *reply);

/* The execution is over, or given up: an open question is recorded as unanswered. id: of the
 * execution. */
void script_input_end(struct script_input *input, const struct tool_host *host, const char *id);

#endif
