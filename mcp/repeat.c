/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the runs that were begun with a key, and their answers.
 * What has begun is known by the ledger, over a restart too. An answer is here as long as there is
 * room for it. */
#include "mcp/outcome.h"
#include "mcp/repeat.h"

#include <string.h>

#include "base/kept.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "govern/ledger.h"
#include "mcp/context.h"
#include "mcp/run.h"
#include "mcp/seal.h"
#include "policy/config.h"

#define RUN_BYTES 2048			/* roughly, of a run without its answer */

struct repeated {
	struct kept kept;		/* in use until the run has ended */
	struct mcp_repeats *repeats;
	struct ledger_call call;
	struct mcp_run *run;
	struct mcp_audience audience;
};

struct mcp_repeats {
	struct mcp *mcp;
	struct ledger *ledger;
	struct ledger *own;		/* if the process has no other */
	struct kept_store store;
};

static void
repeat_forget(struct repeated *repeated, enum cancel_reason reason)
{
	struct ledger *ledger = repeated->repeats->ledger;
	struct ledger_entry *entry = ledger_find(ledger, repeated->call.id);
	struct mcp_run *run = repeated->run;

	if (entry)
		entry->user = NULL;
	/* A call that may be made again, and that ends before its run does. */
	if (entry && reason == CANCEL_BY_CLIENT)
		ledger_drop(ledger, entry);
	kept_remove(&repeated->kept);
	mcp_run_leave(&repeated->audience, reason);
	free(repeated);
	mcp_run_release(run, reason);
}

static void
repeat_drop(struct kept *kept)
{
	repeat_forget((struct repeated *)kept, CANCEL_DISCONNECTED);
}

struct mcp_repeats *
mcp_repeats_new(struct mcp *mcp, struct ledger *ledger)
{
	struct mcp_repeats *repeats = xcalloc(1, sizeof(*repeats));

	repeats->mcp = mcp;
	/* Without a file this does not fail. */
	if (!ledger && ledger_new(NULL, 0, &repeats->own, NULL) < 0)
		abort();
	repeats->ledger = ledger ? ledger : repeats->own;
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
	ledger_free(repeats->own);
	free(repeats);
}

static void
repeat_digest(const struct tenant *tenant, const char *method, const char *key, const json_t *value,
	      unsigned char digest_r[LEDGER_DIGEST])
{
	struct seal_binding binding;
	json_auto_t *params = value ? xalloc_check(json_pack("{s:O}", key, (json_t *)value)) : NULL;

	_Static_assert(sizeof(binding.digest) == LEDGER_DIGEST, "both are SHA-256");
	seal_bind(tenant_principal(tenant), method, params, &binding);
	memcpy(digest_r, binding.digest, LEDGER_DIGEST);
}

static void
repeat_digest_call(const struct tenant *tenant, const struct tool *tool, const char *key,
		   const json_t *arguments, struct ledger_call *call_r)
{
	json_auto_t *name = xalloc_check(json_string(key));

	repeat_digest(tenant, tool->name, "name", name, call_r->id);
	repeat_digest(tenant, tool->name, "arguments", arguments, call_r->call);
	repeat_digest(tenant, "", NULL, NULL, call_r->owner);
}

enum repeat
mcp_repeat_find(struct mcp_repeats *repeats, const struct tenant *tenant,
		const struct tool *tool, const char *key, const json_t *arguments,
		struct mcp_run **run_r)
{
	const struct ledger_entry *entry;
	struct ledger_call call;

	repeat_digest_call(tenant, tool, key, arguments, &call);
	entry = ledger_find(repeats->ledger, call.id);
	if (!entry)
		return REPEAT_NEW;
	if (memcmp(call.call, entry->is.call, LEDGER_DIGEST) != 0)
		return REPEAT_OTHER;
	if (!entry->user)
		return REPEAT_LOST;
	*run_r = ((struct repeated *)entry->user)->run;
	return REPEAT_SAME;
}

static void
repeat_on_end(struct mcp_audience *audience, const struct tool_answer *answer,
	      const struct tool_failure *failure)
{
	struct repeated *repeated =
		(struct repeated *)((char *)audience - offsetof(struct repeated, audience));
	const struct config *config = repeated->repeats->mcp->options.config;
	struct kept *kept = &repeated->kept;
	size_t bytes;

	if (failure || answer->not_run) {
		/* The run has failed in a way that allows another try. */
		repeat_forget(repeated, CANCEL_BY_CLIENT);
		return;
	}
	mcp_outcome_read(repeated->run->outcome, &answer, &failure, &bytes);
	kept->in_use = false;
	kept_charge(kept, bytes + RUN_BYTES);
	kept_expire(kept, config->mcp.repeat_seconds);
	ledger_end(repeated->repeats->ledger,
		   ledger_find(repeated->repeats->ledger, repeated->call.id),
		   config->mcp.repeat_seconds);
	kept_make_room(kept->store, kept->owner, kept, UINT64_MAX, config->mcp.kept_bytes);
}

static const struct mcp_audience_type repeat_audience = { .on_end = repeat_on_end };

int
mcp_repeat_add(struct mcp_repeats *repeats, const char *key, const json_t *arguments,
	       struct mcp_run *run)
{
	const struct config *config = repeats->mcp->options.config;
	struct ledger_entry *entry;
	struct repeated *repeated;
	struct ledger_call call;
	int r;

	repeat_digest_call(run->tenant, run->tool, key, arguments, &call);
	r = ledger_begin(repeats->ledger, &call, config->mcp.repeat_calls, &entry);
	if (r < 0)
		return r;
	repeated = xcalloc(1, sizeof(*repeated));
	entry->user = repeated;
	repeated->repeats = repeats;
	repeated->call = call;
	repeated->kept.in_use = true;
	kept_add(&repeats->store, &repeated->kept, run->tenant, repeats->mcp->options.base);
	repeated->run = run;
	run->holders++;
	mcp_run_keep(run);
	repeated->audience.type = &repeat_audience;
	mcp_run_join(run, &repeated->audience);
	return 0;
}

void
mcp_repeat_drop(struct mcp_repeats *repeats, const struct mcp_run *run)
{
	struct kept *kept;

	KEPT_FOREACH(kept, &repeats->store, run->tenant)
		if (((struct repeated *)kept)->run == run)
			break;
	if (kept)
		repeat_forget((struct repeated *)kept, CANCEL_BY_CLIENT);
}
