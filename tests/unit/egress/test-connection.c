/* SPDX-License-Identifier: Apache-2.0 */
/* One connection through the proxy, the script, the origin and the name server being sockets
 * of this program: what is reported of it at each of its ends. */
#include "egress/proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <event2/dns.h>
#include <event2/event.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/stall.h"
#include "base/turns.h"
#include "tests/unit/base/linger.h"

#define EXECUTION 7
#define FIRST_OF_MANY 100
#define SECONDS_MAX 60
#define REPORTS_MAX 4

struct rig {
	struct proxy proxy;
	struct event *tick;
	int listener;			/* the grant's */
	int names, origin;		/* a name server that says nothing; a listening socket */
	int script, accepted;		/* the two ends; -1: none yet */
	uint16_t origin_port;
	struct msg_egress_report report[REPORTS_MAX];
	unsigned int n_reports, n_closed;
	uint64_t start_ms;
};

static void
tell(void *arg, const struct msg *msg)
{
	struct rig *rig = arg;

	if (msg->type == MSG_EGRESS_CLOSED) {
		rig->n_closed++;
		return;
	}
	assert_int_equal(msg->type, MSG_EGRESS_REPORT);
	if (msg->egress_report.execution >= FIRST_OF_MANY)
		return;
	assert_int_equal(msg->egress_report.execution, EXECUTION);
	assert_in_range(rig->n_reports, 0, REPORTS_MAX - 1);
	rig->report[rig->n_reports++] = msg->egress_report;
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

/* Bound to a port of its own on loopback. */
static int
bound(int type, uint16_t *port_r)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	*port_r = ntohs(at.sin_port);
	return fd;
}

static int
set_up(void **state)
{
	static const struct timeval often = { 0, 10000 };
	struct rig *rig = calloc(1, sizeof(*rig));
	uint16_t port;
	char text[32];

	assert_non_null(rig);
	signal(SIGPIPE, SIG_IGN);
	rig->start_ms = clock_ms();
	rig->script = rig->accepted = -1;
	rig->listener = bound(SOCK_STREAM, &port);
	assert_int_equal(listen(rig->listener, 8), 0);
	rig->origin = bound(SOCK_STREAM, &rig->origin_port);
	assert_int_equal(listen(rig->origin, 8), 0);
	rig->names = bound(SOCK_DGRAM, &port);
	snprintf(text, sizeof(text), "127.0.0.1:%u", port);
	rig->proxy = (struct proxy){ .base = event_base_new(), .tell = tell, .tell_arg = rig,
				     .connections_max = 8 };
	LIST_INIT(&rig->proxy.grants);
	assert_non_null(rig->proxy.base);
	rig->proxy.dns = evdns_base_new(rig->proxy.base, 0);
	assert_non_null(rig->proxy.dns);
	assert_int_equal(evdns_base_nameserver_ip_add(rig->proxy.dns, text), 0);
	rig->tick = event_new(rig->proxy.base, -1, EV_PERSIST, on_tick, NULL);
	event_add(rig->tick, &often);
	*state = rig;
	return 0;
}

static int
tear_down(void **state)
{
	struct rig *rig = *state;

	grant_close(&rig->proxy, EXECUTION);
	event_free(rig->tick);
	evdns_base_free(rig->proxy.dns, 1);
	event_base_loop(rig->proxy.base, EVLOOP_NONBLOCK);
	event_base_free(rig->proxy.base);
	close(rig->names);
	close(rig->origin);
	if (rig->script >= 0)
		close(rig->script);
	if (rig->accepted >= 0)
		close(rig->accepted);
	free(rig);
	return 0;
}

static bool
readable(int fd)
{
	struct pollfd one = { .fd = fd, .events = POLLIN };

	return poll(&one, 1, 0) == 1;
}

/* Turns the loop until the condition holds. */
#define UNTIL(rig, condition) \
	do { \
		time_t begun = time(NULL); \
\
		while (!(condition)) { \
			assert_in_range(time(NULL) - begun, 0, SECONDS_MAX); \
			event_base_loop((rig)->proxy.base, EVLOOP_ONCE); \
		} \
	} while (0)

/* What grant_open() returns; fd is the grant's. */
static int
open_grant(struct rig *rig, int fd, const char *rule, uint64_t bytes_max,
	   unsigned int idle_seconds)
{
	struct msg_str allow = { rule, strlen(rule) };
	struct msg_str private = { "127.0.0.0/8", strlen("127.0.0.0/8") };
	struct msg_egress_open open = { .execution = EXECUTION, .tenant = msg_str("uid:1"),
		.allow = { &allow, 1 },
		.allow_private = { &private, 1 }, .bytes_max = bytes_max,
		.rate_max = 1 << 20, .connections = 4, .connections_max = 8,
		.idle_seconds = idle_seconds, .connection_seconds = 1000 };

	return grant_open(&rig->proxy, &open, fd);
}

