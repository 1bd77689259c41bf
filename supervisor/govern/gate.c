/* Runs in: the supervisor.   Owns: an account of each principal: who it is, what is in force
 * for it, and what it has used. An account outlives its tenant in the engine, or coming back
 * would be a way around a quota; it is forgotten when the longest window has gone by. */
#include "supervisor/govern/gate.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/queue.h>

#include <event2/event.h>

#include "policy/chain.h"
#include "policy/config.h"
#include "policy/quota.h"
#include "policy/why.h"
#include "proto/clock.h"
#include "supervisor/govern/audit.h"
#include "supervisor/engine/engine.h"
#include "supervisor/engine/execution.h"
#include "supervisor/engine/observer.h"
#include "supervisor/subject.h"
#include "supervisor/xalloc.h"

#define BUCKETS 256
#define FORGET_AFTER_MS (QUOTA_HOUR_SLOT_MS * QUOTA_SLOTS)
#define LOOK_EVERY_S 60

struct account {
	LIST_ENTRY(account) link;
	struct subject subject;
	const struct config *config;	/* held */
	struct quota_window starts;	/* executions, by the minute */
	struct quota_window cpu;	/* ms, by the hour */
	uint64_t disk_bytes;		/* of executions that are not over */
	unsigned int executions;	/* that are not over */
	uint64_t used_ms;		/* when somebody last asked */
};

struct gate {
	struct gate_options options;
	struct engine_observer observer;
	const struct config *config;	/* held */
	LIST_HEAD(, account) account[BUCKETS];
	struct event *look;
};

/* ---- accounts ---- */

static size_t
bucket_of(const char *principal)
{
	uint32_t hash = 2166136261;	/* FNV-1a */

	while (*principal)
		hash = (hash ^ (unsigned char)*principal++) * 16777619;
	return hash % BUCKETS;
}

/* Sections that cannot be put together: nothing may be let through for want of a rule. */
static const struct config *
deny_everything(void)
{
	struct config *config = config_new();

	config->policy.run_script = POLICY_DENY;
	config->policy.run_repl = POLICY_DENY;
	config->policy.install_package = POLICY_DENY;
	return config;
}

static void
make_config(struct gate *gate, struct account *account)
{
	config_free(account->config);
	account->config = config_for(gate->config, &account->subject.policy);
	if (!account->config)
		account->config = deny_everything();
}

static struct account *
find(struct gate *gate, const char *principal)
{
	size_t bucket = bucket_of(principal);
	struct account *account;

	LIST_FOREACH(account, &gate->account[bucket], link)
		if (strcmp(account->subject.principal, principal) == 0)
			break;
	if (!account) {
		account = xcalloc(1, sizeof(*account));
		subject_read(principal, &account->subject);
		make_config(gate, account);
		LIST_INSERT_HEAD(&gate->account[bucket], account, link);
	}
	account->used_ms = clock_ms();
	return account;
}

