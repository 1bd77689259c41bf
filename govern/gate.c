/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: an account of each principal: who it is, the configuration in
 * force for it, and its used quotas. An account outlives its tenant in the engine: otherwise a
 * client could evade a quota by coming back. It is freed when the longest quota window has passed.
 *
 * The states of a uid that policy may name:
 *
 *   ASKED ──answer──> KNOWN ──half its time──> KNOWN and asked ──answer──> KNOWN
 *     │ ^               │ └──────all its time, or a reload──────> ASKED
 *     v └──a later request──┐
 *   FAILED ─────────────────┘   everything is denied
 *
 * The same holds for the uid of a peer, of which the owner is known then. All other principals are
 * KNOWN from the beginning. */
#include "govern/gate.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/execution.h"
#include "engine/observer.h"
#include "govern/alarms.h"
#include "govern/audit.h"
#include "govern/subject.h"
#include "host/directory.h"
#include "policy/chain.h"
#include "policy/config.h"
#include "policy/id_range.h"
#include "policy/keys.h"
#include "policy/people.h"
#include "policy/quota.h"

#define BUCKETS 4096
#define FORGET_AFTER_MS (QUOTA_HOUR_SLOT_MS * QUOTA_SLOTS)
#define LOOK_EVERY_S 60
#define ALIAS_FORGET_MS 60000		/* one user may have many subordinate uids */
#define INTERNAL_PER_EXECUTION 4		/* of the quota executions_per_minute */
#define MINOR_PER_MINUTE 120		/* of one tenant, about things that did not happen */

LIST_HEAD(gate_waits, gate_wait);

struct account {
	LIST_ENTRY(account) link;
	struct gate *gate;
	struct subject subject;
	bool is_peer;			/* the directory is asked, whatever policy names */
	uid_t owner;			/* of a known uid: itself, or whose range it is in */
	bool is_nobodys;		/* no account, and in no user's range */
	bool known;			/* subject holds the directory's answer */
	bool renewed;			/* the answer was asked for after the last reload */
	uint64_t known_ms, failed_ms;	/* time of the answer; time of the last failure */
	int error;			/* of the last lookup; 0: none, or it was answered */
	struct directory_lookup *lookup;	/* NULL: no lookup is under way */
	struct gate_waits waits;
	const struct config *config;	/* held */
	struct quota_window starts;	/* executions, by minute */
	struct quota_window internal;	/* of the service's own, for the tenant, by minute */
	struct quota_window cpu;	/* ms, by hour */
	struct quota_window audit;	/* bytes of records, by hour */
	struct quota_window minor;	/* records that may be left out, by minute */
	struct alarms alarms;
	uint32_t left_out[AUDIT_EVENT_COUNT];	/* since the last report */
	uint64_t disk_bytes;		/* of executions that have not ended */
	unsigned int executions;	/* executions that have not ended */
	uint64_t used_ms;		/* time of the last request */
	bool suspended;			/* by an operator: nothing of it runs */
};

struct gate {
	struct gate_options options;
	struct engine_observer observer;
	const struct config *config;	/* held */
	struct people people;		/* the people that it names */
	uint32_t directory_seconds, identity_seconds;	/* as of the start; */
	bool takes_unknown;		/* as is this: uids of nobody may connect */
	void (*on_reloaded)(void *arg);	/* NULL: no caller waits for it */
	void *on_reloaded_arg;
	LIST_HEAD(, account) account[BUCKETS];
	struct event *look;
	uint64_t alarms_raised[ALARM_PATTERNS];
};

/* ---- accounts ---- */

static uint64_t
now_of(const struct gate *gate)
{
	return gate->options.clock ? gate->options.clock() : clock_ms();
}

/* The configuration that refuses everything, and has no approvers. It is used for a principal
 * without a valid configuration. */
static const struct config *
deny_everything(void)
{
	struct config *config = config_new();

	key_clear(key_at((size_t)key_find("policy", "approvers")), config);
	key_clear(key_at((size_t)key_find("tool-calls", "servers")), config);
	config->policy.run_script = POLICY_DENY;
	config->policy.run_repl = POLICY_DENY;
	config->policy.install_package = POLICY_DENY;
	return config;
}

static void
make_config(struct account *account)
{
	config_free(account->config);
	account->config = account->known ? config_for(account->gate->config,
						      &account->subject.policy) : NULL;
	if (!account->config)
		account->config = deny_everything();
}

