/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the recipes; each one's worker, until it is taken.
 * Reads:   names of modules, and PREPARED, from scripts' processes, which are hostile. A false
 * report only makes another worker of the same tenant, in which the same tenant's code has run. */
#include "engine/ready.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "engine/engine_parts.h"
#include "engine/execution_modules.h"
#include "engine/execution_parts.h"
#include "engine/keeper.h"
#include "engine/observer.h"
#include "engine/pool.h"
#include "engine/share.h"
#include "engine/tables.h"
#include "engine/tenant.h"
#include "engine/worker.h"
#include "engine/zygote.h"
#include "host/cgroup.h"
#include "policy/imports.h"
#include "policy/learnable.h"

#define RECIPES_OF_TENANT 8
#define TRIES_OF_TURN 8		/* recipes that are looked at in a quiet moment */
#define IMPORTS_OF_RECIPE 1024	/* a call with a longer list of allowed modules has no recipe */
#define MAKE_CPU_MS 10000	/* the most processor time for an import: a virtual machine counts
				 * time in which its host runs something else, too */
#define MAKE_MOST_MS 60000	/* the most time; on a busy machine it gets its turn late */
#define MAKE_IDLE_MS 2000	/* the most time without processor time: an import that hangs */
#define LOOK_MS 500		/* between looks */
#define LEAVES_MS 20		/* between looks at what the import leaves, */
#define LEAVES_LOOKS 100	/* so many at most: what is just ending is not left */
#define LATE_CPU_US 5000	/* less than this between two looks does not count */
#define PAUSE_FIRST_MS 60000	/* after a failure; doubled with each one */
#define PAUSE_MOST_MS 600000
#define KEEP_TIMES 10		/* [pool] idle_seconds without a use: the recipe is forgotten */
#define IDLE_CPU_US 20000	/* more processor time than this in a second is too much, */
#define RESTLESS_SECONDS 3	/* if so many in a row have it */
#define OWN_TASKS 2		/* init and the script's process */

static const struct timeval look = { 0, LOOK_MS * 1000 };
static const struct timeval look_again = { 0, LEAVES_MS * 1000 };

/* WANTED: it was used since a worker was made, or making one was interrupted. */
enum stage { NOTHING, WANTED, MAKING, READY, STAGES };

struct recipe {
	TAILQ_ENTRY(recipe) link;	/* among those of its stage */
	TAILQ_ENTRY(recipe) own_link;	/* among those of its tenant */
	struct engine *engine;
	struct tenant *tenant;
	unsigned int kind;		/* of workers: pool.h */
	char environment[ENVIRONMENT_NAME + 1];
	char finds[MODULE_NAME_MAX + 1];	/* the first module for which scripts find the set
						 * by an import; "": they begin with it */
	bool limits_imports;
	struct config_list imports;	/* the allowed modules */
	bool is_session;
	struct worker_bounds bounds;	/* those of a script have memory_bytes and pids_max */
	struct msg_states states;	/* of a session: the last that its init has reported */
	struct config_list modules;	/* to be imported */
	enum stage stage;
	bool prepared;			/* MAKING: PREPARED came */
	unsigned int looks;		/* then: how often it was found to leave something */
	bool printed;			/* its worker has written something */
	struct worker *worker;		/* MAKING, READY */
	uint64_t cpu_us;		/* of the worker, as charged so far */
	uint64_t begun_ms;		/* MAKING: since when */
	uint64_t seen_ms, seen_us;	/* MAKING: when it was last seen to compute; cpu_us then */
	unsigned int restless;		/* READY: seconds in a row in which it computed */
	uint64_t used_ms;
	uint64_t blocked_ms;		/* NOTHING: not WANTED before; 0: no worker has failed */
	unsigned int failures;		/* in a row */
	uint64_t made;			/* workers that were READY */
	struct event deadline;		/* MAKING */
	struct watchdog_link watch;	/* MAKING */
};

/* A script, or a session with its first cell. */
struct call {
	struct tenant *tenant;
	unsigned int kind;
	const char *environment;
	const struct msg_strs *imports;	/* item NULL: any */
	bool is_session;
	struct worker_bounds bounds;
	struct msg_str code;
	const struct execution *script;	/* NULL: it is a session */
};

