/* Runs in: the supervisor.   Owns: the proxy's process, its control socket, and grants.
 * Reads:   frames from mcp-python-egress, which talks to strangers all day: it is held to
 *          the protocol, a breach ends it, and what it says goes to the log alone. */
#include "supervisor/engine/egress.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "policy/config.h"
#include "proto/frame.h"
#include "proto/own.h"
#include "supervisor/engine/launch.h"
#include "supervisor/engine/observer.h"
#include "supervisor/engine/survey.h"
#include "supervisor/log.h"

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MOST_MS 60000
#define START_TIMEOUT_MS 10000
#define UNUSED_MS 60000			/* then it is ended; the next one reads resolv.conf anew */
#define WRITER_MAX (16 * 1024 * 1024)

enum egress_state {
	EGRESS_DOWN,		/* no process; the timer, if armed, says from when one may be */
	EGRESS_STARTING,
	EGRESS_SERVING,
	EGRESS_ENDING,		/* killed, to be reaped */
};

struct egress_grant {
	LIST_ENTRY(egress_grant) link;
	struct egress *egress;
	uint64_t execution;
	char id[32], tenant[256];
	const struct msg_egress_open *terms;	/* NULL: the execution is over */
	bool opened;				/* EGRESS_OPEN went to this process */
};

struct egress {
	struct egress_options options;
	enum egress_state state;
	bool was_ready, unused;
	unsigned int failed_starts;
	struct frame_reader reader;
	struct frame_writer writer;
	struct event readable, writable, ended, timer;
	struct launch launch;
	LIST_HEAD(, egress_grant) grants;
	char *nameserver;
	char text[256];				/* why there is none; shown to scripts */
};

/* ---- life ---- */

static void
arm(struct egress *e, uint32_t ms)
{
	struct timeval delay = { .tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000 };

	evtimer_add(&e->timer, &delay);
}

static void __attribute__((format(printf, 2, 3)))
note_trouble(struct egress *e, const char *format, ...)
{
	va_list args;

	if (e->text[0] != '\0')
		return;
	va_start(args, format);
	vsnprintf(e->text, sizeof(e->text), format, args);
	va_end(args);
}

static void
end(struct egress *e)
{
	if (e->state == EGRESS_DOWN || e->state == EGRESS_ENDING)
		return;
	e->state = EGRESS_ENDING;
	event_del(&e->readable);
	event_del(&e->writable);
	event_del(&e->timer);
	syscall(SYS_pidfd_send_signal, e->launch.pidfd, SIGKILL, NULL, 0);
}

static void
free_grant(struct egress_grant *grant)
{
	struct egress *e = grant->egress;

	LIST_REMOVE(grant, link);
	free(grant);
	if (LIST_EMPTY(&e->grants) && e->state == EGRESS_SERVING)
		arm(e, UNUSED_MS);
}

/* What it served is cut; those that are over need no word of it. */
static void
lose_grants(struct egress *e)
{
	struct egress_grant *grant, *next;

	for (grant = LIST_FIRST(&e->grants); grant != NULL; grant = next) {
		next = LIST_NEXT(grant, link);
		if (grant->opened && grant->terms != NULL)
			log_line(LOG_WARNING, "egress-cut", "execution=%s tenant=%s",
				 grant->id, grant->tenant);
		grant->opened = false;
		if (grant->terms == NULL)
			free_grant(grant);
	}
}

static void
release_process(struct egress *e)
{
	event_del(&e->readable);
	event_del(&e->writable);
	event_del(&e->ended);
	event_del(&e->timer);
	frame_reader_done(&e->reader);
	frame_writer_done(&e->writer);
	launch_done(&e->launch);
	e->state = EGRESS_DOWN;
}

static uint32_t
backoff_ms(struct egress *e)
{
	uint32_t delay = BACKOFF_FIRST_MS << (e->failed_starts < 10 ? e->failed_starts : 10);

	e->failed_starts++;
	return delay > BACKOFF_MOST_MS ? BACKOFF_MOST_MS : delay;
}

/* The process is gone and reaped, or could not be made. */
static void
on_down(struct egress *e, const siginfo_t *info)
{
	struct log_quoted quoted;
	const char *step;
	int error;

	if (launch_trouble(&e->launch, &step, &error))
		note_trouble(e, "cannot %s: %s", step, strerror(error));
	else if (info != NULL)
		note_trouble(e, "it ended early (%s %d)",
			     info->si_code == CLD_EXITED ? "exit code" : "signal",
			     info->si_status);
	release_process(e);
	lose_grants(e);
	if (e->unused)
		return;
	log_line(LOG_WARNING, e->was_ready ? "egress-lost" : "egress-failed", "text=%s",
		 log_quote(&quoted, e->text, strlen(e->text)));
	/* One that served may be started at once, and again: connections make it end. */
	arm(e, backoff_ms(e));
}