/* Does policy depend on the directory's answer about this account? */
static bool
is_asked_about(const struct account *account, uid_t *uid_r)
{
	return subject_is_uid(account->subject.principal, uid_r) &&
	       (account->is_peer || account->gate->people.any);
}

static struct account *
gate_find(struct gate *gate, const char *principal)
{
	size_t bucket = hash_text(HASH_BEGIN, principal) % BUCKETS;
	struct account *account;

	LIST_FOREACH(account, &gate->account[bucket], link)
		if (strcmp(account->subject.principal, principal) == 0)
			break;
	if (!account) {
		uid_t uid;

		account = xcalloc(1, sizeof(*account));
		account->gate = gate;
		LIST_INIT(&account->waits);
		subject_init(&account->subject, principal);
		account->known = account->renewed = !is_asked_about(account, &uid);
		make_config(account);
		LIST_INSERT_HEAD(&gate->account[bucket], account, link);
	}
	account->used_ms = clock_ms();
	return account;
}

void
gate_unwait(struct gate_wait *wait)
{
	if (wait->waits)
		LIST_REMOVE(wait, link);
	wait->waits = false;
}

static void
stop_asking(struct account *account)
{
	if (account->lookup)
		directory_cancel(account->lookup);
	account->lookup = NULL;
}

static void
free_account(struct account *account)
{
	struct gate_wait *wait;

	LIST_REMOVE(account, link);
	stop_asking(account);
	while ((wait = LIST_FIRST(&account->waits)))
		gate_unwait(wait);
	config_free(account->config);
	alarms_done(&account->alarms);
	subject_done(&account->subject);
	free(account);
}

static void
each_account(struct gate *gate, void (*visit)(struct gate *gate, struct account *account))
{
	struct account *account, *next;

	for (size_t i = 0; i < BUCKETS; i++)
		for (account = LIST_FIRST(&gate->account[i]); account; account = next) {
			next = LIST_NEXT(account, link);
			visit(gate, account);
		}
}

/* Is it a uid that nothing is ever charged to? */
static bool
is_alias(const struct account *account)
{
	uid_t uid;

	return account->is_peer && subject_is_uid(account->subject.principal, &uid) &&
	       (account->is_nobodys || account->owner != uid);
}

static void
forget_if_unused(struct gate *, struct account *account)
{
	uint64_t unused_ms = clock_ms() - account->used_ms;

	if (account->executions == 0 && !account->lookup && !account->suspended &&
	    unused_ms > (is_alias(account) ? ALIAS_FORGET_MS : FORGET_AFTER_MS))
		free_account(account);
}

static void
gate_forget(struct gate *, struct account *account)
{
	free_account(account);
}

/* ---- suspended by an operator ---- */

bool
gate_suspend(struct gate *gate, const char *principal, bool suspended)
{
	struct account *account = gate_find(gate, principal);
	bool changes = account->suspended != suspended;

	account->suspended = suspended;
	return changes;
}

bool
gate_is_suspended(struct gate *gate, const char *principal)
{
	return gate_find(gate, principal)->suspended;
}

void
gate_each_suspended(struct gate *gate, void (*visit)(void *arg, const char *principal), void *arg)
{
	const struct account *account;

	for (size_t i = 0; i < BUCKETS; i++)
		LIST_FOREACH(account, &gate->account[i], link)
			if (account->suspended)
				visit(arg, account->subject.principal);
}

static int
check_suspended(struct gate *gate, const struct account *account, struct why *why_r)
{
	if (!account->suspended)
		return 0;
	audit_write(gate->options.audit, AUDIT_DENIED, account->subject.principal, NULL,
		    json_pack("{s:s}", "why", "suspended"));
	return why_say(why_r, -EPERM, "", "denied: an operator of the service has suspended what "
		       "you run");
}

/* ---- alarms ---- */

static void
gate_watch(struct account *account, enum alarm_pattern pattern, double amount)
{
	struct gate *gate = account->gate;
	const struct alarm_count *count = &account->alarms.count[pattern];

	if (!alarms_add(&account->alarms, &account->config->alarms, pattern, amount, now_of(gate)))
		return;
	gate->alarms_raised[pattern]++;
	audit_write(gate->options.audit, AUDIT_ALARM_RAISED, account->subject.principal, NULL,
		    json_pack("{s:s,s:I,s:I}", "pattern", alarm_name(pattern), "count",
			      (json_int_t)count->raised_count, "usual",
			      (json_int_t)count->raised_usual));
}

