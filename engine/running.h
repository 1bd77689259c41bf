/* SPDX-License-Identifier: Apache-2.0 */
/* An execution that runs, for its starter: the answers to what its script asks, and what it uses.
 * None of these calls a callback of the watcher.
 */
#ifndef ENGINE_RUNNING_H
#define ENGINE_RUNNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

struct execution;

/* The answer to the open prompt: a line of UTF-8 without NUL or line break, at most 4 *
 * ANSWER_CHARACTERS bytes; NULL: there is none, and the script gets EOFError. Does nothing if no
 * prompt is open. */
void execution_answer_prompt(struct execution *execution, const char *line, size_t len);

/* The answer for the module that was asked for last. environment: the name of a set of packages in
 * the store that has the module; NULL: there is none. The set is mounted in place of the earlier
 * one. Does nothing if no module was asked for. */
void execution_answer_module(struct execution *execution, const char *environment);

/* The answer to a call of a tool. body: JSON with TOOL_RETURNED and TOOL_RAISED, otherwise a
 * sentence; UTF-8 without NUL, at most TOOL_RESULT_MAX bytes. Does nothing if the call is not open.
 */
void execution_answer_tool(struct execution *execution, uint32_t number, enum tool_status status,
			   const char *body, size_t len);

/* To be called when a call of a tool is sent to its server: a call that was not sent had no effect.
 * reads: the server says that the tool changes nothing. */
void execution_begin_tool(struct execution *execution, uint32_t number, bool reads);

/* Says whether a person is being asked about a call of a tool. While awaits is true, the wall clock
 * is stopped, in total for consent_ms at most. */
void execution_await_consent(struct execution *execution, bool awaits);

/* The resources that a running execution uses. */
struct execution_now {
	uint64_t cpu_ms;	/* since its start */
	uint64_t memory_bytes;	/* now; without a controller the highest sampled value */
};

/* False: it does not run. */
bool execution_uses(struct execution *execution, struct execution_now *now_r);

#endif