static void
on_ended(evutil_socket_t fd, short what, void *arg)
{
	struct egress *e = arg;
	siginfo_t info = { 0 };

	(void)what;
	if (waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0)
		on_down(e, &info);
}

static void
reap(struct egress *e)
{
	siginfo_t info = { 0 };

	while (waitid(P_PIDFD, (id_t)e->launch.pidfd, &info, WEXITED) < 0 && errno == EINTR)
		;
	on_down(e, &info);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct egress *e = arg;

	(void)fd;
	(void)what;
	switch (e->state) {
	case EGRESS_STARTING:
		note_trouble(e, "it was not ready in time");
		end(e);
		break;
	case EGRESS_SERVING:
		if (LIST_EMPTY(&e->grants)) {
			e->unused = true;
			end(e);
		} else {
			e->failed_starts = 0;
		}
		break;
	case EGRESS_DOWN:	/* the next grant may start one */
	case EGRESS_ENDING:
		break;
	}
}

/* ---- messages ---- */

static int
flush(struct egress *e)
{
	int r = frame_writer_flush(&e->writer, e->launch.control);

	if (r > 0)
		event_add(&e->writable, NULL);
	return r < 0 ? r : 0;
}

/* The line to it broke, or it the protocol. Its executions are cut now and not when it is
 * reaped: a script that saw its connection close may be over before that. */
static void
lose(struct egress *e, int error)
{
	/* Of one that closed its end the wait status says more. */
	if (error == -EBADMSG)
		note_trouble(e, "it broke its protocol");
	else if (error != -EPIPE && error != -ECONNRESET)
		note_trouble(e, "the line to it failed: %s", strerror(-error));
	end(e);
	lose_grants(e);
}

/* fd: -1: none; it is the writer's. What cannot be said ends the process: it would go on
 * with what is over. */
static int
tell(struct egress *e, const struct msg *msg, int fd)
{
	int r = frame_writer_put(&e->writer, msg, &fd, fd >= 0 ? 1 : 0);

	if (r == 0)
		r = flush(e);
	if (r < 0)
		lose(e, r);
	return r;
}

static struct egress_grant *
find(struct egress *e, uint64_t execution)
{
	struct egress_grant *grant;

	LIST_FOREACH(grant, &e->grants, link)
		if (grant->execution == execution && grant->opened)
			return grant;
	return NULL;
}

static const char *
verdict_name(uint32_t verdict)
{
	static const char *const names[EGRESS_VERDICT_COUNT] = {
		[EGRESS_CARRIED] = "carried",
		[EGRESS_DENIED_RULE] = "denied-by-rule",
		[EGRESS_DENIED_ADDRESS] = "denied-address",
		[EGRESS_BAD_REQUEST] = "bad-request",
		[EGRESS_NO_NAME] = "no-such-name",
		[EGRESS_NO_CONNECTION] = "no-connection",
		[EGRESS_TIMED_OUT] = "timed-out",
		[EGRESS_LIMIT_BYTES] = "bytes-limit",
		[EGRESS_LIMIT_CONNECTIONS] = "connections-limit",
		[EGRESS_CUT] = "cut",
	};

	return names[verdict];
}