static void
gate_attempt(void *arg, const char *tenant, enum audit_event event)
{
	static const bool is_denial[AUDIT_EVENT_COUNT] = {
		[AUDIT_DENIED] = true, [AUDIT_QUOTA_HIT] = true, [AUDIT_IMPORT_REFUSED] = true,
		[AUDIT_TOOL_REFUSED] = true, [AUDIT_APPROVAL_REFUSED] = true,
		[AUDIT_PACKAGE_REFUSED] = true, [AUDIT_CONNECTION_REFUSED] = true,
	};

	if (is_denial[event])
		gate_watch(gate_find(arg, tenant), ALARM_DENIALS, 1);
}

static void
visit_alarms(const struct account *account,
	     void (*visit)(void *arg, const struct gate_alarm *alarm), void *arg)
{
	uint64_t now = now_of(account->gate);

	for (unsigned int i = 0; i < ALARM_PATTERNS; i++) {
		const struct alarm_count *count = &account->alarms.count[i];

		if (alarms_is_raised(&account->alarms, &account->config->alarms, i, now))
			visit(arg, &(struct gate_alarm){
				account->subject.principal, alarm_name(i), count->raised_count,
				count->raised_usual, (now - count->raised_ms) / 1000 });
	}
}

void
gate_each_alarm(struct gate *gate, void (*visit)(void *arg, const struct gate_alarm *alarm),
		void *arg)
{
	const struct account *account;

	for (size_t i = 0; i < BUCKETS; i++)
		LIST_FOREACH(account, &gate->account[i], link)
			visit_alarms(account, visit, arg);
}

uint64_t
gate_alarms_raised(const struct gate *gate, unsigned int pattern)
{
	return gate->alarms_raised[pattern];
}

/* ---- the audit log's budget ---- */

static uint64_t
audit_wait_ms(struct account *account)
{
	uint64_t bytes = account->config->quota.audit_bytes_per_hour;

	return bytes ? quota_wait_ms(&account->audit, QUOTA_HOUR_SLOT_MS, clock_ms(), bytes) : 0;
}

static bool
gate_may_write(void *arg, const char *tenant, enum audit_event event, bool minor)
{
	struct account *account = gate_find(arg, tenant);
	uint64_t now = clock_ms();

	if (audit_wait_ms(account) == 0 &&
	    (!minor || quota_used(&account->minor, QUOTA_MINUTE_SLOT_MS, now) < MINOR_PER_MINUTE)) {
		if (minor)
			quota_add(&account->minor, QUOTA_MINUTE_SLOT_MS, now, 1);
		return true;
	}
	if (minor)
		account->left_out[event]++;
	return false;
}

static void
gate_spend(void *arg, const char *tenant, uint64_t bytes)
{
	quota_add(&gate_find(arg, tenant)->audit, QUOTA_HOUR_SLOT_MS, clock_ms(), bytes);
}

/* Writes one record for all that were left out within the last minute. */
static void
tell_left_out(struct gate *gate, struct account *account)
{
	json_t *more = json_object();

	for (size_t i = 0; i < AUDIT_EVENT_COUNT; i++)
		if (account->left_out[i])
			json_object_set_new(more, audit_event_name(i),
					    json_integer(account->left_out[i]));
	memset(account->left_out, 0, sizeof(account->left_out));
	if (json_object_size(more) > 0)
		audit_write(gate->options.audit, AUDIT_LEFT_OUT, account->subject.principal, NULL,
			    json_pack("{s:o}", "records", more));
	else
		json_decref(more);
}

static void
on_look(evutil_socket_t, short, void *arg)
{
	each_account(arg, tell_left_out);
	each_account(arg, forget_if_unused);
}

/* ---- identities of principals ---- */

static void
finish_reload(struct gate *gate)
{
	void (*on_reloaded)(void *arg) = gate->on_reloaded;
	const struct account *account;

	for (size_t i = 0; i < BUCKETS; i++)
		LIST_FOREACH(account, &gate->account[i], link)
			if (!account->renewed && account->lookup)
				return;
	gate->on_reloaded = NULL;
	if (on_reloaded)
		on_reloaded(gate->on_reloaded_arg);
}

