/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions over a socketpair, on the fake engine. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/loop.h"
#include "base/rota.h"
#include "mcp/catalog.h"
#include "mcp/jsonrpc.h"
#include "mcp/mcp.h"
#include "policy/config.h"
#include "supervisor/stream.h"
#include "tests/unit/tools/fake_engine.h"
#include "tools/toolsets.h"

#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"
#define PONG "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"
#define INIT "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":" \
	"{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":" \
	"{\"name\":\"t\",\"version\":\"1\"}}}\n"
#define CALL(id, script) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\"," \
	"\"params\":{\"name\":\"run_script\",\"arguments\":{\"script\":\"" script "\"}}}\n"

struct rig {
	struct catalog catalog;
	struct config *config;
	struct loop *loop;
	struct engine *engine;
	struct mcp *mcp;
	struct rota *rota;
	struct stream_set *set;
	int fd;			/* the client's end */
	unsigned int empty_calls;
	bool engine_done;
};

static void
on_empty(void *arg)
{
	((struct rig *)arg)->empty_calls++;
}

static void
turn(struct rig *rig)
{
	event_base_loop(loop_base(rig->loop), EVLOOP_NONBLOCK);
}

/* Turns until condition or 10 s have passed; then the test fails. */
#define WAIT(rig, condition) do { \
	time_t most = time(NULL) + 60; \
	while (!(condition)) { \
		turn(rig); \
		assert_true(time(NULL) < most); \
	} \
} while (0)

static int
connect_client(struct rig *rig, uid_t uid, int *r)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
				    pair), 0);
	*r = stream_open(rig->set, pair[0], pair[0], false, uid);
	if (*r < 0)
		close(pair[0]);
	return pair[1];
}

static size_t buffered_max;	/* of the next rig; 0: as usual */

static struct rig *
rig_new(void)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	struct engine_options engine;
	struct mcp_options mcp;
	struct stream_options streams;
	int r;

	rig->config = config_new();
	rig->config->service.line_max = 100000;
	rig->config->service.sessions_per_tenant = 2;
	rig->config->service.sessions_max = 3;
	rig->loop = loop_new(false);
	engine = (struct engine_options){ .base = loop_base(rig->loop),
					  .config = rig->config };
	assert_int_equal(engine_new(&engine, &rig->engine), 0);
	toolsets_add(&rig->catalog, rig->config);
	mcp = (struct mcp_options){ .base = loop_base(rig->loop), .engine = rig->engine,
				    .config = rig->config, .catalog = &rig->catalog };
	rig->mcp = mcp_new(&mcp);
	rig->rota = rota_new(loop_base(rig->loop));
	streams = (struct stream_options){ .loop = rig->loop, .mcp = rig->mcp, .rota = rig->rota,
					     .engine = rig->engine, .config = rig->config,
					     .buffered_max = buffered_max };
	rig->set = stream_set_new(&streams);
	stream_set_on_empty(rig->set, on_empty, rig);
	rig->fd = connect_client(rig, 1000, &r);
	assert_int_equal(r, 0);
	return rig;
}

static void
rig_free(struct rig *rig)
{
	if (rig->fd >= 0)
		close(rig->fd);
	stream_set_free(rig->set);
	rota_free(rig->rota);
	mcp_free(rig->mcp);
	assert_int_equal(fake_engine_record()->tenants_held, 0);
	engine_free(rig->engine);
	loop_free(rig->loop);
	config_free(rig->config);
	free(rig);
}

static void
say_bytes(struct rig *rig, const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = send(rig->fd, bytes, len, MSG_NOSIGNAL);

		if (n < 0) {
			assert_int_equal(errno, EAGAIN);
			turn(rig);
			continue;
		}
		bytes += n;
		len -= (size_t)n;
	}
}

static void
say(struct rig *rig, const char *text)
{
	say_bytes(rig, text, strlen(text));
}

/* Reads one line, a byte at a time so that nothing past it is taken. */
static const char *
hear(struct rig *rig)
{
	static char line[4096];
	time_t most = time(NULL) + 60;
	size_t len = 0;

	while (len == 0 || line[len - 1] != '\n') {
		ssize_t n = read(rig->fd, line + len, 1);

		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return "(end)";
		if (n < 0) {
			assert_int_equal(errno, EAGAIN);
			assert_true(time(NULL) < most);
			turn(rig);
			continue;
		}
		len += (size_t)n;
		assert_true(len < sizeof(line) - 1);
	}
	line[len] = '\0';
	return line;
}

