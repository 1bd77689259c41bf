/* Runs in: the supervisor.   Owns: the table of runs by key.
 * Running ones are bounded by the number of runs that the tenant may have at once, ended ones by
 * number, bytes and time. */
#include "mcp/repeat.h"

#include <string.h>
#include <sys/queue.h>

#include <event2/event.h>

#include "base/xalloc.h"
#include "engine/engine.h"
#include "mcp/context.h"
#include "mcp/run.h"
#include "mcp/seal.h"
#include "policy/config.h"

#define OVER_MAX 256			/* ended ones of one tenant */

struct repeated {
	TAILQ_ENTRY(repeated) link;
	struct mcp_repeats *repeats;
	char *key;
	struct seal_binding binding;	/* of the arguments */
	struct mcp_run *run;
	struct mcp_audience audience;
	struct event *late;		/* pending once the run has ended */
};

struct mcp_repeats {
	struct mcp *mcp;
	TAILQ_HEAD(repeated_list, repeated) list;	/* the oldest first */
};

struct mcp_repeats *
mcp_repeats_new(struct mcp *mcp)
{
	struct mcp_repeats *repeats = xcalloc(1, sizeof(*repeats));

	repeats->mcp = mcp;
	TAILQ_INIT(&repeats->list);
	return repeats;
}

static void
forget(struct repeated *repeated, enum cancel_reason reason)
{
	struct mcp_run *run = repeated->run;

	TAILQ_REMOVE(&repeated->repeats->list, repeated, link);
	mcp_run_leave(&repeated->audience, reason);
	event_free(repeated->late);
	free(repeated->key);
	free(repeated);
	mcp_run_release(run, reason);
}

void
mcp_repeats_free(struct mcp_repeats *repeats)
{
	if (!repeats)
		return;
	while (!TAILQ_EMPTY(&repeats->list))
		forget(TAILQ_FIRST(&repeats->list), CANCEL_SHUTDOWN);
	free(repeats);
}

static void
bind_arguments(const struct tenant *tenant, const struct tool *tool,
	       const json_t *arguments, struct seal_binding *binding_r)
{
	json_t *params = xalloc_check(json_pack("{s:O}", "arguments", (json_t *)arguments));

	seal_bind(tenant_principal(tenant), tool->name, params, binding_r);
	json_decref(params);
}

enum repeat
mcp_repeat_find(struct mcp_repeats *repeats, const struct tenant *tenant,
		const struct tool *tool, const char *key, const json_t *arguments,
		struct mcp_run **run_r)
{
	struct seal_binding binding;
	struct repeated *repeated;

	TAILQ_FOREACH(repeated, &repeats->list, link)
		if (mcp_run_tenant(repeated->run) == tenant &&
		    mcp_run_tool(repeated->run) == tool && strcmp(repeated->key, key) == 0)
			break;
	if (!repeated)
		return REPEAT_NEW;
	bind_arguments(tenant, tool, arguments, &binding);
	if (memcmp(&binding, &repeated->binding, sizeof(binding)) != 0)
		return REPEAT_OTHER;
	*run_r = repeated->run;
	return REPEAT_SAME;
}

/* The oldest ended ones make room for this one. */
static void
bound_kept(struct repeated *latest)
{
	struct mcp_repeats *repeats = latest->repeats;
	uint64_t most = mcp_config(repeats->mcp)->mcp.kept_bytes, bytes = 0;
	const struct tenant *tenant = mcp_run_tenant(latest->run);
	struct repeated *repeated, *before;
	unsigned int n = 0;

	for (repeated = TAILQ_LAST(&repeats->list, repeated_list); repeated;
	     repeated = before) {
		const struct tool_failure *failure;
		const struct tool_answer *answer;
		size_t own;

		before = TAILQ_PREV(repeated, repeated_list, link);
		if (mcp_run_tenant(repeated->run) != tenant ||
		    !mcp_run_is_over(repeated->run))
			continue;
		mcp_run_outcome(repeated->run, &answer, &failure, &own);
		bytes += own;
		if ((++n > OVER_MAX || bytes > most) && repeated != latest)
			forget(repeated, CANCEL_DISCONNECTED);
	}
}

static void
on_end(struct mcp_audience *audience, const struct tool_answer *answer,
       const struct tool_failure *failure)
{
	struct repeated *repeated =
		(struct repeated *)((char *)audience - offsetof(struct repeated, audience));
	const struct timeval wait = {
		.tv_sec = mcp_config(repeated->repeats->mcp)->mcp.repeat_seconds
	};

	if (failure || answer->not_run) {
		forget(repeated, CANCEL_BY_CLIENT);	/* such a failure may be tried again */
		return;
	}
	evtimer_add(repeated->late, &wait);
	bound_kept(repeated);
}

static const struct mcp_audience_type repeat_audience = { .on_end = on_end };

static void
on_late(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	forget(arg, CANCEL_DISCONNECTED);
}

void
mcp_repeat_add(struct mcp_repeats *repeats, const char *key, const json_t *arguments,
	       struct mcp_run *run)
{
	struct repeated *repeated = xcalloc(1, sizeof(*repeated));

	repeated->repeats = repeats;
	repeated->key = xstrdup(key);
	bind_arguments(mcp_run_tenant(run), mcp_run_tool(run), arguments,
		       &repeated->binding);
	repeated->run = run;
	mcp_run_hold(run);
	mcp_run_keep(run);
	repeated->audience.type = &repeat_audience;
	mcp_run_join(run, &repeated->audience);
	repeated->late = xalloc_check(evtimer_new(mcp_base(repeats->mcp), on_late, repeated));
	TAILQ_INSERT_TAIL(&repeats->list, repeated, link);
}

void
mcp_repeat_drop(struct mcp_repeats *repeats, const struct mcp_run *run)
{
	struct repeated *repeated;

	TAILQ_FOREACH(repeated, &repeats->list, link)
		if (repeated->run == run)
			break;
	if (repeated)
		forget(repeated, CANCEL_BY_CLIENT);
}