static void
serve(struct rig *rig, const char *rule, uint64_t bytes_max, unsigned int idle_seconds)
{
	assert_int_equal(open_grant(rig, dup(rig->listener), rule, bytes_max, idle_seconds), 0);
}

/* A script asks for a tunnel. */
static void
ask(struct rig *rig, const char *host, uint16_t port)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);
	char text[128];
	int n = snprintf(text, sizeof(text), "CONNECT %s:%u HTTP/1.1\r\n\r\n", host, port);

	if (rig->script >= 0)
		close(rig->script);
	rig->script = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(rig->script >= 0);
	assert_int_equal(getsockname(rig->listener, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(connect(rig->script, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(send(rig->script, text, (size_t)n, 0), n);
}

/* The status that it is answered with. */
static int
status(struct rig *rig)
{
	char head[256];
	ssize_t n;

	UNTIL(rig, readable(rig->script));
	n = recv(rig->script, head, sizeof(head) - 1, 0);
	assert_in_range(n, 12, sizeof(head) - 1);
	head[n] = '\0';
	return atoi(head + strlen("HTTP/1.1 "));
}

/* A tunnel to the origin that is there. */
static void
relay(struct rig *rig)
{
	ask(rig, "127.0.0.1", rig->origin_port);
	assert_int_equal(status(rig), 200);
	rig->accepted = accept4(rig->origin, NULL, NULL, SOCK_CLOEXEC);
	assert_true(rig->accepted >= 0);
}

static void
assert_report(struct rig *rig, unsigned int n, enum egress_verdict verdict, bool connected)
{
	UNTIL(rig, rig->n_reports >= n);
	assert_int_equal(rig->n_reports, n);
	assert_int_equal(rig->report[n - 1].verdict, verdict);
	assert_int_equal(rig->report[n - 1].connected, connected);
}

static void
both_ends_come_to_their_end(void **state)
{
	struct rig *rig = *state;

	serve(rig, "*:*", 1000, 100);
	relay(rig);
	assert_int_equal(send(rig->script, "hello", 5, 0), 5);
	shutdown(rig->script, SHUT_WR);
	UNTIL(rig, readable(rig->accepted));
	assert_int_equal(rig->n_reports, 0);
	close(rig->accepted);
	rig->accepted = -1;
	assert_report(rig, 1, EGRESS_CARRIED, true);
	assert_int_equal(rig->report[0].sent, 5);
}

static void
an_execution_ends_before_its_connection(void **state)
{
	struct rig *rig = *state;

	serve(rig, "*:*", 1000, 100);
	relay(rig);
	assert_int_equal(rig->n_reports, 0);
	grant_close(&rig->proxy, EXECUTION);
	assert_report(rig, 1, EGRESS_CUT, true);
	assert_int_equal(rig->n_closed, 1);
}

static void
an_execution_ends_before_its_name_is_known(void **state)
{
	struct rig *rig = *state;

	serve(rig, "*:*", 1000, 100);
	ask(rig, "silent.test", 80);
	UNTIL(rig, readable(rig->names));
	assert_int_equal(rig->n_reports, 0);
	grant_close(&rig->proxy, EXECUTION);
	assert_report(rig, 1, EGRESS_CUT, false);
}

static void
no_rule_allows_it(void **state)
{
	struct rig *rig = *state;

	serve(rig, "elsewhere.test:1", 1000, 100);
	ask(rig, "127.0.0.1", rig->origin_port);
	assert_int_equal(status(rig), 403);
	close(rig->script);
	rig->script = -1;
	assert_report(rig, 1, EGRESS_DENIED_RULE, false);
}

static void
nobody_listens_there(void **state)
{
	struct rig *rig = *state;
	uint16_t port;
	int silent = bound(SOCK_STREAM, &port);

	serve(rig, "*:*", 1000, 100);
	ask(rig, "127.0.0.1", port);
	assert_int_equal(status(rig), 502);
	grant_close(&rig->proxy, EXECUTION);
	assert_report(rig, 1, EGRESS_NO_CONNECTION, false);
	close(silent);
}

static void
bytes_are_used_up_in_between_and_before(void **state)
{
	static const char much[2000];
	struct rig *rig = *state;

	serve(rig, "*:*", sizeof(much) / 2, 100);
	relay(rig);
	assert_int_equal(send(rig->accepted, much, sizeof(much), 0), sizeof(much));
	assert_report(rig, 1, EGRESS_LIMIT_BYTES, true);
	ask(rig, "127.0.0.1", rig->origin_port);
	assert_int_equal(status(rig), 403);
	grant_close(&rig->proxy, EXECUTION);
	assert_report(rig, 2, EGRESS_LIMIT_BYTES, false);
}

static void
nothing_comes_for_too_long(void **state)
{
	struct rig *rig = *state;

	serve(rig, "*:*", 1000, 1);
	relay(rig);
	assert_report(rig, 1, EGRESS_TIMED_OUT, true);
}

/* ---- memory ---- */

#ifndef WITH_SANITIZERS
/* Sends small pieces, each of which the proxy reads by itself, until nobody takes any more. Returns
 * the most memory that was in use meanwhile. */
static size_t
pour(struct rig *rig, int fd, size_t before)
{
	static const char piece[64];
	const int small = 65536, one = 1;
	size_t most = 0;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	for (int full = 0; full < 100; full++) {
		bool sent = send(fd, piece, sizeof(piece), MSG_DONTWAIT) > 0;
		size_t now;

		event_base_loop(rig->proxy.base, sent ? EVLOOP_NONBLOCK : EVLOOP_ONCE);
		now = mallinfo2().uordblks;
		most = now > most ? now : most;
		if (sent)
			full = 0;
	}
	assert_true(most > before + 8192);	/* something waits */
	return most;
}

/* Neither side reads what the other one sends. */
static void
a_connection_has_a_bounded_memory(void **state)
{
	struct rig *rig = *state;
	const int small = 65536;
	size_t before, most;

	setsockopt(rig->listener, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	setsockopt(rig->origin, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	serve(rig, "*:*", 1 << 30, 100);
	before = mallinfo2().uordblks;
	relay(rig);
	pour(rig, rig->accepted, before);
	most = pour(rig, rig->script, before);
	assert_in_range(most - before, 0, PROXY_CONNECTION_MAX);
	assert_int_equal(rig->n_reports, 0);
}
#endif

/* ---- a worker that kept a copy of the listening socket ---- */

static uint64_t
elapsed_ms(const struct rig *rig)
{
	return clock_ms() - rig->start_ms;
}

/* What lies unsent is thrown away at once. No guard is there yet to end a wait. */
static void
a_worker_cannot_have_the_proxy_linger(void **state)
{
	static const struct linger linger = { .l_onoff = 1, .l_linger = LINGER_S };
	static const char much[65536];
	struct rig *rig = *state;
	int small = 4096;

	setsockopt(rig->listener, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	setsockopt(rig->listener, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	serve(rig, "*:*", 1 << 30, 100);
	relay(rig);
	/* The script does not read: in the end no process on the way to it reads. */
	for (int full = 0; full < 100; full++) {
		if (send(rig->accepted, much, sizeof(much), MSG_DONTWAIT) > 0)
			full = 0;
		event_base_loop(rig->proxy.base, EVLOOP_ONCE);
	}
	rig->start_ms = clock_ms();
	grant_close(&rig->proxy, EXECUTION);
	event_base_loop(rig->proxy.base, EVLOOP_NONBLOCK);
	assert_in_range(elapsed_ms(rig), 0, HANG_MS);
	assert_report(rig, 1, EGRESS_CUT, true);
}

/* A worker that accepts the last connection between the proxy's epoll and accept makes the proxy
 * wait for the next one, were it not for the guard. */
static void
a_worker_cannot_have_the_proxy_wait(void **state)
{
	struct rig *rig = *state;
	pid_t rescuer;

	assert_int_equal(turns_guard(rig->proxy.base, NULL), 0);
	serve(rig, "*:*", 1000, 100);
	assert_int_equal(fcntl(rig->listener, F_SETFL, 0), 0);
	rescuer = fork();
	if (rescuer == 0) {
		stall_forget();
		sleep(HANG_MS / 1000);
		ask(rig, "127.0.0.1", rig->origin_port);
		_exit(0);
	}
	event_active(&LIST_FIRST(&rig->proxy.grants)->acceptable, EV_READ, 0);
	UNTIL(rig, rig->n_closed == 1);
	assert_in_range(elapsed_ms(rig), 0, HANG_MS);
	assert_true(LIST_EMPTY(&rig->proxy.grants));
	stall_pause();
	kill(rescuer, SIGKILL);
	assert_int_equal(waitpid(rescuer, NULL, 0), rescuer);
}

static void
a_worker_that_changes_the_socket_is_not_served(void **state)
{
	struct rig *rig = *state;

	serve(rig, "*:*", 1000, 100);
	assert_int_equal(fcntl(rig->listener, F_SETFL, 0), 0);
	ask(rig, "127.0.0.1", rig->origin_port);
	UNTIL(rig, rig->n_closed == 1);
	assert_true(LIST_EMPTY(&rig->proxy.grants));
	assert_int_equal(rig->n_reports, 0);
}

/* The supervisor ends a proxy that speaks of a grant that it has forgotten. */
static void
each_grant_is_closed_once(void **state)
{
	struct rig *rig = *state;

	grant_close(&rig->proxy, EXECUTION);
	assert_int_equal(rig->n_closed, 0);
	serve(rig, "*:*", 1000, 100);
	grant_close(&rig->proxy, EXECUTION);
	grant_close(&rig->proxy, EXECUTION);
	assert_int_equal(rig->n_closed, 1);
}

static void
a_listener_of_a_cell_that_has_ended(void **state)
{
	struct rig *rig = *state;
	int ended = dup(rig->listener);

	assert_int_equal(shutdown(ended, SHUT_RDWR), 0);
	assert_int_equal(open_grant(rig, ended, "*:*", 1000, 100), -ENOTSOCK);
	assert_true(LIST_EMPTY(&rig->proxy.grants));
	assert_int_equal(rig->n_closed, 1);
	grant_close(&rig->proxy, EXECUTION);
	assert_int_equal(rig->n_closed, 1);
}

/* A script connects this often, and never sends anything. */
static void
connect_often(int listener, int *fd, unsigned int n)
{
	struct sockaddr_in at = { 0 };
	socklen_t len = sizeof(at);

	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	for (unsigned int i = 0; i < n; i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(fd[i], (struct sockaddr *)&at, sizeof(at)), 0);
	}
}

static void
open_grant_of(struct rig *rig, uint64_t execution, const char *tenant, int listener)
{
	struct msg_str allow = msg_str("*:*");
	struct msg_egress_open open = { .execution = execution, .tenant = msg_str(tenant),
		.allow = { &allow, 1 }, .bytes_max = 1000, .rate_max = 1 << 20,
		.connections = 20, .connections_max = 100, .idle_seconds = 100,
		.connection_seconds = 1000 };

	assert_int_equal(grant_open(&rig->proxy, &open, dup(listener)), 0);
}

static const struct grant *
grant_of(const struct rig *rig, uint64_t execution)
{
	const struct grant *g;

	LIST_FOREACH(g, &rig->proxy.grants, link)
		if (g->execution == execution)
			return g;
	fail_msg("no grant");
	return NULL;
}

/* Two executions of one tenant have one share together; what another one needs is left. */
static void
a_tenant_leaves_places_for_others(void **state)
{
	struct rig *rig = *state;
	int own[2], other, fd[3][16];
	uint16_t port;

	rig->proxy.connections_max = 20;
	for (int i = 0; i < 2; i++) {
		own[i] = bound(SOCK_STREAM, &port);
		assert_int_equal(listen(own[i], 32), 0);
		open_grant_of(rig, FIRST_OF_MANY + (uint64_t)i, "uid:1", own[i]);
		connect_often(own[i], fd[i], 16);
	}
	other = bound(SOCK_STREAM, &port);
	assert_int_equal(listen(other, 32), 0);
	UNTIL(rig, rig->proxy.n_connections == 10);
	for (int i = 0; i < 20; i++)
		event_base_loop(rig->proxy.base, EVLOOP_NONBLOCK);
	assert_int_equal(rig->proxy.n_connections, 10);
	open_grant_of(rig, FIRST_OF_MANY + 2, "uid:2", other);
	connect_often(other, fd[2], 3);
	UNTIL(rig, rig->proxy.n_connections == 13);
	/* Those that wait are served when others end. */
	for (int i = 0; i < 16; i++)
		close(fd[0][i]);
	UNTIL(rig, grant_of(rig, FIRST_OF_MANY + 1)->n_connections == 9);
	assert_int_equal(rig->proxy.n_connections, 12);
	for (uint64_t execution = FIRST_OF_MANY; execution <= FIRST_OF_MANY + 2; execution++)
		grant_close(&rig->proxy, execution);
	assert_true(LIST_EMPTY(&rig->proxy.holders));
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < (i < 2 ? 16 : 3); j++)
			if (i > 0)
				close(fd[i][j]);
	close(own[0]);
	close(own[1]);
	close(other);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(both_ends_come_to_their_end),
		TEST(an_execution_ends_before_its_connection),
		TEST(an_execution_ends_before_its_name_is_known),
		TEST(no_rule_allows_it),
		TEST(nobody_listens_there),
		TEST(bytes_are_used_up_in_between_and_before),
		TEST(nothing_comes_for_too_long),
#ifndef WITH_SANITIZERS
		TEST(a_connection_has_a_bounded_memory),
#endif
		TEST(a_worker_cannot_have_the_proxy_linger),
		TEST(a_worker_cannot_have_the_proxy_wait),
		TEST(a_worker_that_changes_the_socket_is_not_served),
		TEST(each_grant_is_closed_once),
		TEST(a_listener_of_a_cell_that_has_ended),
		TEST(a_tenant_leaves_places_for_others),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
