/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the proxy's process, and grants.
 * Reads:   frames from mcp-python-egress, which has connections to untrusted hosts. The texts of a
 * frame go to the log and the audit log only. */
#include "engine/egress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "engine/observer.h"
#include "host/child.h"
#include "host/secret.h"
#include "policy/config.h"
#include "proto/frame.h"

#define START_SECONDS 10
#define UNUSED_MS 60000			/* an unused proxy is ended after this time; the next one
					 * reads resolv.conf again */
#define WRITER_MAX (16 * 1024 * 1024)
#define BUCKETS 256			/* of grants, by execution, which have numbers in a row */

struct egress_grant {
	LIST_ENTRY(egress_grant) link;
	struct egress *egress;
	uint64_t execution;
	char id[32], tenant[256];
	const struct msg_egress_open *terms;	/* NULL: the execution has ended */
	const char *principal;		/* of the tenant; borrowed, as terms */
	bool opened;				/* EGRESS_OPEN was sent to this process */
	bool is_lost;				/* the process has ended since the grant was made */
};

struct egress {
	struct egress_options options;
	struct child child;
	uint64_t stamp;			/* of the files of credentials, at the process's start */
	bool renews;			/* it is being ended, so that the next one gets new
					 * credentials */
	bool unused;			/* it was ended because it was not needed */
	LIST_HEAD(, egress_grant) grants[BUCKETS];
	size_t n_grants;
};

/* ---- life ---- */

static void
free_grant(struct egress_grant *grant)
{
	struct egress *e = grant->egress;

	LIST_REMOVE(grant, link);
	free(grant);
	if (--e->n_grants == 0 && e->child.state == CHILD_SERVING)
		child_arm(&e->child, UNUSED_MS);
}

/* The grant is cut. That is logged, unless its execution has ended. */
static void
cut_grant(struct egress_grant *grant)
{
	if (grant->terms == NULL) {
		free_grant(grant);
		return;
	}
	if (grant->opened)
		log_line(LOG_WARNING, "egress-cut", "execution=%s tenant=%s", grant->id,
			 grant->tenant);
	grant->opened = false;
	grant->is_lost = true;
}

/* Called when the proxy begins to end, and not only when it is reaped: by then a script whose
 * connection was cut may have ended. */
static void
egress_on_ending(void *arg)
{
	struct egress *e = arg;
	struct egress_grant *grant, *next;

	for (size_t i = 0; i < BUCKETS; i++)
		for (grant = LIST_FIRST(&e->grants[i]); grant != NULL; grant = next) {
			next = LIST_NEXT(grant, link);
			cut_grant(grant);
		}
}

static void
egress_on_down(void *arg)
{
	struct egress *e = arg;
	struct child *c = &e->child;
	struct log_quoted quoted;

	egress_on_ending(e);
	if (e->unused)
		return;
	if (child_is_told(c))
		log_line(LOG_WARNING, c->has_served ? "egress-lost" : "egress-failed", "text=%s",
			 log_quote(&quoted, c->text, strlen(c->text)));
	if (e->renews)
		return;
	/* A process that has served is restarted with a delay, too: a connection may have made it
	 * end, and may do so again. */
	child_arm(c, child_backoff_ms(c));
}

static void
egress_on_due(void *arg)
{
	struct egress *e = arg;

	/* Once the process is down, the next grant starts another one. */
	if (e->child.state != CHILD_SERVING)
		return;
	if (e->n_grants > 0) {
		e->child.failed_starts = 0;
		return;
	}
	e->unused = true;
	child_end(&e->child);
}

/* ---- messages ---- */

/* Sends a message. fd: -1: none; else it belongs to the child. If the message cannot be sent, the
 * process is ended, because it would act on an old state. */
static int
egress_tell_child(struct egress *e, const struct msg *msg, int fd)
{
	int r = child_send(&e->child, msg, &fd, fd >= 0 ? 1 : 0);

	if (r < 0) {
		child_note(&e->child, r, "it cannot be told: %s", strerror(-r));
		child_end(&e->child);
	}
	return r;
}

static struct egress_grant *
egress_find(struct egress *e, uint64_t execution)
{
	struct egress_grant *grant;

	LIST_FOREACH(grant, &e->grants[execution % BUCKETS], link)
		if (grant->execution == execution && grant->opened)
			return grant;
	return NULL;
}

static const char *
verdict_name(uint32_t verdict)
{
	static const char *const names[EGRESS_VERDICT_COUNT] = {
#define VERDICT(verdict, name) [EGRESS_##verdict] = name,
#include "proto/verdicts.def"
	};

	return names[verdict];
}