static void
gate_on_answer(void *arg, int error, const struct directory_person *person)
{
	struct account *account = arg;
	struct gate *gate = account->gate;
	struct gate_waits now = LIST_HEAD_INITIALIZER(now);
	struct gate_wait *wait;

	account->lookup = NULL;
	account->renewed = true;
	account->error = error;
	if (error) {
		account->failed_ms = now_of(gate);
		log_line(LOG_WARNING, "directory-failed", "tenant=%s err=%s known=%s",
			 account->subject.principal, strerrorname_np(-error),
			 account->known ? "before" : "no");
	} else {
		account->known = true;
		account->known_ms = now_of(gate);
		account->owner = person->uid;
		account->is_nobodys = !person->user;
		subject_learn(&account->subject, &gate->people, person);
	}
	make_config(account);
	/* A waiter may ask again at once, and wait again. */
	while ((wait = LIST_FIRST(&account->waits))) {
		LIST_REMOVE(wait, link);
		LIST_INSERT_HEAD(&now, wait, link);
	}
	while ((wait = LIST_FIRST(&now))) {
		gate_unwait(wait);
		wait->on_known(wait->arg);
	}
	finish_reload(gate);
}

static void
gate_ask(struct account *account, uid_t uid)
{
	struct gate *gate = account->gate;

	account->lookup = directory_ask(gate->options.directory, uid,
					  (const char *const *)gate->people.group,
					  gate->people.n, gate->directory_seconds,
					  gate_on_answer, account);
}

static int
say_unknown(int error, struct why *why_r)
{
	if (!why_r)
		return error;
	if (error == -EMLINK)
		return why_say(why_r, error, "", "denied: your uid may be that of several users of "
			       "the host, by its ranges of subordinate uids (subuid): tell the "
			       "operator");
	if (error == -EACCES)
		return why_say(why_r, error, "", "denied: your uid has no account on the host, and "
			       "belongs to no user's range of subordinate uids ([service] "
			       "unknown_uids)");
	return why_say(why_r, error, "", "denied: policy does not know who you are, because the "
		       "host's directory of users %s; try again later",
		       error == -ETIMEDOUT ? "does not answer" : "cannot be asked");
}

static bool
is_refused(const struct account *account)
{
	return account->is_peer && account->is_nobodys && !account->gate->takes_unknown;
}

int
gate_identify(struct gate *gate, const char *principal, struct gate_wait *wait,
	      struct why *why_r)
{
	struct account *account = gate ? gate_find(gate, principal) : NULL;
	uint64_t now = gate ? now_of(gate) : 0, good_ms;
	bool failed_now;
	uid_t uid;

	if (!account || !is_asked_about(account, &uid))
		return 0;
	if (!gate->options.directory)
		return say_unknown(-ENOSYS, why_r);
	good_ms = (uint64_t)gate->identity_seconds * 1000;
	failed_now = account->error &&
		     now - account->failed_ms < (uint64_t)gate->directory_seconds * 1000;
	if (account->known && now - account->known_ms >= good_ms) {
		account->known = false;
		make_config(account);
	}
	if (account->known && account->renewed) {
		if (now - account->known_ms >= good_ms / 2 && !account->lookup && !failed_now)
			gate_ask(account, uid);
		return is_refused(account) ? say_unknown(-EACCES, why_r) : 0;
	}
	if (!account->lookup && failed_now)
		return say_unknown(account->error, why_r);
	if (!account->lookup)
		gate_ask(account, uid);
	if (wait && !wait->waits) {
		LIST_INSERT_HEAD(&account->waits, wait, link);
		wait->waits = true;
	}
	return -EINPROGRESS;
}

int
gate_owner(struct gate *gate, uid_t uid, struct gate_wait *wait, uid_t *owner_r,
	   struct why *why_r)
{
	struct account *account;
	char principal[32];
	int r;

	*owner_r = uid;
	if (gate && gate->options.lacks_uids && uid == ID_RANGE_NOBODY)
		return why_r ? why_say(why_r, -EMLINK, "", "denied: your uid does not exist in the "
				       "service's user namespace, so it cannot be told from others: "
				       "tell the operator") : -EMLINK;
	if (!gate || uid == 0 || uid == geteuid())
		return 0;
	snprintf(principal, sizeof(principal), "uid:%u", uid);
	account = gate_find(gate, principal);
	if (!account->is_peer && !gate->people.any) {
		account->known = account->renewed = false;	/* the directory was never asked */
		make_config(account);
	}
	account->is_peer = true;
	r = gate_identify(gate, principal, wait, why_r);
	if (r == 0)
		*owner_r = account->owner;
	return r;
}

/* ---- configurations in force ---- */

static uint32_t
gate_least(uint32_t quota, uint32_t other)
{
	return quota && quota < other ? quota : other;
}

const struct config *
gate_common_config(const struct gate *gate)
{
	return gate->config;
}

