/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-egress.   Owns: grants and their listening sockets.
 * Reads:   messages of the supervisor. A worker can only connect. */
#include "egress/proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <event2/bufferevent.h>
#include <event2/event.h>

#include "base/fair.h"
#include "base/own.h"
#include "egress/secret.h"

#define TICKS_PER_S 10
#define RETRY_MS 200		/* after an accept that failed for lack of a resource */

/* ---- accepting ---- */

/* A tenant may have as many connections as are left for others. */
static bool
grant_has_room(const struct grant *g)
{
	struct proxy *proxy = g->proxy;

	if (g->fd < 0 || g->n_connections >= g->at_once)
		return false;
	if (fair_take(proxy->connections_max, proxy->n_connections, g->holder->n_connections,
		      proxy->connections_max) == 0)
		return true;
	proxy->is_wanted = true;
	return false;
}

/* Further connections wait in the kernel, in the worker's own backlog. */
static void
listen_again(struct grant *g)
{
	if (grant_has_room(g))
		event_add(&g->acceptable, NULL);
}

static void
stop_listening(struct grant *g)
{
	event_del(&g->acceptable);
	if (g->fd >= 0)
		close(give_fd(g->fd));
}

static void
tell_exhausted(const struct grant *g)
{
	struct msg msg = { .type = MSG_EGRESS_REPORT, .egress_report = {
		.execution = g->execution,
		.verdict = EGRESS_LIMIT_CONNECTIONS,
	} };

	g->proxy->tell(g->proxy->tell_arg, &msg);
}

/* Can accept() block? A worker that has kept a copy of its listening socket can clear O_NONBLOCK;
 * then accept() waits for the signal of base/stall.h, and returns EINTR. */