static int
on_report(struct egress *e, const struct msg_egress_report *report)
{
	const struct egress_grant *grant = egress_find(e, report->execution);

	if (grant == NULL)
		return -EBADMSG;
	const struct engine_observer *observer = e->options.observer;
	const struct engine_connection connection = {
		.tenant = grant->tenant,
		.execution = grant->id,
		.verdict = verdict_name(report->verdict),
		.connected = report->connected,
		.host = report->has_host ? report->host.at : NULL,
		.host_len = report->has_host ? report->host.len : 0,
		.address = report->has_address ? report->address.at : NULL,
		.address_len = report->has_address ? report->address.len : 0,
		.port = report->port,
		.sent = report->sent,
		.received = report->received,
		.milliseconds = report->milliseconds,
	};

	if (observer != NULL && observer->on_connection != NULL)
		observer->on_connection(observer->arg, &connection);
	return 0;
}

static int
on_closed(struct egress *e, const struct msg_egress_closed *closed)
{
	struct egress_grant *grant = egress_find(e, closed->execution);

	if (grant == NULL)
		return -EBADMSG;
	/* It could not serve this grant, or was told to stop. */
	cut_grant(grant);
	return 0;
}

static int
egress_on_ready(struct egress *e, const struct msg_egress_ready *ready)
{
	if (e->child.state != CHILD_STARTING)
		return -EBADMSG;
	if (!child_is_of_build(&e->child, &ready->build))
		return -EPROTO;
	log_line(LOG_INFO, "egress-ready", "landlock=%u", ready->landlock_abi);
	child_is_ready(&e->child);
	child_arm(&e->child, UNUSED_MS);
	return 0;
}

static int
egress_on_message(void *arg, struct frame *frame)
{
	struct egress *e = arg;

	/* The frame reader lets no other messages through. */
	if (frame->msg.type == MSG_EGRESS_READY)
		return egress_on_ready(e, &frame->msg.egress_ready);
	if (frame->msg.type == MSG_EGRESS_REPORT)
		return on_report(e, &frame->msg.egress_report);
	if (frame->msg.type == MSG_EGRESS_CLOSED)
		return on_closed(e, &frame->msg.egress_closed);
	return -EBADMSG;
}

/* ---- start ---- */

/* It carries the connections of these executions. */
static bool
egress_is_used(void *arg)
{
	const struct egress *e = arg;

	return e->n_grants > 0;
}

static const struct child_kind egress_kind = {
	.name = "mcp-python-egress",
	.launch = LAUNCH_EGRESS,
	.from = FROM_EGRESS,
	.writer_max = WRITER_MAX,
	.start_seconds = START_SECONDS,
	.is_used = egress_is_used,
	.on_message = egress_on_message,
	.on_ending = egress_on_ending,
	.on_down = egress_on_down,
	.on_due = egress_on_due,
};

/* The stamp of the files of credentials. The launcher reads these files when the process is
 * started. */
static uint64_t
egress_stamp_of(const struct egress *e)
{
	const struct config *config = e->options.config;
	uint64_t stamp = 0;

	for (size_t i = 0; i < config->n_secrets; i++)
		stamp = secret_stamp(config->secret[i].value_file, stamp);
	return stamp;
}

static void
egress_start(struct egress *e)
{
	e->stamp = egress_stamp_of(e);
	e->unused = false;
	child_start(&e->child, e->options.launcher, 0, 0);
}

struct egress *
egress_new(const struct egress_options *options)
{
	struct egress *e = xcalloc(1, sizeof(*e));

	e->options = *options;
	child_init(&e->child, &egress_kind, options->base, e);
	return e;
}

void
egress_free(struct egress *e)
{
	if (e == NULL)
		return;
	child_done(&e->child);
	for (size_t i = 0; i < BUCKETS; i++)
		while (!LIST_EMPTY(&e->grants[i]))
			free_grant(LIST_FIRST(&e->grants[i]));
	free(e);
}

void
egress_look(const struct egress *e, struct egress_state *state_r)
{
	static const char *const names[] = {
		[CHILD_DOWN] = "down", [CHILD_STARTING] = "starting",
		[CHILD_SERVING] = "serving", [CHILD_ENDING] = "ending",
	};
	const struct egress_grant *grant;

	*state_r = (struct egress_state){
		.installed = launcher_has_egress(e->options.launcher),
		.state = names[e->child.state],
		.trouble = e->child.text[0] != '\0' ? e->child.text : NULL,
	};
	for (size_t i = 0; i < BUCKETS; i++)
		LIST_FOREACH(grant, &e->grants[i], link)
			state_r->executions += grant->terms != NULL;
}

/* ---- grants ---- */