const struct config *
gate_config(struct gate *gate, struct tenant *tenant)
{
	const struct config *config = gate_find(gate, tenant_principal(tenant))->config;

	tenant_bound(tenant, gate_least(config->quota.concurrent, config->pool.tenant_running_max),
		     gate_least(config->quota.queued, config->pool.tenant_queue_max));
	return config_hold(config);
}

const struct config *
gate_config_named(struct gate *gate, const char *principal)
{
	return config_hold(gate_find(gate, principal)->config);
}

const struct policy_subject *
gate_subject(struct gate *gate, const char *principal)
{
	return &gate_find(gate, principal)->subject.policy;
}

size_t
gate_sessions_max(struct gate *gate, const char *principal, size_t others)
{
	size_t quota = gate ? gate_find(gate, principal)->config->quota.sessions : 0;

	return quota && quota < others ? quota : others;
}

void
gate_session(struct gate *gate, const char *principal, const char *carrier, const char *why)
{
	if (gate && gate->options.audit)
		audit_write(gate->options.audit,
			    why ? AUDIT_SESSION_CLOSED : AUDIT_SESSION_OPENED, principal, NULL,
			    json_pack("{s:s,s:s*}", "carrier", carrier, "why", why));
}

/* The old configuration stays in force until the lookup is answered. */
static void
gate_renew(struct gate *gate, struct account *account)
{
	uid_t uid;

	stop_asking(account);
	account->error = 0;
	account->renewed = !is_asked_about(account, &uid) || !gate->options.directory;
	if (!account->renewed)
		gate_ask(account, uid);
	else
		make_config(account);
}

void
gate_reload(struct gate *gate, const struct config *config, void (*on_done)(void *arg), void *arg)
{
	struct people people;
	bool same;

	config_free(gate->config);
	gate->config = config_hold(config);
	people_of(config, &people);
	same = people_are_same(&people, &gate->people);
	people_done(&gate->people);
	gate->people = people;
	for (size_t i = 0; i < BUCKETS; i++) {
		struct account *account;
		uid_t uid;

		LIST_FOREACH(account, &gate->account[i], link)
			if (!same)
				account->known = !is_asked_about(account, &uid);
	}
	gate->on_reloaded = on_done;
	gate->on_reloaded_arg = arg;
	each_account(gate, gate_renew);
	finish_reload(gate);
}

/* ---- executions ---- */

static int
gate_refuse(struct gate *gate, const struct account *account, const char *quota)
{
	audit_write(gate->options.audit, AUDIT_QUOTA_HIT, account->subject.principal, NULL,
		    json_pack("{s:s}", "quota", quota));
	return -EDQUOT;
}

static bool
is_queue_full(const struct tenant *tenant, uint32_t most)
{
	struct tenant_counts counts;

	tenant_count(tenant, &counts);
	return counts.queued >= most;
}

/* Executions for the service's own purposes count, too: the tenant causes their records. */
static int
check_audit_quota(struct gate *gate, struct account *account, struct why *why_r)
{
	uint64_t wait = audit_wait_ms(account);

	if (wait == 0)
		return 0;
	why_say(why_r, 0, "audit_bytes_per_hour",
		"quota audit_bytes_per_hour: the records of your calls within this hour take all "
		"that they may; try again in %" PRIu64 " seconds", (wait + 999) / 1000);
	return gate_refuse(gate, account, "audit_bytes_per_hour");
}

/* A call of the tenant may need some executions of the service's own: to check, resolve, build. So
 * these have a rate of their own. */
static int
check_rate(struct gate *gate, struct account *account, bool internal, struct why *why_r)
{
	uint64_t most = (uint64_t)account->config->quota.per_minute *
			(internal ? INTERNAL_PER_EXECUTION : 1);
	uint64_t wait = most ? quota_wait_ms(internal ? &account->internal : &account->starts,
					     QUOTA_MINUTE_SLOT_MS, clock_ms(), most) : 0;

	if (!wait)
		return 0;
	why_say(why_r, 0, "executions_per_minute",
		"quota executions_per_minute: %" PRIu64 " %s were started within a minute; try "
		"again in %" PRIu64 " seconds", most,
		internal ? "checks, resolutions and builds for you" : "executions",
		(wait + 999) / 1000);
	return gate_refuse(gate, account, "executions_per_minute");
}

static int
check_cpu(struct gate *gate, struct account *account, struct why *why_r)
{
	uint32_t most = account->config->quota.cpu_seconds_per_hour;
	uint64_t wait = most ? quota_wait_ms(&account->cpu, QUOTA_HOUR_SLOT_MS, clock_ms(),
					     (uint64_t)most * 1000) : 0;

	if (!wait)
		return 0;
	why_say(why_r, 0, "cpu_seconds_per_hour",
		"quota cpu_seconds_per_hour: the %u seconds of processor time of this hour are "
		"used up; try again in %" PRIu64 " seconds", most, (wait + 999) / 1000);
	return gate_refuse(gate, account, "cpu_seconds_per_hour");
}

