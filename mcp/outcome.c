/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: copies of answers.
 * All texts of a copy are in one block of memory, so its size is known, and one free() releases it.
 */
#include "mcp/outcome.h"

#include "base/xalloc.h"
#include "mcp/tool.h"

struct mcp_outcome {
	bool failed;
	struct tool_answer answer;
	struct tool_failure failure;
	struct content *content;
	size_t bytes;
	char *text;		/* the block; the members above point into it */
};

/* Each copy takes two passes: the first counts bytes (without memory), the second copies. */
struct copier {
	char *to;
	size_t len;
};

static void
outcome_copy_bytes(struct copier *copier, const void **at, size_t len)
{
	if (!*at)
		return;
	if (copier->to) {
		memcpy(copier->to + copier->len, *at, len);
		copier->to[copier->len + len] = '\0';
		*at = copier->to + copier->len;
	}
	copier->len += len + 1;
}

static void
outcome_copy_text(struct copier *copier, const char **at)
{
	outcome_copy_bytes(copier, (const void **)at, *at ? strlen(*at) : 0);
}

static void
copy_block(struct copier *copier, struct content *block)
{
	outcome_copy_bytes(copier, (const void **)&block->text, block->text_len);
	outcome_copy_bytes(copier, &block->data, block->data_len);
	outcome_copy_text(copier, &block->mime_type);
	outcome_copy_text(copier, &block->uri);
	outcome_copy_text(copier, &block->name);
	outcome_copy_text(copier, &block->title);
	outcome_copy_text(copier, &block->description);
	outcome_copy_text(copier, &block->role);
}

static void
copy_all(struct copier *copier, struct mcp_outcome *outcome)
{
	struct tool_answer *answer = &outcome->answer;

	outcome_copy_bytes(copier, (const void **)&answer->structured, answer->structured_len);
	outcome_copy_bytes(copier, (const void **)&answer->text, answer->text_len);
	for (size_t i = 0; i < answer->n_content; i++)
		copy_block(copier, &outcome->content[i]);
	outcome_copy_text(copier, &outcome->failure.text);
	outcome_copy_text(copier, &outcome->failure.data);
}

struct mcp_outcome *
mcp_outcome_new(const struct tool_answer *answer, const struct tool_failure *failure)
{
	struct mcp_outcome *outcome = xcalloc(1, sizeof(*outcome));
	struct copier copier = { .to = NULL };

	outcome->failed = failure;
	if (failure)
		outcome->failure = *failure;
	else
		outcome->answer = *answer;
	outcome->content = xcalloc(outcome->answer.n_content, sizeof(*outcome->content));
	for (size_t i = 0; i < outcome->answer.n_content; i++)
		outcome->content[i] = answer->content[i];
	outcome->answer.content = outcome->content;
	copy_all(&copier, outcome);
	outcome->bytes = copier.len + sizeof(*outcome) +
			 outcome->answer.n_content * sizeof(*outcome->content);
	outcome->text = xrealloc(NULL, copier.len);
	copier = (struct copier){ .to = outcome->text };
	copy_all(&copier, outcome);
	return outcome;
}

void
mcp_outcome_free(struct mcp_outcome *outcome)
{
	if (!outcome)
		return;
	free(outcome->content);
	free(outcome->text);
	free(outcome);
}

void
mcp_outcome_read(const struct mcp_outcome *outcome, const struct tool_answer **answer_r,
		 const struct tool_failure **failure_r, size_t *bytes_r)
{
	*answer_r = outcome->failed ? NULL : &outcome->answer;
	*failure_r = outcome->failed ? &outcome->failure : NULL;
	if (bytes_r)
		*bytes_r = outcome->bytes;
}
