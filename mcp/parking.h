/* Runs that have asked something the modern way: the request is over, and the run waits for
 * one that brings the answers, with a sealed requestState that names it. Each state is good
 * once, for its tenant and for the same call; not taken up in time, the run is given up.
 */
#ifndef MCP_PARKING_H
#define MCP_PARKING_H

#include <stdbool.h>
#include <stddef.h>

struct mcp;
struct mcp_parking;
struct mcp_run;
struct seal_binding;
struct tenant;

struct mcp_parking *mcp_parking_new(struct mcp *mcp);
void mcp_parking_free(struct mcp_parking *parking);	/* gives up all; NULL is fine */

/* Holds the run. nothing_done: by it, so far. Returns its requestState, malloc'd; NULL: too many
 * of this tenant wait. */
char *mcp_parking_put(struct mcp_parking *parking, struct mcp_run *run, bool nothing_done,
		      const struct seal_binding *binding);

enum parked_where {
	PARKED_HERE,
	PARKED_NOWHERE,		/* the state was changed, used before, is too old, or is
				 * somebody else's */
	PARKED_BEFORE,		/* its run is gone with the process that had it, and had done
				 * nothing yet */
	PARKED_HALFWAY,		/* likewise; there is no telling what it had done */
};

/* Where is the run that a state names? PARKED_HERE: *run_r is it, with its holding passed
 * on. */
enum parked_where mcp_parking_take(struct mcp_parking *parking, const struct tenant *tenant,
				   const char *state, const struct seal_binding *binding,
				   struct mcp_run **run_r);

#endif