struct ready {
	struct engine *engine;
	struct recipes in[STAGES];	/* those that came first are first */
	unsigned int n_in[STAGES];
	struct ready_counts counts;	/* but not of those that are ready */
};

static void
enter(struct recipe *r, enum stage stage)
{
	struct ready *ready = r->engine->ready;

	TAILQ_REMOVE(&ready->in[r->stage], r, link);
	ready->n_in[r->stage]--;
	r->stage = stage;
	TAILQ_INSERT_TAIL(&ready->in[stage], r, link);
	ready->n_in[stage]++;
}

/* ---- the end of a ready worker ---- */

/* Charges the processor time that was used since the last charge. False: the tenant may use no
 * more. */
static bool
charge(struct recipe *r)
{
	uint64_t now_us = r->worker != NULL ? worker_cpu_us(r->worker) : r->cpu_us;
	uint64_t ms = now_us > r->cpu_us ? (now_us - r->cpu_us) / 1000 : 0;

	r->cpu_us += ms * 1000;
	return engine_charge(r->engine, r->tenant, ms) > 0;
}

/* Separates the worker from its recipe, which is then in this stage. */
static struct worker *
release(struct recipe *r, enum stage stage)
{
	struct worker *w = r->worker;

	event_del(&r->deadline);
	watchdog_forget(&r->watch);
	charge(r);
	enter(r, stage);
	r->worker = NULL;
	w->recipe = NULL;
	return w;
}

static void
give_up(struct recipe *r, enum stage stage)
{
	worker_end(release(r, stage));
}

/* The modules do what they must not, or the machine was too busy: no worker is made ready with them
 * for a while. */
static void
block(struct recipe *r, const char *text, size_t len)
{
	uint64_t pause_ms = (uint64_t)PAUSE_FIRST_MS << (r->failures < 6 ? r->failures : 6);
	struct log_quoted quoted;

	r->engine->ready->counts.refused++;
	r->failures++;
	r->blocked_ms = clock_ms() + (pause_ms < PAUSE_MOST_MS ? pause_ms : PAUSE_MOST_MS);
	log_line(LOG_INFO, "not-made-ready", "tenant=%s environment=%.12s modules=%s%s text=%s",
		 r->tenant->principal, r->environment, r->modules.item[0],
		 r->modules.n > 1 ? ",..." : "", log_quote(&quoted, text, len));
}

static void
refuse(struct recipe *r, const char *text)
{
	block(r, text, strlen(text));
	give_up(r, NOTHING);
}

static const char ends_text[] = "its import ends the process";

/* It has ended by itself, or the pool has ended it. A worker that has waited costs nothing. */
static void
on_ending(struct worker *w)
{
	struct recipe *r = w->recipe;
	enum stage stage = r != NULL ? r->stage : NOTHING;

	if (r != NULL)
		release(r, NOTHING);
	if (stage == MAKING && !w->engine->shutting_down)
		block(r, ends_text, strlen(ends_text));
}

/* ---- recipes ---- */

static struct config_list
copy_texts(const struct msg_strs *strs)
{
	struct config_list list = { .item = xcalloc(strs->n + 1, sizeof(char *)), .n = strs->n };

	for (size_t i = 0; i < strs->n; i++)
		list.item[i] = xmemdup0(strs->item[i].at, strs->item[i].len);
	return list;
}

static void
free_texts(struct config_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->item[i]);
	free(list->item);
}

static bool
are_same(const struct config_list *list, const struct msg_strs *strs)
{
	bool same = list->n == strs->n;

	for (size_t i = 0; same && i < list->n; i++)
		same = strlen(list->item[i]) == strs->item[i].len &&
		       memcmp(list->item[i], strs->item[i].at, strs->item[i].len) == 0;
	return same;
}

static struct call
call_of_session(const struct repl_needs *needs, struct msg_str code)
{
	static const struct msg_strs any;

	return (struct call){
		.tenant = needs->tenant, .kind = needs->kind, .environment = needs->environment,
		.imports = &any, .is_session = true, .bounds = needs->bounds, .code = code,
	};
}

/* The call that the execution is. False: it can have no recipe. A network changes what an import
 * finds. */