static void
free_account(struct account *account)
{
	LIST_REMOVE(account, link);
	config_free(account->config);
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

static void
forget_if_unused(struct gate *gate, struct account *account)
{
	(void)gate;
	if (account->executions == 0 && clock_ms() - account->used_ms > FORGET_AFTER_MS)
		free_account(account);
}

static void
forget(struct gate *gate, struct account *account)
{
	(void)gate;
	free_account(account);
}

static void
on_look(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	each_account(arg, forget_if_unused);
}

/* ---- what is in force ---- */

static uint32_t
least(uint32_t quota, uint32_t other)
{
	return quota && quota < other ? quota : other;
}

const struct config *
gate_config(struct gate *gate, struct tenant *tenant)
{
	const struct config *config = find(gate, tenant_principal(tenant))->config;

	tenant_bound(tenant, least(config->quota.concurrent, config->pool.tenant_running_max),
		     least(config->quota.queued, config->pool.tenant_queue_max));
	return config_hold(config);
}

const struct config *
gate_config_named(struct gate *gate, const char *principal)
{
	return config_hold(find(gate, principal)->config);
}

const struct policy_subject *
gate_subject(struct gate *gate, const char *principal)
{
	return &find(gate, principal)->subject.policy;
}

size_t
gate_sessions_max(struct gate *gate, const char *principal, size_t others)
{
	size_t quota = gate ? find(gate, principal)->config->quota.sessions : 0;

	return quota && quota < others ? quota : others;
}

void
gate_session(struct gate *gate, const char *principal, const char *carrier, bool begins)
{
	if (gate && gate->options.audit)
		audit_write(gate->options.audit,
			    begins ? AUDIT_SESSION_OPENED : AUDIT_SESSION_CLOSED, principal, NULL,
			    json_pack("{s:s}", "carrier", carrier));
}

void
gate_reload(struct gate *gate, const struct config *config)
{
	config_free(gate->config);
	gate->config = config_hold(config);
	/* who somebody is may be another answer by now, too */
	for (size_t i = 0; i < BUCKETS; i++) {
		struct account *account;

		LIST_FOREACH(account, &gate->account[i], link) {
			char *principal = xstrdup(account->subject.principal);

			subject_done(&account->subject);
			subject_read(principal, &account->subject);
			free(principal);
			make_config(gate, account);
		}
	}
}

/* ---- executions ---- */

static int
refuse(struct gate *gate, const struct account *account, const char *quota)
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

static int
check_quotas(struct gate *gate, struct account *account, const struct engine_event *event,
	     struct why *why_r)
{
	const struct config *config = account->config;
	uint64_t now = clock_ms(), wait;

	wait = config->quota.per_minute
	       ? quota_wait_ms(&account->starts, QUOTA_MINUTE_SLOT_MS, now,
			       config->quota.per_minute) : 0;
	if (wait) {
		why_say(why_r, 0, "executions_per_minute",
			"quota executions_per_minute: %u executions were started within a "
			"minute; try again in %" PRIu64 " seconds",
			config->quota.per_minute, (wait + 999) / 1000);
		return refuse(gate, account, "executions_per_minute");
	}
	if (config->quota.queued && is_queue_full(event->tenant, config->quota.queued)) {
		why_say(why_r, 0, "queued", "quota queued: %u of your executions wait already; "
			"try again when one of them is over", config->quota.queued);
		return refuse(gate, account, "queued");
	}
	wait = config->quota.cpu_seconds_per_hour
	       ? quota_wait_ms(&account->cpu, QUOTA_HOUR_SLOT_MS, now,
			       (uint64_t)config->quota.cpu_seconds_per_hour * 1000) : 0;
	if (wait) {
		why_say(why_r, 0, "cpu_seconds_per_hour",
			"quota cpu_seconds_per_hour: the %u seconds of processor time of "
			"this hour are used up; try again in %" PRIu64 " seconds",
			config->quota.cpu_seconds_per_hour, (wait + 999) / 1000);
		return refuse(gate, account, "cpu_seconds_per_hour");
	}
	if (config->quota.disk_bytes &&
	    account->disk_bytes + event->disk_bytes > config->quota.disk_bytes) {
		why_say(why_r, 0, "disk_bytes",
			"quota disk_bytes: your executions that are not over have all the "
			"disk that is yours; try again when one of them is over");
		return refuse(gate, account, "disk_bytes");
	}
	return 0;
}

static json_t *
describe_start(const struct gate *gate, const struct engine_event *event)
{
	char hash[CHAIN_DIGITS + 1];
	json_t *more = xalloc_check(json_object());

	chain_hash(event->script, event->script_len, hash);
	json_object_set_new(more, "sha256", json_string(hash));
	json_object_set_new(more, "profile", json_string(event->profile));
	json_object_set_new(more, "limits",
			    json_pack("{s:I,s:I,s:I,s:I}",
				      "wall_ms", (json_int_t)event->limits->wall_ms,
				      "cpu_ms", (json_int_t)event->limits->cpu_ms,
				      "memory_bytes", (json_int_t)event->limits->memory_bytes,
				      "pids", (json_int_t)event->limits->pids));
	if (event->internal)
		json_object_set_new(more, "internal", json_true());
	else if (audit_wants_source(gate->options.audit))
		json_object_set_new(more, "source",
				    json_stringn(event->script, event->script_len));
	return more;
}

static int
on_start(void *arg, const struct engine_event *event, struct why *why_r)
{
	struct gate *gate = arg;
	struct account *account = find(gate, tenant_principal(event->tenant));
	int r;

	if (!event->internal &&
	    !policy_allows_profile(account->config, event->profile))
		return why_say(why_r, -EACCES, "profile", "profile: %s is not among those "
			       "that your scripts may run in", event->profile);
	r = event->internal ? 0 : check_quotas(gate, account, event, why_r);
	if (r < 0)
		return r;
	if (gate->options.audit &&
	    audit_write(gate->options.audit, AUDIT_EXECUTION_STARTED,
			account->subject.principal, event->id,
			describe_start(gate, event)) < 0)
		return why_say(why_r, -EIO, "", "the audit log cannot be written, and nothing "
			       "may run without it: tell the operator");
	if (!event->internal)
		quota_add(&account->starts, QUOTA_MINUTE_SLOT_MS, clock_ms(), 1);
	account->disk_bytes += event->disk_bytes;
	account->executions++;
	return 0;
}

static bool
is_limit(enum outcome_status status)
{
	return status == OUTCOME_TIMEOUT || status == OUTCOME_CPU_LIMIT ||
	       status == OUTCOME_MEMORY_LIMIT || status == OUTCOME_PIDS_LIMIT ||
	       status == OUTCOME_OUTPUT_LIMIT || status == OUTCOME_DISK_LIMIT;
}

static json_t *
describe_end(const struct outcome *outcome)
{
	return json_pack("{s:s,s:i,s:i,s:I,s:I,s:I}",
			 "status", outcome_status_name(outcome->status),
			 "exit_code", outcome->exit_code, "signal", outcome->signal,
			 "duration_ms", (json_int_t)outcome->duration_ms,
			 "cpu_ms", (json_int_t)outcome->cpu_ms,
			 "peak_memory_bytes", (json_int_t)outcome->peak_memory_bytes);
}

static void
on_end(void *arg, const struct engine_event *event, const struct outcome *outcome)
{
	struct account *account = find(arg, tenant_principal(event->tenant));

	assert(account->executions > 0 && account->disk_bytes >= event->disk_bytes);
	account->executions--;
	account->disk_bytes -= event->disk_bytes;
	quota_add(&account->cpu, QUOTA_HOUR_SLOT_MS, clock_ms(), outcome->cpu_ms);
}

/* The record of an end says nothing that could still be refused, so no answer waits for the
 * disk or the journal. */
static void
on_answered(void *arg, const struct engine_event *event, const struct outcome *outcome)
{
	const struct gate *gate = arg;
	const char *principal = tenant_principal(event->tenant);

	if (!gate->options.audit)
		return;
	audit_write(gate->options.audit, AUDIT_EXECUTION_ENDED, principal, event->id,
		    describe_end(outcome));
	if (is_limit(outcome->status))
		audit_write(gate->options.audit, AUDIT_LIMIT_HIT, principal,
			    event->id, json_pack("{s:s,s:s}", "status",
						 outcome_status_name(outcome->status),
						 "message", outcome->message));
}

static void
on_connection(void *arg, const struct engine_connection *c)
{
	const struct gate *gate = arg;
	json_t *more;

	if (!gate->options.audit)
		return;
	more = xalloc_check(json_pack("{s:s,s:i,s:I,s:I,s:I}", "verdict", c->verdict, "port",
				      (int)c->port, "sent", (json_int_t)c->sent, "received",
				      (json_int_t)c->received, "ms",
				      (json_int_t)c->milliseconds));
	/* what is no text is left out */
	if (c->host)
		json_object_set_new(more, "host", json_stringn(c->host, c->host_len));
	if (c->address)
		json_object_set_new(more, "address", json_stringn(c->address, c->address_len));
	/* Of one that a limit or its execution's end has cut something may have gone out. */
	audit_write(gate->options.audit,
		    c->connected ? AUDIT_CONNECTION : AUDIT_CONNECTION_REFUSED, c->tenant,
		    c->execution, more);
}

/* ---- from its beginning to its end ---- */

struct gate *
gate_new(const struct gate_options *options)
{
	static const struct timeval every = { LOOK_EVERY_S, 0 };
	struct gate *gate = xcalloc(1, sizeof(*gate));

	gate->options = *options;
	gate->config = config_hold(options->config);
	gate->observer = (struct engine_observer){ .on_start = on_start, .on_end = on_end,
						   .on_answered = on_answered,
						   .on_connection = on_connection,
						   .arg = gate };
	for (size_t i = 0; i < BUCKETS; i++)
		LIST_INIT(&gate->account[i]);
	gate->look = xalloc_check(event_new(options->base, -1, EV_PERSIST, on_look, gate));
	evtimer_add(gate->look, &every);
	return gate;
}

void
gate_free(struct gate *gate)
{
	if (!gate)
		return;
	each_account(gate, forget);
	event_free(gate->look);
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

const struct engine_observer *
gate_observer(struct gate *gate)
{
	return &gate->observer;
}
