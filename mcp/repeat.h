/* SPDX-License-Identifier: Apache-2.0 */
/* Repeated calls. A client may give a call a key. If it sends the call again, because the answer
 * was lost with a connection, the call is not run a second time. It is known for a while after its
 * end (govern/ledger.h), and so is its answer, if there is room for it.
 */
#ifndef MCP_REPEAT_H
#define MCP_REPEAT_H

#include <jansson.h>

struct ledger;
struct mcp;
struct mcp_repeats;
struct mcp_run;
struct tenant;
struct tool;

enum repeat {
	REPEAT_NEW,
	REPEAT_SAME,		/* there is a run of the same call; it may have ended */
	REPEAT_OTHER,		/* another call, with other arguments, has the key */
	REPEAT_LOST,		/* the same call has begun, and its answer is not here any more */
};

/* ledger: borrowed; NULL: keys are known to this process alone. */
struct mcp_repeats *mcp_repeats_new(struct mcp *mcp, struct ledger *ledger);
void mcp_repeats_free(struct mcp_repeats *repeats);	/* NULL is fine */

/* Looks for a run of a call with this key. With REPEAT_SAME *run_r is that run, borrowed. */
enum repeat mcp_repeat_find(struct mcp_repeats *repeats, const struct tenant *tenant,
			    const struct tool *tool, const char *key,
			    const json_t *arguments, struct mcp_run **run_r);

/* Holds the run and makes it keep its result. To be called before the run starts. 0, or -errno as
 * of ledger_begin: the run must not start. */
int mcp_repeat_add(struct mcp_repeats *repeats, const char *key, const json_t *arguments,
		    struct mcp_run *run);

/* Drops a cancelled run: the next call with its key starts a new one. Does nothing if the run has
 * no key. */
void mcp_repeat_drop(struct mcp_repeats *repeats, const struct mcp_run *run);

#endif