static bool
call_of(const struct execution *e, struct call *call_r)
{
	const struct request_copy *request = &e->request;
	struct repl_needs needs;

	if (e->repl != NULL)
		e->engine->cells->describe(e->repl, &needs);
	*call_r = e->repl != NULL ? call_of_session(&needs, request->script) : (struct call){
		.tenant = e->tenant, .kind = e->item.kind, .environment = request->environment,
		.imports = &request->imports, .code = request->script, .script = e,
		.bounds = { .memory_bytes = e->limits.memory_bytes, .pids_max = e->limits.pids },
	};
	return e->engine->config->pool.tenant_ready_max > 0 && !request->internal &&
	       (e->repl == NULL || e->is_first) && request->network == NULL &&
	       (call_r->environment[0] != '\0' || (e->repl == NULL && request->modules > 0)) &&
	       request->imports.n <= IMPORTS_OF_RECIPE;
}

/* Is the recipe of calls like this one, apart from the modules? finds: as in the recipe. */
static bool
is_like(const struct recipe *r, const struct call *call, bool finds)
{
	const struct worker_bounds *a = &r->bounds, *b = &call->bounds;

	return r->tenant == call->tenant && r->kind == call->kind &&
	       r->is_session == call->is_session && a->memory_bytes == b->memory_bytes &&
	       a->memory_most == b->memory_most && a->pids_max == b->pids_max &&
	       a->alone == b->alone && finds == (r->finds[0] != '\0') &&
	       (finds || strcmp(r->environment, call->environment) == 0) &&
	       r->limits_imports == (call->imports->item != NULL) &&
	       are_same(&r->imports, call->imports);
}

/* The recipe with the most modules, all of which the script names. ready: only one with a worker.
 */
static struct recipe *
find_recipe(const struct call *call, bool ready)
{
	struct recipe *r, *found = NULL;

	TAILQ_FOREACH(r, &call->tenant->recipes, own_link)
		if (is_like(r, call, call->environment[0] == '\0') &&
		    (!ready || r->stage == READY) &&
		    (found == NULL || r->modules.n > found->modules.n) &&
		    learnable_look(&r->modules, call->code.at, call->code.len) ==
		    (UINT64_C(1) << r->modules.n) - 1 &&
		    (r->finds[0] == '\0' ||
		     modules_would_find(call->script, r->finds, r->environment)))
			found = r;
	return found;
}

static void on_deadline(evutil_socket_t fd, short what, void *arg);

static struct recipe *
new_recipe(const struct call *call, const struct msg_strs *modules, const char *finds)
{
	struct ready *ready = call->tenant->engine->ready;
	struct recipe *r = xcalloc(1, sizeof(*r));

	*r = (struct recipe){
		.engine = call->tenant->engine, .tenant = call->tenant, .kind = call->kind,
		.limits_imports = call->imports->item != NULL,
		.imports = copy_texts(call->imports), .modules = copy_texts(modules),
		.is_session = call->is_session, .bounds = call->bounds,
	};
	snprintf(r->environment, sizeof(r->environment), "%s", call->environment);
	snprintf(r->finds, sizeof(r->finds), "%s", finds);
	evtimer_assign(&r->deadline, r->engine->base, on_deadline, r);
	TAILQ_INSERT_HEAD(&r->tenant->recipes, r, own_link);
	TAILQ_INSERT_TAIL(&ready->in[NOTHING], r, link);
	ready->n_in[NOTHING]++;
	return r;
}

static void
free_recipe(struct recipe *r)
{
	struct ready *ready = r->engine->ready;

	if (r->worker != NULL)
		give_up(r, NOTHING);
	TAILQ_REMOVE(&ready->in[r->stage], r, link);
	ready->n_in[r->stage]--;
	TAILQ_REMOVE(&r->tenant->recipes, r, own_link);
	free_texts(&r->imports);
	free_texts(&r->modules);
	free(r);
}

/* Forgets the tenant's recipe that was unused for longest, if it has too many. */
static void
bound_recipes(struct tenant *tenant)
{
	struct recipe *r;
	unsigned int n = 0;

	TAILQ_FOREACH(r, &tenant->recipes, own_link)
		n++;
	if (n > RECIPES_OF_TENANT)
		free_recipe(TAILQ_LAST(&tenant->recipes, recipes));
}