static void
tell_observer(const struct egress *e, const struct egress_grant *grant,
	      const struct msg_egress_report *report)
{
	const struct engine_observer *observer = e->options.observer;
	const struct engine_connection connection = {
		.tenant = grant->tenant,
		.execution = grant->id,
		.verdict = verdict_name(report->verdict),
		.carried = report->verdict == EGRESS_CARRIED,
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
}

static int
on_report(struct egress *e, const struct msg_egress_report *report)
{
	const struct egress_grant *grant = find(e, report->execution);
	struct log_quoted host, address;

	if (grant == NULL)
		return -EBADMSG;
	tell_observer(e, grant, report);
	log_line(report->verdict == EGRESS_CARRIED ? LOG_INFO : LOG_NOTICE, "egress",
		 "execution=%s tenant=%s verdict=%s host=%s port=%u address=%s sent=%llu "
		 "received=%llu ms=%llu",
		 grant->id, grant->tenant, verdict_name(report->verdict),
		 log_quote(&host, report->host.at, report->has_host ? report->host.len : 0),
		 report->port,
		 log_quote(&address, report->address.at,
			   report->has_address ? report->address.len : 0),
		 (unsigned long long)report->sent, (unsigned long long)report->received,
		 (unsigned long long)report->milliseconds);
	return 0;
}

static int
on_closed(struct egress *e, const struct msg_egress_closed *closed)
{
	struct egress_grant *grant = find(e, closed->execution);

	if (grant == NULL)
		return -EBADMSG;
	/* It could not serve this one, or has been told to stop. */
	if (grant->terms != NULL)
		log_line(LOG_WARNING, "egress-cut", "execution=%s tenant=%s", grant->id,
			 grant->tenant);
	if (grant->terms != NULL)
		grant->opened = false;
	else
		free_grant(grant);
	return 0;
}

static int
on_ready(struct egress *e, const struct msg_egress_ready *ready)
{
	if (e->state != EGRESS_STARTING)
		return -EBADMSG;
	if (ready->build.len != strlen(PROTO_BUILD) ||
	    memcmp(ready->build.at, PROTO_BUILD, ready->build.len) != 0) {
		note_trouble(e, "it is of another build (%.*s)", (int)ready->build.len,
			     ready->build.at);
		return -EPROTO;
	}
	log_line(LOG_INFO, "egress-ready", "landlock=%u", ready->landlock_abi);
	e->state = EGRESS_SERVING;
	e->was_ready = true;
	arm(e, UNUSED_MS);
	return 0;
}

static int
on_message(struct egress *e, const struct frame *frame)
{
	/* The frame's reader takes nothing from it but these. */
	if (frame->msg.type == MSG_EGRESS_READY)
		return on_ready(e, &frame->msg.egress_ready);
	if (frame->msg.type == MSG_EGRESS_REPORT)
		return on_report(e, &frame->msg.egress_report);
	if (frame->msg.type == MSG_EGRESS_CLOSED)
		return on_closed(e, &frame->msg.egress_closed);
	return -EBADMSG;
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct egress *e = arg;
	struct frame frame = { 0 };
	int r = frame_reader_read(&e->reader, fd, &frame);

	(void)what;
	if (r > 0) {
		r = on_message(e, &frame);
		frame_done(&frame);
	}
	if (r < 0)
		lose(e, r);
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct egress *e = arg;
	int r = flush(e);

	(void)fd;
	(void)what;
	if (r < 0)
		lose(e, r);
}

/* ---- start ---- */

static void
start(struct egress *e)
{
	static const char *const argv[] = { "mcp-python-egress", NULL };
	struct launch_program program = { .fd = e->options.program_fd, .argv = argv,
					  .as = LAUNCH_STRANGER };
	struct msg configure = { .type = MSG_EGRESS_CONFIGURE, .egress_configure = {
		.has_nameserver = e->nameserver != NULL,
		.nameserver = msg_str(e->nameserver),
	} };
	int r;

	e->text[0] = '\0';
	e->was_ready = e->unused = false;
	frame_reader_init(&e->reader, FROM_EGRESS);
	frame_writer_init(&e->writer, WRITER_MAX);
	r = launch_start(e->options.outer, &program, &e->launch);
	if (r < 0) {
		note_trouble(e, "it cannot be started: %s", strerror(-r));
		on_down(e, NULL);
		return;
	}
	e->state = EGRESS_STARTING;
	event_assign(&e->readable, e->options.base, e->launch.control, EV_READ | EV_PERSIST,
		     on_readable, e);
	event_assign(&e->writable, e->options.base, e->launch.control, EV_WRITE, on_writable,
		     e);
	event_assign(&e->ended, e->options.base, e->launch.pidfd, EV_READ | EV_PERSIST,
		     on_ended, e);
	event_add(&e->readable, NULL);
	event_add(&e->ended, NULL);
	arm(e, START_TIMEOUT_MS);
	tell(e, &configure, -1);
}

struct egress *
egress_new(const struct egress_options *options)
{
	struct egress *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->options = *options;
	e->nameserver = options->nameserver != NULL ? strdup(options->nameserver) : NULL;
	LIST_INIT(&e->grants);
	launch_init(&e->launch);
	/* Assigned at once so that event_del is always allowed. */
	event_assign(&e->readable, options->base, -1, 0, on_readable, e);
	event_assign(&e->writable, options->base, -1, 0, on_writable, e);
	event_assign(&e->ended, options->base, -1, 0, on_ended, e);
	evtimer_assign(&e->timer, options->base, on_timer, e);
	return e;
}

void
egress_free(struct egress *e)
{
	if (e == NULL)
		return;
	if (e->state != EGRESS_DOWN) {
		end(e);
		e->unused = true;
		reap(e);
	}
	release_process(e);
	while (!LIST_EMPTY(&e->grants))
		free_grant(LIST_FIRST(&e->grants));
	free(e->nameserver);
	free(e);
}

pid_t
egress_pid(const struct egress *e)
{
	return e != NULL ? e->launch.pid : 0;
}

void
egress_look(const struct egress *e, struct survey_egress *egress_r)
{
	static const char *const names[] = {
		[EGRESS_DOWN] = "down", [EGRESS_STARTING] = "starting",
		[EGRESS_SERVING] = "serving", [EGRESS_ENDING] = "ending",
	};
	const struct egress_grant *grant;

	*egress_r = (struct survey_egress){
		.installed = e->options.program_fd >= 0,
		.state = names[e->state],
		.trouble = e->text[0] != '\0' ? e->text : NULL,
	};
	LIST_FOREACH(grant, &e->grants, link)
		egress_r->executions += grant->terms != NULL;
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
	n = network->allow.n + network->allow_private.n;
	text = text_size(&network->allow) + text_size(&network->allow_private);
	terms = malloc(sizeof(*terms) + n * sizeof(*item) + text);
	if (terms == NULL)
		abort();
	item = (struct msg_str *)(terms + 1);
	at = (char *)(item + n);
	*terms = (struct msg_egress_open){
		.bytes_max = network->bytes_max, .rate_max = network->rate_max,
		.connections = network->connections,
		.connections_max = network->connections_max,
		.idle_seconds = network->idle_seconds,
		.connection_seconds = network->connection_seconds,
		.allow.item = item, .allow_private.item = item + network->allow.n,
	};
	copy_list(&network->allow, &terms->allow, &at);
	copy_list(&network->allow_private, &terms->allow_private, &at);
	return terms;
}

/* Whether there is a process to be told, which may still be starting. */
static bool
is_up(struct egress *e)
{
	if (e->options.program_fd < 0) {
		note_trouble(e, "mcp-python-egress is not installed");
		return false;
	}
	/* It has been killed: that takes no longer than a fork. */
	if (e->state == EGRESS_ENDING && e->unused)
		reap(e);
	/* After a failure the timer says from when on another one may be tried. */
	if (e->state == EGRESS_DOWN && !evtimer_pending(&e->timer, NULL))
		start(e);
	return e->state == EGRESS_STARTING || e->state == EGRESS_SERVING;
}

struct egress_grant *
egress_grant_new(struct egress *e, uint64_t execution, const char *id, const char *tenant,
		 const struct msg_egress_open *terms, const char **why_r)
{
	struct egress_grant *grant;

	if (!is_up(e)) {
		*why_r = e->text;
		return NULL;
	}
	grant = calloc(1, sizeof(*grant));
	if (grant == NULL)
		abort();
	grant->egress = e;
	grant->execution = execution;
	grant->terms = terms;
	snprintf(grant->id, sizeof(grant->id), "%s", id);
	snprintf(grant->tenant, sizeof(grant->tenant), "%s", tenant);
	LIST_INSERT_HEAD(&e->grants, grant, link);
	return grant;
}

int
egress_grant_listen(struct egress_grant *grant, int fd)
{
	struct egress *e = grant->egress;
	struct msg msg = { .type = MSG_EGRESS_OPEN, .egress_open = *grant->terms };

	if (e->state != EGRESS_STARTING && e->state != EGRESS_SERVING) {
		close(fd);
		return -ENOTCONN;
	}
	msg.egress_open.execution = grant->execution;
	grant->opened = true;
	return tell(e, &msg, fd);
}

void
egress_grant_end(struct egress_grant *grant)
{
	struct msg msg = { .type = MSG_EGRESS_CLOSE };
	struct egress *e;

	if (grant == NULL)
		return;
	e = grant->egress;
	msg.egress_close.execution = grant->execution;
	if (grant->opened && (e->state == EGRESS_STARTING || e->state == EGRESS_SERVING))
		tell(e, &msg, -1);
	/* It stays until the process has said its last word of it. */
	grant->terms = NULL;
	if (!grant->opened || e->state == EGRESS_ENDING)
		free_grant(grant);
}