static bool
may_wait(int fd, int error)
{
	return error == EINTR || !(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/* Gives up the listening socket, and the connection just accepted on it (-1: none). */
static void
grant_give_up(struct grant *g, int accepted)
{
	fprintf(stderr, "mcp-python-egress: the listening socket of execution %llu waits; it is "
		"closed\n", (unsigned long long)g->execution);
	if (accepted >= 0)
		close(accepted);
	grant_close(g->proxy, g->execution);
}

static void
on_acceptable(evutil_socket_t fd, short, void *arg)
{
	static const struct timeval retry = { 0, RETRY_MS * 1000 };
	static const struct linger none;
	struct grant *g = arg;
	int accepted, error;

	if (g->n_accepted == g->in_all) {
		stop_listening(g);
		tell_exhausted(g);
		return;
	}
	if (!grant_has_room(g))
		return;
	accepted = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	error = accepted < 0 ? errno : 0;
	/* The connection inherits options of the listening socket, but no worker has a descriptor
	 * of it. */
	if (accepted >= 0)
		setsockopt(accepted, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	if (may_wait(fd, error)) {
		grant_give_up(g, accepted);
		return;
	}
	if (accepted >= 0) {
		g->n_accepted++;
		g->n_connections++;
		g->holder->n_connections++;
		g->proxy->n_connections++;
		if (connection_new(g, accepted) < 0)
			grant_release(g);
	} else if (error != EAGAIN && error != ECONNABORTED) {
		event_add(&g->retry, &retry);
		return;
	}
	listen_again(g);
}

static void
on_retry(evutil_socket_t, short, void *arg)
{
	listen_again(arg);
}

void
grant_release(struct grant *g)
{
	struct proxy *proxy = g->proxy;
	bool is_wanted = proxy->is_wanted;

	g->n_connections--;
	g->holder->n_connections--;
	proxy->n_connections--;
	proxy->is_wanted = false;
	if (!is_wanted)
		listen_again(g);
	else
		LIST_FOREACH(g, &proxy->grants, link)
			listen_again(g);
}

/* ---- life ---- */

static int
join_holder(struct grant *g, const struct msg_str *tenant)
{
	struct holder *h;

	LIST_FOREACH(h, &g->proxy->holders, link)
		if (h->len == tenant->len && memcmp(h->name, tenant->at, h->len) == 0)
			break;
	if (!h) {
		h = calloc(1, sizeof(*h) + tenant->len);
		if (!h)
			return -ENOMEM;
		h->len = tenant->len;
		memcpy(h->name, tenant->at, tenant->len);
		LIST_INSERT_HEAD(&g->proxy->holders, h, link);
	}
	h->n_grants++;
	g->holder = h;
	return 0;
}

static void
leave_holder(struct holder *h)
{
	if (!h || --h->n_grants > 0)
		return;
	LIST_REMOVE(h, link);
	free(h);
}

static void
grant_free(struct grant *g)
{
	leave_holder(g->holder);
	stop_listening(g);
	event_del(&g->retry);
	if (g->rate)
		bufferevent_rate_limit_group_free(g->rate);
	free(g->rule);
	free(g->range);
	free(g);
}

static int
take_rules(struct grant *g, const struct msg_egress_open *open)
{
	int r = 0;

	g->rule = calloc(open->allow.n + 1, sizeof(*g->rule));
	g->range = calloc(open->allow_private.n + 1, sizeof(*g->range));
	if (!g->rule || !g->range)
		return -ENOMEM;
	for (; r == 0 && g->n_rules < open->allow.n; g->n_rules++)
		r = network_rule_parse(open->allow.item[g->n_rules].at,
				       open->allow.item[g->n_rules].len,
				       &g->rule[g->n_rules]);
	for (; r == 0 && g->n_ranges < open->allow_private.n; g->n_ranges++)
		r = network_range_parse(open->allow_private.item[g->n_ranges].at,
					open->allow_private.item[g->n_ranges].len,
					&g->range[g->n_ranges]);
	return r;
}

/* Makes one bucket for all connections of the grant. It limits only reading, because each byte that
 * is read is written once. */
static int
make_rate(struct grant *g, uint64_t rate)
{
	static const struct timeval tick = { 0, 1000000 / TICKS_PER_S };
	size_t each = rate / TICKS_PER_S;
	struct ev_token_bucket_cfg *cfg = ev_token_bucket_cfg_new(
		each, each, EV_RATE_LIMIT_MAX, EV_RATE_LIMIT_MAX, &tick);

	if (!cfg)
		return -ENOMEM;
	g->rate = bufferevent_rate_limit_group_new(g->proxy->base, cfg);
	ev_token_bucket_cfg_free(cfg);
	if (!g->rate)
		return -ENOMEM;
	return 0;
}

/* Is it a worker's listening socket? */
static int
check_listener(int fd)
{
	int domain = 0, type = 0, listens = 0;
	socklen_t len = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) < 0)
		return -errno;
	if (domain != AF_INET || type != SOCK_STREAM || !listens)
		return -ENOTSOCK;
	return fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

/* Sent exactly once for each EGRESS_OPEN: a second one would name a grant that the supervisor has
 * forgotten. */
static void
tell_closed(const struct proxy *proxy, uint64_t execution)
{
	struct msg msg = { .type = MSG_EGRESS_CLOSED, .egress_closed.execution = execution };

	proxy->tell(proxy->tell_arg, &msg);
}

static struct grant *
grant_find(const struct proxy *proxy, uint64_t execution)
{
	struct grant *g;

	LIST_FOREACH(g, &proxy->grants, link)
		if (g->execution == execution)
			return g;
	return NULL;
}

static int
grant_begin(struct grant *g, const struct msg_egress_open *open)
{
	int r = check_listener(g->fd);

	if (r == 0)
		r = join_holder(g, &open->tenant);
	if (r == 0)
		r = take_rules(g, open);
	if (r == 0)
		r = make_rate(g, open->rate_max);
	return r;
}

int
grant_open(struct proxy *proxy, const struct msg_egress_open *open, int fd)
{
	struct grant *g;
	int r;

	if (grant_find(proxy, open->execution)) {
		close(fd);
		return -EEXIST;
	}
	g = calloc(1, sizeof(*g));
	if (!g) {
		close(fd);
		tell_closed(proxy, open->execution);
		return -ENOMEM;
	}
	*g = (struct grant){ .proxy = proxy, .execution = open->execution, .fd = fd,
		.bytes_max = open->bytes_max, .at_once = open->connections,
		.in_all = open->connections_max, .idle_seconds = open->idle_seconds,
		.connection_seconds = open->connection_seconds };
	if (proxy->secrets)
		g->secrets = secrets_named(proxy->secrets, &open->secrets);
	LIST_INIT(&g->connections);
	event_assign(&g->acceptable, proxy->base, fd, EV_READ, on_acceptable, g);
	evtimer_assign(&g->retry, proxy->base, on_retry, g);
	r = grant_begin(g, open);
	if (r < 0) {
		grant_free(g);
		tell_closed(proxy, open->execution);
		return r;
	}
	LIST_INSERT_HEAD(&proxy->grants, g, link);
	listen_again(g);
	return 0;
}

void
grant_close(struct proxy *proxy, uint64_t execution)
{
	struct grant *g = grant_find(proxy, execution);
	struct connection *c, *next;

	if (!g)
		return;
	stop_listening(g);
	for (c = LIST_FIRST(&g->connections); c; c = next) {
		next = connection_next(c);
		connection_cut(c);
	}
	LIST_REMOVE(g, link);
	grant_free(g);
	tell_closed(proxy, execution);
}

bool
grant_allows(const struct grant *g, const struct network_target *target)
{
	for (size_t i = 0; i < g->n_rules; i++)
		if (network_rule_allows(&g->rule[i], target))
			return true;
	return false;
}