static void
use_recipe(struct recipe *r)
{
	TAILQ_REMOVE(&r->tenant->recipes, r, own_link);
	TAILQ_INSERT_HEAD(&r->tenant->recipes, r, own_link);
	r->used_ms = clock_ms();
	if (r->stage == READY || (r->stage == NOTHING && r->used_ms >= r->blocked_ms))
		enter(r, r->stage == READY ? READY : WANTED);
}

/* ---- what scripts report ---- */

static bool
is_allowed(const struct request_copy *request, const struct msg_str *name)
{
	if (request->imports.item == NULL)
		return true;
	for (size_t i = 0; i < request->imports.n; i++) {
		const struct msg_str *one = &request->imports.item[i];

		if (one->len <= name->len && memcmp(one->at, name->at, one->len) == 0 &&
		    (one->len == name->len || name->at[one->len] == '.'))
			return true;
	}
	return false;
}

/* Are these names that an honest worker can report? */
static bool
are_names(const struct request_copy *request, const struct msg_strs *names)
{
	for (size_t i = 0; i < names->n; i++)
		if (names->item[i].len > IMPORTED_NAME_MAX ||
		    !imports_is_name(names->item[i].at, names->item[i].len) ||
		    !is_allowed(request, &names->item[i]))
			return false;
	return names->n > 0;
}

void
ready_note(struct execution *e)
{
	const struct msg_done *done = &e->done.msg.done;
	const char *found[MODULES_OF_RUN_MAX], *environment, *finds = modules_began_without(e);
	struct call call;
	struct recipe *r;

	if (!call_of(e, &call) || e->engine->shutting_down || !done->has_imported ||
	    call.environment[0] == '\0' || !are_names(&e->request, &done->imported))
		return;
	/* It began with another set. */
	if (finds == NULL && modules_found(e->modules, found, &environment) > 0)
		return;
	TAILQ_FOREACH(r, &call.tenant->recipes, own_link)
		if (is_like(r, &call, finds != NULL) && are_same(&r->modules, &done->imported) &&
		    strcmp(r->environment, call.environment) == 0)
			break;
	if (r == NULL) {
		r = new_recipe(&call, &done->imported, finds != NULL ? finds : "");
		bound_recipes(call.tenant);
	}
	use_recipe(r);
}

/* ---- what it says ---- */

/* The import has ended well. A process or thread that is just ending is still there, and on a busy
 * machine the measurement may be late: so it is repeated before the worker is refused. */
static void
judge(struct recipe *r)
{
	struct worker *w = r->worker;
	struct watchdog_usage usage = { 0 };
	bool known;

	worker_drain(w);
	known = watchdog_measure(w->pid, w->leaf, &w->seen, &usage);
	r->looks += known;
	if (r->printed) {
		refuse(r, "it prints");
	} else if (known && usage.tasks <= OWN_TASKS) {
		if (!charge(r)) {
			give_up(r, NOTHING);
			return;
		}
		watchdog_forget(&r->watch);
		enter(r, READY);
		r->made++;
		r->failures = r->restless = 0;
		if (w->leaf != NULL)
			cgroup_leaf_counters(w->leaf, true, &w->before);
	} else if (r->looks < LEAVES_LOOKS && clock_ms() - r->begun_ms < MAKE_MOST_MS) {
		evtimer_add(&r->deadline, &look_again);
	} else {
		refuse(r, known ? "it leaves threads or processes" : "it takes too long");
	}
}

/* An import has its processor time, and time to get it on a busy machine. */
static void
on_deadline(evutil_socket_t, short, void *arg)
{
	struct recipe *r = arg;
	uint64_t used_us, now_ms = clock_ms();

	if (r->prepared) {
		judge(r);
		return;
	}
	used_us = worker_cpu_us(r->worker);
	if (used_us > r->seen_us + LATE_CPU_US) {
		r->seen_us = used_us;
		r->seen_ms = now_ms;
	}
	if (used_us < r->worker->cpu_baseline_us + MAKE_CPU_MS * 1000 &&
	    now_ms - r->begun_ms < MAKE_MOST_MS && now_ms - r->seen_ms < MAKE_IDLE_MS)
		evtimer_add(&r->deadline, &look);
	else
		refuse(r, "it takes too long");
}

