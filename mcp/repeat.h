/* Runs that are known by a key of their client's choice, so that a call which is sent again
 * (its answer was lost with a connection) is not run twice. Kept for a while after their
 * end, within bounds per tenant.
 */
#ifndef MCP_REPEAT_H
#define MCP_REPEAT_H

#include <jansson.h>

struct mcp;
struct mcp_repeats;
struct mcp_run;
struct tenant;
struct tool;

enum repeat {
	REPEAT_NEW,
	REPEAT_SAME,		/* the run is there, over or not */
	REPEAT_OTHER,		/* the key is taken, by a call with other arguments */
};

struct mcp_repeats *mcp_repeats_new(struct mcp *mcp);
void mcp_repeats_free(struct mcp_repeats *repeats);	/* NULL is fine */

/* *run_r is borrowed, with REPEAT_SAME. */
enum repeat mcp_repeat_find(struct mcp_repeats *repeats, const struct tenant *tenant,
			    const struct tool *tool, const char *key,
			    const json_t *arguments, struct mcp_run **run_r);

/* Holds the run, and keeps what it ends with. Before its start. */
void mcp_repeat_add(struct mcp_repeats *repeats, const char *key, const json_t *arguments,
		    struct mcp_run *run);

/* It was cancelled: a call with its key is a new one. A missing entry is fine. */
void mcp_repeat_drop(struct mcp_repeats *repeats, const struct mcp_run *run);

#endif
