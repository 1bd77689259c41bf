/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the table of runs by key.
 * The number of unfinished runs is bounded by the number of runs that the tenant may have at a
 * time. Ended runs are bounded in number, bytes and time. */
#include "mcp/repeat.h"

#include <string.h>

#include "base/kept.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "mcp/context.h"
#include "mcp/run.h"
#include "mcp/seal.h"
#include "policy/config.h"

#define OVER_MAX 256			/* ended runs of one tenant */

struct repeated {
	struct kept kept;		/* in use until the run has ended */
	struct mcp_repeats *repeats;
	char *key;
	struct seal_binding binding;	/* of the arguments */
	struct mcp_run *run;
	struct mcp_audience audience;
};

struct mcp_repeats {
	struct mcp *mcp;
	struct kept_store store;
};

static void
repeat_forget(struct repeated *repeated, enum cancel_reason reason)
{
	struct mcp_run *run = repeated->run;

	kept_remove(&repeated->kept);
	mcp_run_leave(&repeated->audience, reason);
	free(repeated->key);
	free(repeated);
	mcp_run_release(run, reason);
}

static void
repeat_drop(struct kept *kept)
{
	repeat_forget((struct repeated *)kept, CANCEL_DISCONNECTED);
}

struct mcp_repeats *
mcp_repeats_new(struct mcp *mcp)
{
	struct mcp_repeats *repeats = xcalloc(1, sizeof(*repeats));

	repeats->mcp = mcp;
	kept_store_init(&repeats->store, repeat_drop);
	return repeats;
}

void
mcp_repeats_free(struct mcp_repeats *repeats)
{
	if (!repeats)
		return;
	while (!TAILQ_EMPTY(&repeats->store.list))
		repeat_forget((struct repeated *)TAILQ_FIRST(&repeats->store.list),
			      CANCEL_SHUTDOWN);
	free(repeats);
}

static void
bind_arguments(const struct tenant *tenant, const struct tool *tool,
	       const json_t *arguments, struct seal_binding *binding_r)
{
	json_auto_t *params = xalloc_check(json_pack("{s:O}", "arguments", (json_t *)arguments));

	seal_bind(tenant_principal(tenant), tool->name, params, binding_r);
}

enum repeat
mcp_repeat_find(struct mcp_repeats *repeats, const struct tenant *tenant,
		const struct tool *tool, const char *key, const json_t *arguments,
		struct mcp_run **run_r)
{
	struct seal_binding binding;
	struct repeated *repeated;
	struct kept *kept;

	KEPT_FOREACH(kept, &repeats->store, tenant) {
		repeated = (struct repeated *)kept;
		if (mcp_run_tool(repeated->run) == tool &&
		    strcmp(repeated->key, key) == 0)
			break;
	}
	if (!kept)
		return REPEAT_NEW;
	bind_arguments(tenant, tool, arguments, &binding);
	if (memcmp(&binding, &repeated->binding, sizeof(binding)) != 0)
		return REPEAT_OTHER;
	*run_r = repeated->run;
	return REPEAT_SAME;
}

static void
repeat_on_end(struct mcp_audience *audience, const struct tool_answer *answer,
	      const struct tool_failure *failure)
{
	struct repeated *repeated =
		(struct repeated *)((char *)audience - offsetof(struct repeated, audience));
	const struct config *config = mcp_config(repeated->repeats->mcp);
	struct kept *kept = &repeated->kept;
	unsigned int running, over;

	if (failure || answer->not_run) {
		/* The run has failed in a way that allows another try. */
		repeat_forget(repeated, CANCEL_BY_CLIENT);
		return;
	}
	mcp_run_outcome(repeated->run, &answer, &failure, &kept->charge);
	kept->in_use = false;
	kept_expire(kept, config->mcp.repeat_seconds);
	kept_count(kept->store, kept->owner, &running, &over);
	kept_make_room(kept->store, kept->owner, kept, running + OVER_MAX,
		       config->mcp.kept_bytes);
}

static const struct mcp_audience_type repeat_audience = { .on_end = repeat_on_end };

void
mcp_repeat_add(struct mcp_repeats *repeats, const char *key, const json_t *arguments,
	       struct mcp_run *run)
{
	struct repeated *repeated = xcalloc(1, sizeof(*repeated));

	repeated->repeats = repeats;
	repeated->kept.in_use = true;
	kept_add(&repeats->store, &repeated->kept, mcp_run_tenant(run), mcp_base(repeats->mcp));
	repeated->key = xstrdup(key);
	bind_arguments(mcp_run_tenant(run), mcp_run_tool(run), arguments,
		       &repeated->binding);
	repeated->run = run;
	mcp_run_hold(run);
	mcp_run_keep(run);
	repeated->audience.type = &repeat_audience;
	mcp_run_join(run, &repeated->audience);
}

void
mcp_repeat_drop(struct mcp_repeats *repeats, const struct mcp_run *run)
{
	struct kept *kept;

	KEPT_FOREACH(kept, &repeats->store, mcp_run_tenant(run))
		if (((struct repeated *)kept)->run == run)
			break;
	if (kept)
		repeat_forget((struct repeated *)kept, CANCEL_BY_CLIENT);
}