/* Takes STATES or COPIED of snapshot 0, from the init of a session. */
static int
on_snapshot(struct recipe *r, const struct msg *msg)
{
	if (msg->type == MSG_COPIED)
		return msg->copied.to == 0 && msg->copied.error == 0 ? 0 : -EBADMSG;
	r->states = msg->states;
	if (r->states.snapshots != 1 && r->stage == MAKING)
		refuse(r, ends_text);
	else if (r->states.snapshots != 1)
		give_up(r, NOTHING);
	return 0;
}

static int
on_message(struct worker *w, struct frame *frame)
{
	const struct msg_prepared *prepared = &frame->msg.prepared;
	struct recipe *r = w->recipe;

	if (r != NULL && r->is_session &&
	    (frame->msg.type == MSG_STATES || frame->msg.type == MSG_COPIED))
		return on_snapshot(r, &frame->msg);
	if (frame->msg.type != MSG_PREPARED || r == NULL || r->stage != MAKING || r->prepared ||
	    prepared->worker != w->serial)
		return -EBADMSG;
	r->prepared = true;
	event_del(&r->deadline);
	if (prepared->trouble.len > 0) {
		block(r, prepared->trouble.at, prepared->trouble.len);
		give_up(r, NOTHING);
	} else {
		judge(r);
	}
	pool_pump(r->engine);
	return 0;
}

/* While it is being made, it is judged when it says that it is ready. */
static void
on_output(struct worker *w, enum stream, const void *, size_t len)
{
	struct recipe *r = w->recipe;

	if (r == NULL || len == 0)
		return;
	r->printed = true;
	if (r->stage == READY)
		refuse(r, "it prints while it waits");
}

static const struct worker_user ready_user = {
	.on_message = on_message,
	.on_output = on_output,
	.on_ending = on_ending,
};

/* ---- making one ---- */

/* The watchdog's check, as for an execution. */
static void
on_check(void *arg)
{
	struct recipe *r = arg;
	struct worker *w = r->worker;
	struct watchdog_usage usage = { 0 };

	if (r->engine->sampled)
		watchdog_measure(w->pid, w->leaf, &w->seen, &usage);
	else
		watchdog_measure_sockets(w->pid, &usage);
	if (tables_note(w, &usage, r->bounds.memory_bytes) != STOP_NONE ||
	    (!r->engine->pids_counted && usage.tasks > r->bounds.pids_max + OWN_TASKS) ||
	    (!r->engine->memory_counted &&
	     watchdog_memory_since(&w->baseline, &usage) > r->bounds.memory_bytes))
		refuse(r, "it takes too much memory, or too many processes or sockets");
}

/* Sends the order; gate is given away. 0 or -errno: the worker is ENDING. */
static int
send_prepare(struct recipe *r, struct worker *w, int gate)
{
	struct msg_str module[IMPORTED_MAX];
	int result;
	struct msg msg = { .type = MSG_PREPARE, .prepare = {
		.modules = { .item = module, .n = r->modules.n },
		.memory_bytes = r->bounds.memory_bytes,
		.data_bytes = r->engine->memory_counted ? 0 : r->bounds.memory_bytes,
		.processes = r->engine->pids_counted ? 0 : r->bounds.pids_max,
		.finds = r->finds[0] != '\0' } };

	for (size_t i = 0; i < r->modules.n; i++)
		module[i] = msg_str(r->modules.item[i]);
	if (!r->is_session)
		return worker_lease(w, &ready_user, NULL, &msg, gate);
	result = worker_lease_session(w, &r->bounds, true, &ready_user, NULL);
	if (result < 0) {
		close(gate);
		return result;
	}
	result = worker_send(w, &msg, gate);
	if (result < 0)
		worker_end(w);
	return result;
}

/* Gives the worker the set and the limits, and the order. 0 or -errno: it is still warm, or ENDING.
 */