static bool
is_silent(struct rig *rig)
{
	struct pollfd p = { .fd = rig->fd, .events = POLLIN };

	for (int i = 0; i < 5; i++)
		turn(rig);
	return poll(&p, 1, 0) == 0;
}

static void
lines_may_come_in_any_pieces(void **state)
{
	static const char two[] = PING "\r\n\n  \n" PING "\n";
	struct rig *rig = rig_new();

	(void)state;
	for (size_t i = 0; i < sizeof(two) - 1; i++) {
		say_bytes(rig, two + i, 1);
		turn(rig);
	}
	assert_string_equal(hear(rig), PONG);
	assert_string_equal(hear(rig), PONG);
	for (size_t cut = 1; cut < sizeof(two) - 1; cut++) {
		say_bytes(rig, two, cut);
		turn(rig);
		say_bytes(rig, two + cut, sizeof(two) - 1 - cut);
		assert_string_equal(hear(rig), PONG);
		assert_string_equal(hear(rig), PONG);
	}
	for (int i = 0; i < 500; i++)
		say(rig, PING "\n");
	for (int i = 0; i < 500; i++)
		assert_string_equal(hear(rig), PONG);
	assert_true(is_silent(rig));
	rig_free(rig);
}

static void
half_close_is_answered_before_the_end(void **state)
{
	struct rig *rig = rig_new();

	(void)state;
	say(rig, INIT CALL("5", "six") PING);	/* the last line lacks its newline */
	shutdown(rig->fd, SHUT_WR);
	assert_non_null(strstr(hear(rig), "\"id\":0"));
	assert_string_equal(hear(rig), PONG);
	assert_non_null(strstr(hear(rig), "\"id\":5"));
	assert_string_equal(hear(rig), "(end)");
	WAIT(rig, rig->empty_calls == 1);
	assert_int_equal(stream_set_count(rig->set), 0);
	assert_int_equal(fake_engine_record()->cancelled, 0);
	rig_free(rig);
}

static void
a_cut_line_at_the_end_is_refused(void **state)
{
	struct rig *rig = rig_new();

	(void)state;
	say(rig, "{\"jsonrpc\":\"2.0\",\"id\":1,\"meth");
	shutdown(rig->fd, SHUT_WR);
	assert_non_null(strstr(hear(rig), "-32700"));
	assert_string_equal(hear(rig), "(end)");
	rig_free(rig);
}

static void
disconnect_cancels(void **state)
{
	struct rig *rig = rig_new();

	(void)state;
	say(rig, INIT CALL("1", "hang") CALL("2", "hang"));
	hear(rig);
	WAIT(rig, fake_engine_record()->started == 2);
	close(rig->fd);
	rig->fd = -1;
	WAIT(rig, fake_engine_record()->alive == 0);
	assert_int_equal(fake_engine_record()->cancelled, 2);
	assert_int_equal(fake_engine_record()->last_reason, CANCEL_DISCONNECTED);
	assert_int_equal(stream_set_count(rig->set), 0);
	rig_free(rig);
}

static void
leaving_after_half_close_cancels(void **state)
{
	struct rig *rig = rig_new();

	(void)state;
	say(rig, INIT CALL("1", "hang"));
	hear(rig);
	shutdown(rig->fd, SHUT_WR);
	assert_true(is_silent(rig));
	assert_int_equal(fake_engine_record()->started, 1);
	assert_int_equal(fake_engine_record()->cancelled, 0);
	close(rig->fd);
	rig->fd = -1;
	WAIT(rig, fake_engine_record()->cancelled == 1);
	assert_int_equal(fake_engine_record()->last_reason, CANCEL_DISCONNECTED);
	rig_free(rig);
}

/* A ping of exactly len bytes. */
static char *
long_ping(size_t len)
{
	static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"";
	char *line = malloc(len + 2);

	memset(line, ' ', len);
	memcpy(line, head, sizeof(head) - 1);
	strcpy(line + len - 1, "}\n");
	return line;
}

static void
a_line_may_be_so_long(void **state)
{
	struct rig *rig = rig_new();
	char *fits = long_ping(100000), *more = long_ping(100001);

	(void)state;
	say(rig, fits);
	assert_string_equal(hear(rig), PONG);
	say(rig, PING "\n");
	assert_string_equal(hear(rig), PONG);
	say(rig, more);
	assert_non_null(strstr(hear(rig), "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,"));
	assert_string_equal(hear(rig), "(end)");
	WAIT(rig, stream_set_count(rig->set) == 0);
	free(fits);
	free(more);
	rig_free(rig);
}