/* The number that wait and their disk are bounded for the tenant's own executions only: one of the
 * service's own is a part of a call that has a place already. */
static int
check_quotas(struct gate *gate, struct account *account, const struct engine_event *event,
	     struct why *why_r)
{
	const struct config *config = account->config;
	int r = check_rate(gate, account, event->internal, why_r);

	if (r == 0 && !event->internal && config->quota.queued &&
	    is_queue_full(event->tenant, config->quota.queued)) {
		why_say(why_r, 0, "queued", "quota queued: %u of your executions wait already; "
			"try again when one of them is over", config->quota.queued);
		return gate_refuse(gate, account, "queued");
	}
	if (r == 0)
		r = check_cpu(gate, account, why_r);
	if (r == 0 && !event->internal && config->quota.disk_bytes &&
	    account->disk_bytes + event->disk_bytes > config->quota.disk_bytes) {
		why_say(why_r, 0, "disk_bytes",
			"quota disk_bytes: your executions that are not over have all the "
			"disk that is yours; try again when one of them is over");
		return gate_refuse(gate, account, "disk_bytes");
	}
	return r;
}

static json_t *
describe_start(const struct gate *gate, const struct engine_event *event)
{
	char hash[CHAIN_DIGITS + 1];
	json_t *more;

	chain_hash(event->script, event->script_len, hash);
	more = xalloc_check(json_pack("{s:s,s:s,s:{s:I,s:I,s:I,s:I}}", "sha256", hash, "profile",
				      event->profile, "limits",
				      "wall_ms", (json_int_t)event->limits->wall_ms,
				      "cpu_ms", (json_int_t)event->limits->cpu_ms,
				      "memory_bytes", (json_int_t)event->limits->memory_bytes,
				      "pids", (json_int_t)event->limits->pids));
	if (event->is_cell)
		json_object_set_new(more, "cell", json_true());
	if (event->internal)
		json_object_set_new(more, "internal", json_true());
	else
		audit_add_source(gate->options.audit, more, event->script, event->script_len);
	return more;
}

/* An execution that waits for its record. */
struct gate_hold {
	struct writing_wait recorded;
	struct engine_hold *hold;
};

static void
gate_on_recorded(void *arg, int error)
{
	struct gate_hold *waits = arg;
	struct engine_hold *hold = waits->hold;

	free(waits);
	hold->on_over(hold, error);
}

static void
gate_release(struct engine_hold *hold)
{
	struct gate_hold *waits = hold ? hold->what : NULL;

	if (!waits)
		return;
	writing_unwait(&waits->recorded);
	free(waits);
	hold->what = NULL;
}

/* The record comes first: the execution is held until it is written. 0 or -errno. */
static int
record_start(const struct gate *gate, const struct account *account,
	     const struct engine_event *event)
{
	struct gate_hold *waits = xcalloc(1, sizeof(*waits));
	int r;

	*waits = (struct gate_hold){ { .on_written = gate_on_recorded, .arg = waits },
				     event->hold };
	event->hold->what = waits;
	event->hold->release = gate_release;
	r = audit_write_first(gate->options.audit, AUDIT_EXECUTION_STARTED,
			      account->subject.principal, event->id, describe_start(gate, event),
			      &waits->recorded);
	if (r == -EINPROGRESS)
		return 0;
	gate_release(event->hold);
	return r;
}

static int
gate_on_start(void *arg, const struct engine_event *event, struct why *why_r)
{
	struct gate *gate = arg;
	struct account *account = gate_find(gate, tenant_principal(event->tenant));
	const char *only = tenant_profile(event->tenant);
	/* Also of the service's own programs, which check and build what the tenant sends. */
	int r = check_suspended(gate, account, why_r);

	if (r < 0)
		return r;
	/* A session may have begun before its tenant was bound to another profile. */
	if (!event->internal && *only && strcmp(only, event->profile) != 0)
		return why_say(why_r, -EACCES, "profile", "profile: your scripts run in the "
			       "profile %s alone", only);
	if (!event->internal &&
	    !policy_allows_profile(account->config, event->profile))
		return why_say(why_r, -EACCES, "profile", "profile: %s is not among those "
			       "that your scripts may run in", event->profile);
	r = check_quotas(gate, account, event, why_r);
	if (r == 0 && gate->options.audit)
		r = check_audit_quota(gate, account, why_r);
	if (r < 0)
		return r;
	if (gate->options.audit && record_start(gate, account, event) < 0)
		return why_say(why_r, -EIO, "", "the audit log cannot be written, and nothing "
			       "may run without it: tell the operator");
	quota_add(event->internal ? &account->internal : &account->starts, QUOTA_MINUTE_SLOT_MS,
		  clock_ms(), 1);
	account->disk_bytes += event->disk_bytes;
	account->executions++;
	if (!event->internal)
		gate_watch(account, ALARM_EXECUTIONS, 1);
	return 0;
}

