/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of a run's result, for later readers. */
#ifndef MCP_OUTCOME_H
#define MCP_OUTCOME_H

#include <stddef.h>

struct mcp_outcome;
struct tool_answer;
struct tool_failure;

/* Copies the result: one of the two is not NULL. */
struct mcp_outcome *mcp_outcome_new(const struct tool_answer *answer,
				    const struct tool_failure *failure);
void mcp_outcome_free(struct mcp_outcome *outcome);	/* NULL is fine */

/* The result: one of *answer_r and *failure_r is not NULL. Valid as long as the outcome. *bytes_r:
 * roughly its size; bytes_r may be NULL. */
void mcp_outcome_read(const struct mcp_outcome *outcome, const struct tool_answer **answer_r,
		      const struct tool_failure **failure_r, size_t *bytes_r);

#endif
