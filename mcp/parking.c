/* Runs in: the supervisor.   Owns: parked runs and their timers.
 * Reads:   states that clients send back, sealed or made up. */
#include "mcp/parking.h"

#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include <event2/event.h>

#include "base/xalloc.h"
#include "mcp/context.h"
#include "mcp/run.h"
#include "mcp/seal.h"
#include "policy/config.h"

struct parked {
	LIST_ENTRY(parked) link;
	char id[ID_CHARACTERS + 1];
	struct mcp_run *run;
	struct event *late;
};

struct mcp_parking {
	struct mcp *mcp;
	LIST_HEAD(, parked) parked;
};

struct mcp_parking *
mcp_parking_new(struct mcp *mcp)
{
	struct mcp_parking *parking = xcalloc(1, sizeof(*parking));

	parking->mcp = mcp;
	LIST_INIT(&parking->parked);
	return parking;
}

static struct mcp_run *
take_out(struct parked *parked)
{
	struct mcp_run *run = parked->run;

	mcp_run_set_parked(run, false);
	LIST_REMOVE(parked, link);
	event_free(parked->late);
	free(parked);
	return run;
}

static void
give_up(struct parked *parked)
{
	struct mcp_run *run = take_out(parked);

	mcp_run_give_up(run);
	mcp_run_release(run, CANCEL_DISCONNECTED);
}

static void
on_late(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	give_up(arg);
}

void
mcp_parking_free(struct mcp_parking *parking)
{
	if (!parking)
		return;
	while (!LIST_EMPTY(&parking->parked))
		give_up(LIST_FIRST(&parking->parked));
	free(parking);
}

static size_t
count(const struct mcp_parking *parking, const struct tenant *tenant)
{
	const struct parked *parked;
	size_t n = 0;

	LIST_FOREACH(parked, &parking->parked, link)
		n += mcp_run_tenant(parked->run) == tenant;
	return n;
}

char *
mcp_parking_put(struct mcp_parking *parking, struct mcp_run *run, bool nothing_done,
		const struct seal_binding *binding)
{
	const struct config *config = mcp_config(parking->mcp);
	const struct timeval wait = { .tv_sec = config->mcp.ask_seconds };
	struct sealed sealed = { .expires = (int64_t)time(NULL) + wait.tv_sec,
				 .nothing_done = nothing_done };
	struct parked *parked;

	if (count(parking, mcp_run_tenant(run)) >= config->mcp.parked_per_tenant)
		return NULL;
	parked = xcalloc(1, sizeof(*parked));
	id_new(parked->id);
	parked->run = run;
	mcp_run_hold(run);
	mcp_run_keep(run);		/* it may end by itself meanwhile */
	mcp_run_set_parked(run, true);
	parked->late = xalloc_check(evtimer_new(mcp_base(parking->mcp), on_late, parked));
	evtimer_add(parked->late, &wait);
	LIST_INSERT_HEAD(&parking->parked, parked, link);
	memcpy(sealed.id, parked->id, sizeof(sealed.id));
	return mcp_seal_close(mcp_seal(parking->mcp), &sealed, binding);
}

enum parked_where
mcp_parking_take(struct mcp_parking *parking, const struct tenant *tenant,
		 const char *state, const struct seal_binding *binding,
		 struct mcp_run **run_r)
{
	struct sealed sealed;
	struct parked *parked;

	if (!mcp_seal_open(mcp_seal(parking->mcp), state, (int64_t)time(NULL), binding,
			   &sealed))
		return PARKED_NOWHERE;
	if (!sealed.is_ours)
		return sealed.nothing_done ? PARKED_BEFORE : PARKED_HALFWAY;
	LIST_FOREACH(parked, &parking->parked, link)
		if (strcmp(parked->id, sealed.id) == 0 &&
		    mcp_run_tenant(parked->run) == tenant) {
			*run_r = take_out(parked);
			return PARKED_HERE;
		}
	return PARKED_NOWHERE;
}
