/* What every tool is to the MCP side: a description, and calls that end in one answer.
 *
 * A tool knows nothing of JSON-RPC, revisions or sessions; the MCP side knows nothing of
 * what a tool does. The table of tools is tools/table.c.
 */
#ifndef SUPERVISOR_TOOLS_TOOL_H
#define SUPERVISOR_TOOLS_TOOL_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "supervisor/execution.h"

struct config;
struct engine;
struct tenant;
struct tool_run;

/* Everything that a client is told of a tool; the schemas are JSON texts on one line.
 * Owned by whoever asked for it: tool_description_done. */
struct tool_description {
	const char *name;		/* static */
	const char *title;		/* static */
	char *description;		/* for a language model */
	char *input_schema;
	char *output_schema;
	bool read_only, destructive, idempotent, open_world;	/* hints to clients */
};

void tool_description_done(struct tool_description *description);

/* Valid only during on_answer. */
struct tool_answer {
	const char *structured;		/* a JSON object text that fits output_schema */
	size_t structured_len;
	const char *text;		/* the same for readers, UTF-8 */
	size_t text_len;
	bool is_error;
};

/* What one call of a tool works with, and whom it answers. */
struct tool_host {
	struct engine *engine;
	struct tenant *tenant;
	const struct config *config;
	/* Output as it comes, raw bytes. NULL: nobody is interested. */
	void (*on_output)(void *arg, enum stream stream, const char *bytes, size_t len);
	/* Once, and from then on the call is over. It may come from within start. */
	void (*on_answer)(void *arg, const struct tool_answer *answer);
	void *arg;
};

struct tool {
	const char *name;
	/* Fills *description_r from the limits in force. */
	void (*describe)(const struct config *config, struct tool_description *description_r);
	/* Starts a call; host is copied, arguments (an object) are borrowed for this call only.
	 * Returns the run, or NULL when the answer was already given. */
	struct tool_run *(*start)(const struct tool_host *host, const json_t *arguments);
	/* Ends a run that has not answered; neither callback comes any more. */
	void (*cancel)(struct tool_run *run, enum cancel_reason reason);
};

/* NULL when there is no such tool. */
const struct tool *tool_find(const char *name);

/* The i-th tool in the order in which they are listed, NULL past the last one. */
const struct tool *tool_at(size_t i);

#endif