static int
make(struct recipe *r, struct worker *w)
{
	const struct cgroup_limits limits = {
		.memory_bytes = r->bounds.memory_bytes, .pids = r->bounds.pids_max + 1,
		.cpu_percent = r->engine->standard.cpu_percent,
	};
	own_fd int gate = -1;
	int pair[2], result = w->leaf != NULL ? cgroup_leaf_limit(w->leaf, &limits) : 0;

	if (result < 0)
		return result;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	gate = pair[0];
	result = keeper_attach(r->engine->keeper, r->environment, w->pidfd, pair[1]);
	if (result == 0)
		result = send_prepare(r, w, give_fd(gate));
	else
		worker_end(w);
	if (result < 0)
		return result;
	enter(r, MAKING);
	r->prepared = r->printed = false;
	r->looks = 0;
	r->blocked_ms = 0;
	r->worker = w;
	r->cpu_us = r->seen_us = w->cpu_baseline_us;
	r->begun_ms = r->seen_ms = clock_ms();
	w->recipe = r;
	worker_output_listen(w);
	watchdog_watch(r->engine->watchdog, &r->watch, on_check, r);
	evtimer_add(&r->deadline, &look);
	return 0;
}

/* Is there room for one more ready worker of this tenant? If it has as many as it may, the one that
 * was unused for longest makes room. */
static bool
has_room(const struct ready *ready, const struct tenant *tenant)
{
	const struct config *config = ready->engine->config;
	struct recipe *r, *last = NULL;
	unsigned int own = 0;

	TAILQ_FOREACH(r, &tenant->recipes, own_link) {
		own += r->worker != NULL;
		last = r->stage == READY ? r : last;
	}
	if (own < config->pool.tenant_ready_max)
		return ready->n_in[MAKING] + ready->n_in[READY] < config->pool.ready_max;
	if (last != NULL)
		give_up(last, NOTHING);
	return last != NULL;
}

static bool
may_make(const struct recipe *r)
{
	const struct tenant *tenant = r->tenant;
	const struct share *share = &tenant->share[r->kind];

	return tenant->queue.n_waiting == 0 && keeper_is_there(r->engine->keeper) &&
	       (share->n_warm > 1 || (share->n_warm == 1 && share->target == 1));
}

void
ready_tend(struct engine *engine)
{
	struct ready *ready = engine->ready;
	struct recipe *r;
	struct worker *w;

	if (engine->shutting_down || ready->n_in[MAKING] > 0 || pool_somebody_waits(engine))
		return;
	for (unsigned int i = 0; i < TRIES_OF_TURN && ready->n_in[MAKING] == 0; i++) {
		r = TAILQ_FIRST(&ready->in[WANTED]);
		if (r == NULL)
			return;
		enter(r, WANTED);
		if (!may_make(r) || !charge(r) || !has_room(ready, r->tenant))
			continue;
		w = share_warm_worker(&r->tenant->share[r->kind]);
		if (w != NULL && !w->is_stale && make(r, w) < 0) {
			r->blocked_ms = clock_ms() + PAUSE_FIRST_MS;
			enter(r, NOTHING);
		}
	}
}

/* ---- taking it ---- */

static struct worker *
take(const struct call *call, struct msg_states *states_r)
{
	struct recipe *r = find_recipe(call, true);
	struct worker *w;

	if (r == NULL || r->worker->generation != zygote_generation(share_zygote(r->worker->share)))
		return NULL;
	/* What it has written just now ends it. */
	worker_drain(r->worker);
	if (r->stage != READY)
		return NULL;
	w = release(r, WANTED);
	memcpy(w->made_ready, r->environment, sizeof(w->made_ready));
	w->cpu_baseline_us = worker_cpu_us(w);
	*states_r = r->states;
	r->engine->ready->counts.hits++;
	use_recipe(r);
	return w;
}

struct worker *
ready_take(const struct execution *e)
{
	struct msg_states states;
	struct call call;

	return call_of(e, &call) ? take(&call, &states) : NULL;
}

struct worker *
ready_take_session(const struct repl_needs *needs, const struct msg_str *code,
		   struct msg_states *states_r)
{
	struct call call = call_of_session(needs, *code);
	bool has_set = call.environment[0] != '\0';
	struct worker *w = has_set ? take(&call, states_r) : NULL;

	if (w == NULL && has_set && find_recipe(&call, false) != NULL)
		call.tenant->engine->ready->counts.misses++;
	return w;
}