/* The memory limit is the one that it ran with: a session's may be raised while a cell waits. */
static json_t *
describe_end(const struct engine_event *event, const struct outcome *outcome)
{
	return json_pack("{s:s,s:i,s:i,s:I,s:I,s:I,s:I,s:I}",
			 "status", outcome_status_name(outcome->status),
			 "exit_code", outcome->exit_code, "signal", outcome->signal,
			 "duration_ms", (json_int_t)outcome->duration_ms,
			 "cpu_ms", (json_int_t)outcome->cpu_ms, "cpu_us", (json_int_t)outcome->cpu_us,
			 "peak_memory_bytes", (json_int_t)outcome->peak_memory_bytes,
			 "memory_limit_bytes", (json_int_t)event->limits->memory_bytes);
}

/* Of what the client gets as text. */
static void
add_outputs(const struct audit *audit, json_t *more, const struct outcome *outcome)
{
	static const char *const names[STREAM_COUNT] = { "stdout", "stderr" };
	static const char *const behind[STREAM_COUNT] = { "background_stdout", "background_stderr" };
	const char *value = outcome->value_repr ? outcome->value_repr : "";
	const char *error = outcome->error_traceback ? outcome->error_traceback : "";

	for (unsigned int i = 0; i < STREAM_COUNT; i++) {
		const struct outcome_stream *stream = &outcome->stream[i];
		const struct outcome_stream *late = &outcome->background[i];

		audit_add_output(audit, more, names[i], stream->text, stream->len, stream->written);
		audit_add_output(audit, more, behind[i], late->text, late->len, late->len);
	}
	audit_add_output(audit, more, "result", value, strlen(value), strlen(value));
	audit_add_output(audit, more, "error", error, strlen(error), strlen(error));
}

static void
gate_on_end(void *arg, const struct engine_event *event, const struct outcome *outcome)
{
	struct account *account = gate_find(arg, tenant_principal(event->tenant));

	gate_release(event->hold);
	assert(account->executions > 0 && account->disk_bytes >= event->disk_bytes);
	account->executions--;
	account->disk_bytes -= event->disk_bytes;
	if (!event->internal && outcome->status != OUTCOME_OK &&
	    outcome->status != OUTCOME_CANCELLED)
		gate_watch(account, ALARM_FAILURES, 1);
}

static uint64_t
gate_on_cpu(void *arg, const struct tenant *tenant, uint64_t cpu_ms)
{
	struct account *account = gate_find(arg, tenant_principal(tenant));
	uint64_t now = clock_ms(), most = account->config->quota.cpu_seconds_per_hour * 1000ULL;
	uint64_t used;

	quota_add(&account->cpu, QUOTA_HOUR_SLOT_MS, now, cpu_ms);
	gate_watch(account, ALARM_CPU_SECONDS, (double)cpu_ms / 1000);
	used = quota_used(&account->cpu, QUOTA_HOUR_SLOT_MS, now);
	return most == 0 ? UINT64_MAX : used < most ? most - used : 0;
}

static json_t *
describe_refused(const struct outcome *outcome)
{
	json_t *names = json_array();

	for (size_t i = 0; i < outcome->n_refused_imports; i++)
		json_array_append_new(names, json_string(outcome->refused_import[i]));
	return json_pack("{s:o}", "names", names);
}

static json_t *
describe_found(const struct outcome *outcome)
{
	json_t *names = json_array();

	for (size_t i = 0; i < outcome->n_found_modules; i++)
		json_array_append_new(names, json_string(outcome->found_module[i]));
	return json_pack("{s:o,s:s}", "names", names, "environment", outcome->environment);
}

/* The record of an end cannot refuse anything any more, so the answer does not wait for disk or
 * journal. */
