/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: parked runs and their timers.
 * Reads:   states that clients send back, sealed or made up. */
#include "mcp/parking.h"

#include <string.h>
#include <time.h>

#include "base/kept.h"
#include "base/xalloc.h"
#include "mcp/context.h"
#include "mcp/run.h"
#include "mcp/seal.h"
#include "policy/config.h"

struct parked {
	struct kept kept;
	char id[ID_CHARACTERS + 1];
	struct mcp_run *run;
};

struct mcp_parking {
	struct mcp *mcp;
	struct kept_store store;
};

struct mcp_run *
mcp_parking_take(struct parked *parked)
{
	struct mcp_run *run = parked->run;

	run->parked = false;
	kept_remove(&parked->kept);
	free(parked);
	return run;
}

static void
parking_give_up(struct kept *kept)
{
	struct mcp_run *run = mcp_parking_take((struct parked *)kept);

	mcp_run_give_up(run);
	mcp_run_release(run, CANCEL_DISCONNECTED);
}

struct mcp_parking *
mcp_parking_new(struct mcp *mcp)
{
	struct mcp_parking *parking = xcalloc(1, sizeof(*parking));

	parking->mcp = mcp;
	kept_store_init(&parking->store, parking_give_up);
	return parking;
}

void
mcp_parking_free(struct mcp_parking *parking)
{
	if (!parking)
		return;
	while (!TAILQ_EMPTY(&parking->store.list))
		parking_give_up(TAILQ_FIRST(&parking->store.list));
	free(parking);
}

char *
mcp_parking_put(struct mcp_parking *parking, struct mcp_run *run, bool nothing_done,
		const struct seal_binding *binding)
{
	const struct config *config = parking->mcp->options.config;
	struct sealed sealed = { .expires = (int64_t)time(NULL) + config->mcp.ask_seconds,
				 .nothing_done = nothing_done };
	unsigned int in_use, n;
	struct parked *parked;

	kept_count(&parking->store, run->tenant, &in_use, &n);
	if (n >= config->mcp.parked_per_tenant)
		return NULL;
	parked = xcalloc(1, sizeof(*parked));
	id_new(parked->id);
	parked->run = run;
	run->holders++;
	mcp_run_keep(run);		/* it may end by itself while it is parked */
	run->parked = true;
	kept_add(&parking->store, &parked->kept, run->tenant, parking->mcp->options.base);
	kept_expire(&parked->kept, config->mcp.ask_seconds);
	memcpy(sealed.id, parked->id, sizeof(sealed.id));
	return mcp_seal_close(parking->mcp->options.seal, &sealed, binding);
}

enum parked_where
mcp_parking_find(struct mcp_parking *parking, const struct tenant *tenant, const char *state,
		 const struct seal_binding *binding, struct parked **parked_r)
{
	struct sealed sealed;
	struct kept *kept;

	if (!mcp_seal_open(parking->mcp->options.seal, state, (int64_t)time(NULL), binding,
			   &sealed))
		return PARKED_NOWHERE;
	if (!sealed.is_ours)
		return sealed.nothing_done ? PARKED_BEFORE : PARKED_HALFWAY;
	KEPT_FOREACH(kept, &parking->store, tenant) {
		*parked_r = (struct parked *)kept;
		if (strcmp((*parked_r)->id, sealed.id) == 0)
			return PARKED_HERE;
	}
	return PARKED_NOWHERE;
}