void
ready_miss(const struct execution *e)
{
	struct call call;

	if (call_of(e, &call) && find_recipe(&call, false) != NULL)
		e->engine->ready->counts.misses++;
}

/* ---- giving it up ---- */

static void
look_after(struct recipe *r, uint64_t now_ms)
{
	uint64_t idle_ms = (uint64_t)r->engine->config->pool.idle_seconds * 1000;
	struct worker *w = r->worker;

	if (now_ms - r->used_ms >= idle_ms * KEEP_TIMES) {
		free_recipe(r);
	} else if (r->stage == NOTHING && r->blocked_ms > 0 && now_ms >= r->blocked_ms) {
		enter(r, WANTED);
	} else if (r->stage == READY &&
		   w->generation != zygote_generation(share_zygote(w->share))) {
		give_up(r, WANTED);
	} else if (r->stage == READY && now_ms - r->used_ms >= idle_ms) {
		give_up(r, NOTHING);
	} else if (r->stage == READY) {
		uint64_t before_us = r->cpu_us;
		bool may_go_on = charge(r);

		r->restless = r->cpu_us > before_us + IDLE_CPU_US ? r->restless + 1 : 0;
		if (!may_go_on)
			give_up(r, NOTHING);
		else if (r->restless >= RESTLESS_SECONDS)
			refuse(r, "it uses the processor while it waits");
	}
}

void
ready_look_after(struct tenant *tenant)
{
	uint64_t now_ms = clock_ms();
	struct recipe *r, *next;

	for (r = TAILQ_FIRST(&tenant->recipes); r != NULL; r = next) {
		next = TAILQ_NEXT(r, own_link);
		look_after(r, now_ms);
	}
}

void
ready_yield(struct engine *engine)
{
	struct recipe *r = TAILQ_FIRST(&engine->ready->in[MAKING]);

	if (r != NULL)
		give_up(r, WANTED);
}

bool
ready_make_room(struct engine *engine)
{
	struct recipe *r = TAILQ_FIRST(&engine->ready->in[READY]);

	if (r != NULL)
		give_up(r, NOTHING);
	return r != NULL;
}

void
ready_forget_of(struct tenant *tenant)
{
	while (!TAILQ_EMPTY(&tenant->recipes))
		free_recipe(TAILQ_FIRST(&tenant->recipes));
}

void
ready_forget(struct engine *engine, const char *principal, const char *environment)
{
	struct recipe *r, *next;

	for (enum stage stage = NOTHING; stage < STAGES; stage++)
		for (r = TAILQ_FIRST(&engine->ready->in[stage]); r != NULL; r = next) {
			next = TAILQ_NEXT(r, link);
			if ((principal == NULL || strcmp(r->tenant->principal, principal) == 0) &&
			    (environment == NULL || strcmp(r->environment, environment) == 0))
				free_recipe(r);
		}
}

/* ---- all of them ---- */

void
ready_count(const struct engine *engine, struct ready_counts *counts_r)
{
	*counts_r = engine->ready->counts;
	counts_r->ready = engine->ready->n_in[READY];
}

void
ready_survey(const struct tenant *tenant,
	     void (*visit)(void *arg, const struct ready_recipe *recipe), void *arg)
{
	static const char *const states[STAGES] = {
		[NOTHING] = "idle", [WANTED] = "waiting", [MAKING] = "making", [READY] = "ready",
	};
	const struct recipe *r;

	TAILQ_FOREACH(r, &tenant->recipes, own_link) {
		struct ready_recipe seen = {
			.modules = &r->modules, .is_session = r->is_session,
			.state = r->failures > 0 && r->stage == NOTHING ? "refused"
									: states[r->stage],
			.made = r->made,
		};

		visit(arg, &seen);
	}
}

struct ready *
ready_new(struct engine *engine)
{
	struct ready *ready = xcalloc(1, sizeof(*ready));

	ready->engine = engine;
	for (enum stage stage = NOTHING; stage < STAGES; stage++)
		TAILQ_INIT(&ready->in[stage]);
	return ready;
}

void
ready_free(struct ready *ready)
{
	if (ready != NULL)
		ready_forget(ready->engine, NULL, NULL);
	free(ready);
}
