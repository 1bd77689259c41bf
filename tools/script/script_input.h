/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the client's user for the lines that a script reads by input(), if policy allows it and the
 * client can show forms. This module decides which script may ask, makes the question, and takes
 * the reply. The engine (engine/execution.h) waits, and the run's host (mcp/tool.h) asks.
 */
#ifndef TOOLS_SCRIPT_SCRIPT_INPUT_H
#define TOOLS_SCRIPT_SCRIPT_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "govern/audit.h"
#include "mcp/tool.h"

/* For one execution; embedded in the run of a tool. Zeroed: nothing was asked. */
struct script_input {
	const char *tool;		/* the tool's name, static */
	unsigned int number;		/* of the open question; 0: none is open */
	char *message;			/* of a question that waits for its record; NULL: none */
	struct writing_wait recorded;
	const struct tool_host *host;	/* ... its host and its execution */
	struct execution *execution;
	/* A prompt that waits until another question of the run is answered; later NULL: none. */
	char *later;
	size_t later_len;
	unsigned int later_number;
};

/* A sentence for a tool's description, with a blank before it; "": policy does not allow questions.
 */
const char *script_input_text(const struct config *config);

/* Lets the request show prompts, if policy and the host's client allow it. */
void script_input_offer(const struct tool_host *host, struct execution_request *request);

/* Asks the user. If the user cannot be asked, the execution is answered at once. The last three
 * arguments are those of on_prompt of struct execution_watcher. */
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

/* To be called when the execution has ended or was cancelled: an open question is recorded as
 * unanswered. id: the execution's. */
void script_input_end(struct script_input *input, const struct tool_host *host, const char *id);

#endif
