/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the user for lines for a script's input(), if policy allows it and the client can show
 * forms. This module decides who may ask, makes the question, and takes the reply. The engine
 * (engine/execution.h) waits, and the run's host (mcp/tool.h) asks.
 */
#ifndef TOOLS_SCRIPT_SCRIPT_INPUT_H
#define TOOLS_SCRIPT_SCRIPT_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "mcp/tool.h"

/* For one execution; embedded in the run of a tool. Zeroed: it has asked nothing. */
struct script_input {
	const char *tool;		/* its name, static */
	unsigned int number;		/* of the open question; 0: none is open */
	/* A prompt that waits until another question of the run is answered; later NULL: none. */
	char *later;
	size_t later_len;
	unsigned int later_number;
};

/* A sentence for a tool's description, with a blank before it; "": policy does not allow questions.
 */
const char *script_input_text(const struct config *config);

/* Lets a request ask, if its host allows that. */
void script_input_offer(const struct tool_host *host, struct execution_request *request);

/* Asks the user; if the user cannot be asked, the execution gets its answer at once. As on_prompt
 * of execution_watcher. */
void script_input_ask(struct script_input *input, const struct tool_host *host,
		      struct execution *execution, unsigned int number, const char *prompt,
		      size_t len);

/* Keeps a prompt while another question of the run is open. script_input_ask_kept then asks it; it
 * does nothing if there is no kept prompt. */
void script_input_keep(struct script_input *input, unsigned int number, const char *prompt,
		       size_t len);
void script_input_ask_kept(struct script_input *input, const struct tool_host *host,
			   struct execution *execution);

/* Gives the user's reply to the execution. */
void script_input_reply(struct script_input *input, const struct tool_host *host,
			struct execution *execution, const struct tool_reply *reply);

/* The execution has ended or was cancelled: an open question is recorded as unanswered. id: that of
 * the execution. */
void script_input_end(struct script_input *input, const struct tool_host *host, const char *id);

#endif