/* ---- long lines ---- */

#define LONG JSONRPC_LONG

/* turn() goes on until nothing happens any more. */
static void
one_turn(struct rig *rig)
{
	event_base_loop(loop_base(rig->loop), EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

/* Ends with the turn in which the stream has read the last of what was said. */
static void
is_heard(struct rig *rig, int fd)
{
	int left = 1;

	while (left) {
		one_turn(rig);
		assert_int_equal(ioctl(fd, TIOCOUTQ, &left), 0);
	}
}

/* Two of the three are in streams of one tenant. */
static void
long_lines_are_taken_by_turns_of_tenants(void **state)
{
	struct rig *rig = rig_new();
	char *line = long_ping(LONG), order[8] = "", byte[256];
	int fd[3] = { rig->fd }, r;

	(void)state;
	fd[1] = connect_client(rig, 1000, &r);
	fd[2] = connect_client(rig, 1001, &r);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(send(fd[i], line, LONG + 1, 0), LONG + 1);
	for (size_t n = 0; n < 3; n = strlen(order)) {
		one_turn(rig);
		for (size_t i = 0; i < 3; i++)
			if (read(fd[i], byte, sizeof(byte)) > 0)
				order[strlen(order)] = "aab"[i];
		assert_true(strlen(order) <= n + 1);	/* one in a turn of the loop */
	}
	assert_true(order[2] == 'a');			/* the one of the other tenant is not
							 * last */
	close(fd[1]);
	close(fd[2]);
	free(line);
	rig_free(rig);
}

static void
what_follows_a_long_line_waits_behind_it(void **state)
{
	static const char next[] = "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\"}\n";
	struct rig *rig = rig_new();
	char *line = long_ping(LONG), text[80];

	(void)state;
	for (int i = 2; i < 5; i++) {
		say(rig, line);
		snprintf(text, sizeof(text), next, i);
		say(rig, text);
	}
	for (int i = 2; i < 5; i++) {
		snprintf(text, sizeof(text), "\"id\":%d,", i);
		assert_string_equal(hear(rig), PONG);
		assert_non_null(strstr(hear(rig), text));
	}
	/* The last one of all, without its newline, is answered before the end. */
	line[LONG] = '\0';
	say(rig, line);
	shutdown(rig->fd, SHUT_WR);
	assert_string_equal(hear(rig), PONG);
	assert_string_equal(hear(rig), "(end)");
	free(line);
	rig_free(rig);
}

static void
who_leaves_while_a_line_waits_is_forgotten(void **state)
{
	struct rig *rig = rig_new();
	char *blanks = calloc(1, LONG + 1);

	(void)state;
	memset(blanks, ' ', LONG);
	say(rig, INIT);
	hear(rig);
	say(rig, blanks);
	say(rig, CALL("1", "hang"));
	is_heard(rig, rig->fd);
	close(rig->fd);
	rig->fd = -1;
	WAIT(rig, stream_set_count(rig->set) == 0);
	assert_int_equal(fake_engine_record()->started, 0);
	free(blanks);
	rig_free(rig);
}

static void
the_end_does_not_wait_for_long_lines(void **state)
{
	struct rig *rig = rig_new();
	char *line = long_ping(LONG);
	int other, r;

	(void)state;
	say(rig, line);
	is_heard(rig, rig->fd);
	stream_set_drain(rig->set);		/* it comes too late */
	assert_string_equal(hear(rig), "(end)");
	WAIT(rig, stream_set_count(rig->set) == 0);
	other = connect_client(rig, 1000, &r);
	assert_int_equal(send(other, line, LONG + 1, 0), LONG + 1);
	is_heard(rig, other);
	free(line);
	rig_free(rig);				/* and at once */
	close(other);
}

static void
a_line_without_end_is_refused(void **state)
{
	struct rig *rig = rig_new();
	char chunk[4096];

	(void)state;
	memset(chunk, 'a', sizeof(chunk));
	for (size_t sent = 0; sent <= 100000; sent += sizeof(chunk)) {
		say_bytes(rig, chunk, sizeof(chunk));
		turn(rig);
	}
	assert_non_null(strstr(hear(rig), "-32600"));
	assert_string_equal(hear(rig), "(end)");
	rig_free(rig);
}

static void
who_does_not_read_is_not_read_from(void **state)
{
	struct rig *rig = rig_new();
	unsigned int started, answers = 0;
	char *bytes = malloc(1 << 20);
	ssize_t n;

	(void)state;
	say(rig, INIT);
	hear(rig);
	for (int i = 0; i < 60; i++) {
		say(rig, CALL("1", "flood 300000"));
		is_silent(rig);
	}
	started = fake_engine_record()->started;
	assert_in_range(started, 2, 30);	/* it stopped taking requests */
	assert_int_equal(fake_engine_record()->alive, 0);
	assert_int_equal(stream_set_count(rig->set), 1);
	while (answers < 60) {
		turn(rig);
		n = read(rig->fd, bytes, 1 << 20);
		for (ssize_t i = 0; i < n; i++)
			answers += bytes[i] == '\n';
	}
	say(rig, PING "\n");
	assert_string_equal(hear(rig), PONG);
	free(bytes);
	rig_free(rig);
}

static void
output_is_bounded(void **state)
{
	struct rig *rig = rig_new();
	char line[256];

	(void)state;
	say(rig, INIT);
	hear(rig);
	/* As many as are taken in one go. */
	for (int i = 0; i < 200; i++) {
		snprintf(line, sizeof(line), CALL("%d", "flood 2000000"), i + 100);
		say_bytes(rig, line, strlen(line));
	}
	WAIT(rig, stream_set_count(rig->set) == 0);
	rig_free(rig);
}

/* Of all uids together: the one with the most makes room, and not the one that writes last. */
static void
output_of_all_is_bounded(void **state)
{
	char text[8192] = "", line[256], answer[4096];
	int full, r, own;
	struct rig *rig;

	(void)state;
	buffered_max = 16 * 1000 * 1000;
	rig = rig_new();
	buffered_max = 0;
	own = rig->fd;
	for (int i = 0; i < 7; i++) {
		snprintf(line, sizeof(line), CALL("%d", "flood 2000000"), i + 100);
		strcat(text, line);
	}
	full = rig->fd = connect_client(rig, 1001, &r);
	assert_int_equal(r, 0);
	say(rig, INIT);
	say(rig, text);
	for (int i = 0; i < 1000; i++)
		turn(rig);
	rig->fd = own;
	say(rig, INIT);
	say(rig, CALL("1", "flood 2000000") CALL("2", "flood 2000000"));
	/* At once: after 30 s a client that does not read would lose its stream in any case. */
	for (int i = 0; i < 1000; i++)
		turn(rig);
	assert_int_equal(stream_set_count(rig->set), 1);
	WAIT(rig, read(own, answer, sizeof(answer)) > 0);
	close(full);
	rig_free(rig);
}

static void
streams_are_counted_by_uid_and_in_all(void **state)
{
	struct rig *rig = rig_new();
	int fd[4], r;
	char c;

	(void)state;
	fd[0] = connect_client(rig, 1000, &r);
	assert_int_equal(r, 0);
	fd[1] = connect_client(rig, 1000, &r);
	assert_int_equal(r, -EDQUOT);
	fd[2] = connect_client(rig, 1001, &r);
	assert_int_equal(r, 0);
	/* No place: 1000 has two, and nothing has happened for longest on that of the rig. */
	fd[3] = connect_client(rig, 1002, &r);
	assert_int_equal(r, 0);
	WAIT(rig, stream_set_count(rig->set) == 3);
	WAIT(rig, read(rig->fd, &c, 1) == 0);
	close(connect_client(rig, 1003, &r));
	assert_int_equal(r, -EUSERS);
	close(fd[0]);
	close(fd[1]);
	close(fd[3]);
	WAIT(rig, stream_set_count(rig->set) == 1);
	assert_int_equal(fake_engine_record()->tenants_held, 1);
	fd[0] = connect_client(rig, 1000, &r);
	assert_int_equal(r, 0);
	close(fd[0]);
	close(fd[2]);
	rig_free(rig);
}

/* Of a table that is large enough for shares. */
static void
a_uid_has_as_many_as_are_left(void **state)
{
	struct rig *rig = rig_new();
	int n[3] = { 0 }, fd[3][40], r;

	(void)state;
	rig->config->service.sessions_max = rig->config->service.sessions_per_tenant = 40;
	for (uid_t uid = 0; uid < 3; uid++)
		do
			fd[uid][n[uid]] = connect_client(rig, 1000 + uid, &r);
		while (r == 0 && ++n[uid] < 40);
	assert_int_equal(n[0] + 1, 20);		/* one is the rig's */
	assert_int_equal(n[1], 10);
	assert_int_equal(n[2], 5);
	for (uid_t uid = 0; uid < 3; uid++)
		for (int i = 0; i <= n[uid]; i++)
			close(fd[uid][i]);
	WAIT(rig, stream_set_count(rig->set) == 1);
	rig_free(rig);
}

static void
on_engine_done(void *arg)
{
	((struct rig *)arg)->engine_done = true;
}

static void
draining_answers_what_runs(void **state)
{
	struct rig *rig = rig_new();
	int idle, r;
	char byte;

	(void)state;
	idle = connect_client(rig, 1001, &r);
	say(rig, INIT CALL("1", "hang"));
	hear(rig);
	WAIT(rig, fake_engine_record()->started == 1);
	say(rig, PING "\n");		/* comes too late */
	stream_set_drain(rig->set);
	WAIT(rig, stream_set_count(rig->set) == 1);
	assert_int_equal(read(idle, &byte, 1), 0);
	engine_shutdown(rig->engine, on_engine_done, rig);
	assert_non_null(strstr(hear(rig), "shutdown"));
	assert_string_equal(hear(rig), "(end)");
	WAIT(rig, rig->empty_calls == 1 && rig->engine_done);
	close(idle);
	rig_free(rig);
}

static void
two_descriptors_make_a_stream(void **state)
{
	struct rig *rig = rig_new();
	int in[2], out[2], r;
	char answer[256] = "";
	ssize_t n;

	(void)state;
	assert_int_equal(pipe2(in, O_NONBLOCK | O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_NONBLOCK | O_CLOEXEC), 0);
	r = stream_open(rig->set, in[0], out[1], true, 1001);
	assert_int_equal(r, 0);
	assert_int_equal(write(in[1], PING "\n", sizeof(PING)), sizeof(PING));
	WAIT(rig, (n = read(out[0], answer, sizeof(answer) - 1)) > 0);
	assert_string_equal(answer, PONG);
	close(in[1]);
	WAIT(rig, stream_set_count(rig->set) == 1);
	assert_int_equal(write(out[1], "x", 1), 1);	/* borrowed, so still open */
	close(in[0]);
	close(out[0]);
	close(out[1]);
	rig_free(rig);
}

static void
a_reader_of_the_pipe_that_leaves_cancels(void **state)
{
	struct rig *rig = rig_new();
	static const char text[] = INIT CALL("1", "hang");
	int in[2], out[2];

	(void)state;
	assert_int_equal(pipe2(in, O_NONBLOCK | O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_NONBLOCK | O_CLOEXEC), 0);
	assert_int_equal(stream_open(rig->set, in[0], out[1], true, 1001), 0);
	assert_int_equal(write(in[1], text, sizeof(text) - 1), sizeof(text) - 1);
	WAIT(rig, fake_engine_record()->started == 1);
	close(in[1]);
	is_silent(rig);
	assert_int_equal(fake_engine_record()->cancelled, 0);
	close(out[0]);
	WAIT(rig, fake_engine_record()->cancelled == 1);
	close(in[0]);
	close(out[1]);
	rig_free(rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_may_come_in_any_pieces),
		cmocka_unit_test(half_close_is_answered_before_the_end),
		cmocka_unit_test(a_cut_line_at_the_end_is_refused),
		cmocka_unit_test(disconnect_cancels),
		cmocka_unit_test(leaving_after_half_close_cancels),
		cmocka_unit_test(a_line_may_be_so_long),
		cmocka_unit_test(long_lines_are_taken_by_turns_of_tenants),
		cmocka_unit_test(what_follows_a_long_line_waits_behind_it),
		cmocka_unit_test(who_leaves_while_a_line_waits_is_forgotten),
		cmocka_unit_test(the_end_does_not_wait_for_long_lines),
		cmocka_unit_test(a_line_without_end_is_refused),
		cmocka_unit_test(who_does_not_read_is_not_read_from),
		cmocka_unit_test(output_is_bounded),
		cmocka_unit_test(output_of_all_is_bounded),
		cmocka_unit_test(streams_are_counted_by_uid_and_in_all),
		cmocka_unit_test(a_uid_has_as_many_as_are_left),
		cmocka_unit_test(draining_answers_what_runs),
		cmocka_unit_test(two_descriptors_make_a_stream),
		cmocka_unit_test(a_reader_of_the_pipe_that_leaves_cancels),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