static size_t
text_size(const struct config_list *list)
{
	size_t size = 0;

	for (size_t i = 0; i < list->n; i++)
		size += strlen(list->item[i]);
	return size;
}

static void
copy_list(const struct config_list *list, struct msg_strs *strs, char **text_io)
{
	for (size_t i = 0; i < list->n; i++) {
		size_t len = strlen(list->item[i]);

		strs->item[i] = (struct msg_str){ memcpy(*text_io, list->item[i], len), len };
		*text_io += len;
	}
	strs->n = list->n;
}

struct msg_egress_open *
egress_terms(const struct config_network *network)
{
	size_t n, text;
	struct msg_egress_open *terms;
	struct msg_str *item;
	char *at;

	if (network == NULL || network->allow.n == 0)
		return NULL;
	n = network->allow.n + network->allow_private.n + network->secrets.n;
	text = text_size(&network->allow) + text_size(&network->allow_private) +
	       text_size(&network->secrets);
	terms = xmalloc(sizeof(*terms) + n * sizeof(*item) + text);
	item = (struct msg_str *)(terms + 1);
	at = (char *)(item + n);
	*terms = (struct msg_egress_open){
		.bytes_max = network->bytes_max, .rate_max = network->rate_max,
		.connections = network->connections,
		.connections_max = network->connections_max,
		.idle_seconds = network->idle_seconds,
		.connection_seconds = network->connection_seconds,
		.allow.item = item, .allow_private.item = item + network->allow.n,
		.secrets.item = item + network->allow.n + network->allow_private.n,
	};
	copy_list(&network->allow, &terms->allow, &at);
	copy_list(&network->allow_private, &terms->allow_private, &at);
	copy_list(&network->secrets, &terms->secrets, &at);
	return terms;
}

/* Is there a process that can take a message? It may still be starting. */
static bool
is_up(struct egress *e)
{
	struct child *c = &e->child;

	if (!launcher_has_egress(e->options.launcher)) {
		child_note(c, -ENOENT, "mcp-python-egress is not installed");
		return false;
	}
	/* The unused process was killed: the wait for its end takes no longer than a fork. */
	if (c->state == CHILD_ENDING && e->unused)
		child_reap(c);
	/* After a failure the timer decides when the next attempt may be made. */
	if (c->state == CHILD_DOWN && !evtimer_pending(&c->timer, NULL))
		egress_start(e);
	return child_is_up(c);
}

struct egress_grant *
egress_grant_new(struct egress *e, uint64_t execution, const char *id, const char *tenant,
		 const struct msg_egress_open *terms, const char **why_r)
{
	struct egress_grant *grant;

	if (!is_up(e)) {
		*why_r = e->child.text;
		return NULL;
	}
	grant = xcalloc(1, sizeof(*grant));
	grant->egress = e;
	grant->execution = execution;
	grant->terms = terms;
	grant->principal = tenant;
	snprintf(grant->id, sizeof(grant->id), "%s", id);
	snprintf(grant->tenant, sizeof(grant->tenant), "%s", tenant);
	LIST_INSERT_HEAD(&e->grants[execution % BUCKETS], grant, link);
	e->n_grants++;
	return grant;
}

int
egress_grant_listen(struct egress_grant *grant, int fd)
{
	struct egress *e = grant->egress;
	struct msg msg = { .type = MSG_EGRESS_OPEN, .egress_open = *grant->terms };

	if (!child_is_up(&e->child)) {
		grant->is_lost = true;
		close(fd);
		return -ENOTCONN;
	}
	msg.egress_open.execution = grant->execution;
	msg.egress_open.tenant = msg_str(grant->principal);
	grant->opened = true;
	return egress_tell_child(e, &msg, fd);
}

bool
egress_grant_end(struct egress_grant *grant)
{
	struct msg msg = { .type = MSG_EGRESS_CLOSE };
	struct egress *e;
	bool is_lost;

	if (grant == NULL)
		return false;
	e = grant->egress;
	is_lost = grant->is_lost;
	msg.egress_close.execution = grant->execution;
	if (grant->opened && child_is_up(&e->child))
		egress_tell_child(e, &msg, -1);
	/* The grant stays until the process has reported its end. */
	grant->terms = NULL;
	grant->principal = NULL;
	if (!grant->opened || !child_is_up(&e->child))
		free_grant(grant);
	return is_lost;
}

void
egress_renew_credentials(struct egress *e)
{
	if (!child_is_up(&e->child) || egress_stamp_of(e) == e->stamp)
		return;
	/* The restart has no delay, so that no script is without the network for long. */
	child_note(&e->child, 0, "files of credentials have changed, so it is started again");
	e->renews = true;
	child_end(&e->child);
	child_reap(&e->child);
	e->renews = false;
	egress_start(e);
}