static void
gate_on_answered(void *arg, const struct engine_event *event, const struct outcome *outcome)
{
	const struct gate *gate = arg;
	const char *principal = tenant_principal(event->tenant);
	json_t *more;

	if (!gate->options.audit || outcome->status == OUTCOME_AUDIT_UNAVAILABLE)
		return;
	more = describe_end(event, outcome);
	if (!event->internal)
		add_outputs(gate->options.audit, more, outcome);
	audit_write(gate->options.audit, AUDIT_EXECUTION_ENDED, principal, event->id, more);
	if (outcome_is_limit(outcome->status))
		audit_write(gate->options.audit, AUDIT_LIMIT_HIT, principal,
			    event->id, json_pack("{s:s,s:s}", "status",
						 outcome_status_name(outcome->status),
						 "message", outcome->message));
	if (outcome->n_refused_imports > 0)
		audit_write(gate->options.audit, AUDIT_IMPORT_REFUSED, principal, event->id,
			    describe_refused(outcome));
	if (outcome->environment)
		audit_write(gate->options.audit, AUDIT_IMPORT_FOUND, principal, event->id,
			    describe_found(outcome));
}

static void
gate_on_connection(void *arg, const struct engine_connection *c)
{
	struct gate *gate = arg;
	struct account *account = gate_find(gate, c->tenant);
	json_t *more;

	if (c->connected && c->host &&
	    alarms_is_new_host(&account->alarms, c->host, c->host_len))
		gate_watch(account, ALARM_NEW_HOSTS, 1);
	if (!gate->options.audit)
		return;
	more = xalloc_check(json_pack("{s:s}", "verdict", c->verdict));
	/* text that is not UTF-8 is left out */
	if (c->host)
		json_object_set_new(more, "host", json_stringn(c->host, c->host_len));
	json_object_set_new(more, "port", json_integer(c->port));
	if (c->address)
		json_object_set_new(more, "address", json_stringn(c->address, c->address_len));
	json_object_set_new(more, "sent", json_integer((json_int_t)c->sent));
	json_object_set_new(more, "received", json_integer((json_int_t)c->received));
	json_object_set_new(more, "ms", json_integer((json_int_t)c->milliseconds));
	/* Bytes may have left on a connection that a limit or the execution's end has cut. */
	audit_write(gate->options.audit,
		    c->connected ? AUDIT_CONNECTION : AUDIT_CONNECTION_REFUSED, c->tenant,
		    c->execution, more);
}

/* ---- creation and end ---- */

struct gate *
gate_new(const struct gate_options *options)
{
	static const struct timeval every = { LOOK_EVERY_S, 0 };
	struct gate *gate = xcalloc(1, sizeof(*gate));

	gate->options = *options;
	gate->config = config_hold(options->config);
	people_of(options->config, &gate->people);
	gate->directory_seconds = options->config->service.directory_seconds;
	gate->identity_seconds = options->config->service.identity_seconds;
	gate->takes_unknown = options->config->service.unknown_uids == UNKNOWN_UIDS_ALLOW;
	gate->observer = (struct engine_observer){ .on_start = gate_on_start, .on_end = gate_on_end,
						   .on_cpu = gate_on_cpu,
						   .on_answered = gate_on_answered,
						   .on_connection = gate_on_connection,
						   .arg = gate };
	for (size_t i = 0; i < BUCKETS; i++)
		LIST_INIT(&gate->account[i]);
	gate->look = xalloc_check(event_new(options->base, -1, EV_PERSIST, on_look, gate));
	evtimer_add(gate->look, &every);
	if (options->audit)
		audit_set_budget(options->audit, &(struct audit_budget){
			.attempt = gate_attempt, .may_write = gate_may_write,
			.spend = gate_spend, .arg = gate });
	return gate;
}

void
gate_free(struct gate *gate)
{
	if (!gate)
		return;
	each_account(gate, tell_left_out);
	if (gate->options.audit)
		audit_set_budget(gate->options.audit, &(struct audit_budget){ .arg = NULL });
	each_account(gate, gate_forget);
	event_free(gate->look);
	people_done(&gate->people);
	config_free(gate->config);
	free(gate);
}

struct audit *
gate_audit(const struct gate *gate)
{
	return gate ? gate->options.audit : NULL;
}

struct approvals *
gate_approvals(const struct gate *gate)
{
	return gate ? gate->options.approvals : NULL;
}

const struct advisories *
gate_advisories(const struct gate *gate)
{
	return gate ? gate->options.advisories : NULL;
}

const struct engine_observer *
gate_observer(struct gate *gate)
{
	return &gate->observer;
}
