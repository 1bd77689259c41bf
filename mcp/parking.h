/* SPDX-License-Identifier: Apache-2.0 */
/* Parked runs: runs that have asked their client a question in the modern way. The request has been
 * answered with the question. The run waits for another request, which has the answers and the
 * requestState: a sealed text that names the run. A requestState can be used once, by its tenant,
 * for the same call. A run whose answers do not arrive in time is cancelled.
 */
#ifndef MCP_PARKING_H
#define MCP_PARKING_H

#include <stdbool.h>
#include <stddef.h>

struct mcp;
struct mcp_parking;
struct mcp_run;
struct parked;
struct seal_binding;
struct tenant;

struct mcp_parking *mcp_parking_new(struct mcp *mcp);
void mcp_parking_free(struct mcp_parking *parking);	/* gives up all; NULL is fine */

/* Holds the run. nothing_done: the run has done nothing so far. Returns its requestState, malloc'd;
 * NULL: too many of this tenant's runs wait. */
char *mcp_parking_put(struct mcp_parking *parking, struct mcp_run *run, bool nothing_done,
		      const struct seal_binding *binding);

enum parked_where {
	PARKED_HERE,
	PARKED_NOWHERE,		/* the requestState was changed, was used before, is too old, or
				 * belongs to another tenant */
	PARKED_BEFORE,		/* the run was lost with its process, and had done nothing yet */
	PARKED_HALFWAY,		/* the run was lost with its process, and may have done something */
};

/* Finds the run that a requestState names, and leaves it parked. PARKED_HERE: *parked_r is valid
 * until the next turn of the loop. */
enum parked_where mcp_parking_find(struct mcp_parking *parking, const struct tenant *tenant,
				   const char *state, const struct seal_binding *binding,
				   struct parked **parked_r);

/* Takes a run out. Its requestState is used up. The caller holds the run now. */
struct mcp_run *mcp_parking_take(struct parked *parked);

#endif
