/* SPDX-License-Identifier: Apache-2.0 */
/* The whole engine with real zygotes and workers, as root (then as the service's user)
 * and as an ordinary user. Each way is a process of its own, because start-up cannot be
 * undone; this one stays outside, is the reaper of all processes that they leave behind, and so
 * sees that it is nothing. Exits 77 when the worker program is not built. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "engine_rig.h"
#include "base/log.h"
#include "base/passrights.h"
#include "base/rota.h"
#include "base/why.h"
#include "engine/engine.h"
#include "engine/engine_parts.h"
#include "engine/execution_parts.h"
#include "engine/execution.h"
#include "engine/pool.h"
#include "engine/share.h"
#include "engine/tenant.h"
#include "engine/worker.h"
#include "engine/zygote.h"
#include "host/cgroup.h"
#include "host/startup.h"
#include "policy/config.h"
#include "tests/unit/base/linger.h"

/* As on a kernel that does not know it, or no script could pass anything. */
int
passrights_set(int socket, bool may)
{
	(void)socket;
	(void)may;
	return -ENOPROTOOPT;
}

/* ---- the tests ---- */

static void
hello_is_answered(void **state)
{
	struct rig_result r;

	(void)state;
	rig_run(&r, "print('hello')");
	rig_assert_status(&r, OUTCOME_OK);
	assert_string_equal(r.out, "hello\n");
	assert_string_equal(r.err, "");
	assert_int_equal(r.exit_code, 0);
	assert_int_equal(r.seen, 6);
	rig_run(&r, "1 + 1");
	rig_assert_status(&r, OUTCOME_OK);
	assert_string_equal(r.value, "2");
}

static void
failures_are_told_apart(void **state)
{
	static const struct {
		const char *script;
		enum outcome_status status;
		int exit_code, signal;
	} cases[] = {
		{ "raise ValueError('x')", OUTCOME_ERROR, 1, 0 },
		{ "import sys; sys.exit(3)", OUTCOME_ERROR, 3, 0 },
		{ "import sys; sys.exit(0)", OUTCOME_OK, 0, 0 },
		{ "import os; os._exit(7)", OUTCOME_ERROR, 7, 0 },
		{ "import os; os._exit(0)", OUTCOME_OK, 0, 0 },
		{ "import os; os.kill(os.getpid(), 9)", OUTCOME_KILLED, 137, 9 },
		{ "import os; os.kill(os.getpid(), 15)", OUTCOME_KILLED, 143, 15 },
		{ "import os; os.kill(os.getpid(), 11)", OUTCOME_CRASHED, 139, 11 },
		{ "import os; os.abort()", OUTCOME_CRASHED, 134, 6 },
		{ "def f(:\n", OUTCOME_ERROR, 1, 0 },
	};
	struct rig_result r;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rig_run(&r, cases[i].script);
		if (r.status != cases[i].status)
			print_error("%s\n", cases[i].script);
		rig_assert_status(&r, cases[i].status);
		assert_int_equal(r.exit_code, cases[i].exit_code);
		assert_int_equal(r.signal, cases[i].signal);
	}
	rig_run(&r, "raise ValueError('x')");
	assert_string_equal(r.error_type, "ValueError");
}

static void
input_and_arguments_arrive(void **state)
{
	static const char *const args[] = { "a b", "\xc3\xa4", "" };
	struct execution_request request = rig_request();
	struct rig_result r;

	(void)state;
	request.args = args;
	request.n_args = 3;
	request.stdin_text = "first\nsecond\n";
	request.stdin_len = strlen(request.stdin_text);
	rig_start(&r, "import sys\nprint(sys.argv[1:], sys.stdin.read().split())",
		   &request);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_OK);
	assert_string_equal(r.out, "['a b', '\xc3\xa4', ''] ['first', 'second']\n");
}

static void
unknown_profile_is_refused(void **state)
{
	struct execution_request request = rig_request();
	struct execution_watcher watcher = { 0 };
	struct execution *execution = NULL;
	struct why why;

	(void)state;
	request.profile = "no such";
	request.script = "";
	assert_int_equal(execution_start(rig.engine, rig.tenant, &request, &watcher,
					 &execution, &why),
			 -ENOENT);
	assert_string_equal(why.field, "profile");
}

static void
tenants_have_names(void **state)
{
	struct tenant *mine = rig.tenant, *named, *uid;
	char longest[512];
	struct rig_result r;

	(void)state;
	uid = engine_tenant(rig.engine, 4711);
	assert_string_equal(tenant_principal(uid), "uid:4711");
	named = engine_tenant_named(rig.engine, "uid:4711");
	assert_ptr_equal(named, uid);
	tenant_release(named);
	tenant_release(uid);
	/* a number in another kind of name is another's */
	named = engine_tenant_named(rig.engine, "token:uid:4711");
	assert_ptr_not_equal(named, uid);
	assert_ptr_equal(engine_tenant_named(rig.engine, "token:uid:4711"), named);
	tenant_release(named);
	rig.tenant = named;
	rig_run(&r, "print('hello')");
	rig_assert_status(&r, OUTCOME_OK);
	tenant_release(named);
	/* longer than a directory's name, and with what no such name has */
	memset(longest, '/', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	rig.tenant = named = engine_tenant_named(rig.engine, longest);
	rig_run(&r, "print('hello')");
	rig_assert_status(&r, OUTCOME_OK);
	tenant_release(named);
	rig.tenant = mine;
}

static void
a_tenant_is_held_to_its_profile(void **state)
{
	const struct execution_watcher watcher = { .on_outcome = NULL };
	struct execution_request request = rig_request();
	const char *basic = rig.config->profile[0].name;
	struct execution *execution;
	struct why why;
	struct rig_result r;

	(void)state;
	request.script = "";
	request.profile = basic;
	tenant_restrict(rig.tenant, "other");
	assert_int_equal(execution_start(rig.engine, rig.tenant, &request, &watcher,
					 &execution, &why), -EACCES);
	assert_string_equal(why.field, "profile");
	/* nor by saying nothing */
	request.profile = NULL;
	assert_int_equal(execution_start(rig.engine, rig.tenant, &request, &watcher,
					 &execution, &why), -ENOENT);
	tenant_restrict(rig.tenant, basic);
	rig_run(&r, "print('hello')");
	rig_assert_status(&r, OUTCOME_OK);
	tenant_restrict(rig.tenant, "");
}

static void
time_limits_hold(void **state)
{
	struct execution_request request = rig_request();
	struct rig_result r;

	(void)state;
	/* How far a script gets in so little time is the machine's matter. */
	request.limits.wall_ms = 300;
	do {
		rig_start(&r, "import time\nprint('before', flush=True)\ntime.sleep(600)",
			  &request);
		rig_turn_until(&r.over);
		rig_assert_status(&r, OUTCOME_TIMEOUT);
		assert_int_equal(r.exit_code, 130);	/* it is interrupted first */
		assert_in_range(r.duration_ms, request.limits.wall_ms, RIG_PATIENCE_MS);
		request.limits.wall_ms *= 4;
	} while (r.seen == 0 && request.limits.wall_ms < RIG_PATIENCE_MS / 2);
	assert_string_equal(r.out, "before\n");

	/* The watchdog may look too late; then the kernel ends it, after 2 s. */
	request = rig_request();
	request.limits.cpu_ms = 300;
	rig_start(&r, "while True: pass", &request);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_CPU_LIMIT);
	assert_in_range(r.cpu_ms, 300, 4000);
}

static void
memory_limit_holds(void **state)
{
	struct execution_request request = rig_request();
	struct rig_result r;

	(void)state;
	/* AddressSanitizer's own allocator needs what is left when there is no room for one
	 * more. */
	request.limits.memory_bytes = 128 << 20;
	rig_start(&r, "a = []\nwhile True: a.append(bytearray(36 << 20))", &request);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_MEMORY_LIMIT);
	assert_non_null(strstr(r.message, "128 MiB"));

	/* In small bites, with the error swallowed, from children, in shared memory. */
	rig_start(&r,
		   "import mmap, time\nm = mmap.mmap(-1, 200 << 20)\n"
		   "for i in range(0, 200 << 20, 4096): m[i] = 1\ntime.sleep(600)",
		   &request);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_MEMORY_LIMIT);
	rig_start(&r, "import os, time\n"
		   "for i in range(4):\n"
		   "    if os.fork() == 0:\n"
		   "        b = bytearray(60 << 20)\n"
		   "        for i in range(0, len(b), 4096): b[i] = 1\n"
		   "        time.sleep(600)\n"
		   "time.sleep(600)", &request);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_MEMORY_LIMIT);
	/* And what stays below is left alone, though many share it. */
	rig_start(&r, "import os, time\nb = bytearray(60 << 20)\n"
		   "for i in range(0, len(b), 4096): b[i] = 1\n"
		   "p = []\n"
		   "for i in range(8):\n"
		   "    pid = os.fork()\n"
		   "    if pid == 0:\n"
		   "        time.sleep(0.3)\n"
		   "        os._exit(0)\n"
		   "    p.append(pid)\n"
		   "for pid in p: os.waitpid(pid, 0)\n", &request);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_OK);
	rig_run(&r, "print('hello')");
	rig_assert_status(&r, OUTCOME_OK);
}

static void
fork_bomb_is_contained(void **state)
{
	struct execution_request request = rig_request();
	struct rig_result r, other;

	(void)state;
	request.limits.wall_ms = 5000;
	/* Not what ends them: each copy takes some, and a thread's stack is data before it is
	 * used. */
	request.limits.memory_bytes *= 4;
	rig_start(&r, "import os\nwhile True: os.fork()", &request);
	rig_run(&other, "print('undisturbed')");
	rig_assert_status(&other, OUTCOME_OK);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_PIDS_LIMIT);
	rig_start(&r,
		   "import threading, time\n"
		   "while True: threading.Thread(target=time.sleep, args=(600,)).start()",
		   &request);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_PIDS_LIMIT);
}

static void
flood_is_cut_and_ended(void **state)
{
	struct execution_request request = rig_request();
	struct rig_result r, other;

	(void)state;
	request.limits.output_bytes = 64 * 1024;
	rig_start(&r, "print('start' + 'x' * 500000 + 'end')", &request);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_OK);
	assert_memory_equal(r.out, "startxxx", 8);
	assert_int_equal(r.out_written, 500009);
	assert_in_range(r.out_len, 60 * 1024, 66 * 1024);
	assert_in_range(r.out_dropped, 500009 - 65536, 500009);

	request.limits.output_total = 8 << 20;
	rig_start(&r, "while True: print('x' * 65000)", &request);
	rig_run(&other, "print('undisturbed')");
	rig_assert_status(&other, OUTCOME_OK);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_OUTPUT_LIMIT);
	assert_in_range(r.out_written, 8 << 20, 10 << 20);
}

static void
cancel_ends_it_once(void **state)
{
	struct execution_request request = rig_request();
	struct execution *e;
	struct rig_result r;

	(void)state;
	e = rig_start(&r, "import time\ntime.sleep(600)", &request);
	execution_cancel(e, CANCEL_BY_CLIENT);
	execution_cancel(e, CANCEL_DISCONNECTED);
	assert_false(r.over);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_CANCELLED);
	assert_non_null(strstr(r.message, "the client cancelled"));

	/* The files that it leaves are reported to the caller. */
	e = rig_start(&r, "import time\nopen('left', 'w').close()\nprint('go', flush=True)\n"
		      "time.sleep(600)", &request);
	rig_turn_until_seen(&r);
	execution_cancel(e, CANCEL_BY_CLIENT);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_CANCELLED);
	assert_string_equal(r.files, "left\n");

	/* There is no watcher any more: it continues, and no callback is called. */
	e = rig_start(&r, "print('unseen')", &request);
	execution_unwatch(e);
	rig_run(&r, "print('seen')");
	rig_assert_status(&r, OUTCOME_OK);
}

/* Every answer holds its own nonce and no other. */
static void
answers_do_not_mix(void **state)
{
	enum { N = 64 };
	static struct rig_result r[2 * N];
	struct execution_request request = rig_request();
	struct tenant *other = engine_tenant(rig.engine, 4711), *mine = rig.tenant;
	char script[128], expected[64];

	(void)state;
	for (int i = 0; i < 2 * N; i++) {
		snprintf(script, sizeof(script),
			 "import sys\nprint('nonce', %d)\nprint('err', %d, "
			 "file=sys.stderr)",
			 i, i);
		rig.tenant = i % 2 ? other : mine;
		rig_start(&r[i], script, &request);
	}
	rig.tenant = mine;
	for (int i = 0; i < 2 * N; i++) {
		rig_turn_until(&r[i].over);
		rig_assert_status(&r[i], OUTCOME_OK);
		snprintf(expected, sizeof(expected), "nonce %d\n", i);
		assert_string_equal(r[i].out, expected);
		snprintf(expected, sizeof(expected), "err %d\n", i);
		assert_string_equal(r[i].err, expected);
	}
	tenant_release(other);
}

/* Waits until these executions have said how they end, which the engine has not read yet. */
static void
await_ends(struct execution *const *e, const struct rig_result *r, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct pollfd control;

		if (r[i].over || e[i]->worker == NULL)	/* it was read already */
			continue;
		control = (struct pollfd){ .fd = e[i]->worker->control, .events = POLLIN };
		assert_int_equal(TEMP_FAILURE_RETRY(poll(&control, 1, RIG_PATIENCE_MS)), 1);
	}
}

/* Long outputs whose scripts have all ended meanwhile are answered in turns of their own. */
static void
long_answers_take_turns(void **state)
{
	enum { N = 4 };
	static const char script[] = "import sys\nsys.stderr.write('e' * 40000)\n"
				     "print('o' * 40000)\n";
	static struct rig_result r[N];
	struct execution *e[N];
	struct execution_request request = rig_request();
	struct rota *rota = rota_new(rig.base);
	struct engine_counts counts;
	unsigned int over = 0;

	(void)state;
	rig.engine->options.rota = rota;
	for (int i = 0; i < N; i++)
		e[i] = rig_start(&r[i], script, &request);
	do {
		event_base_loop(rig.base, EVLOOP_ONCE);
		engine_count(rig.engine, &counts);
	} while (counts.queued > 0);
	for (int i = 0; i < N; i++)
		over += r[i].over;
	await_ends(e, r, N);
	for (unsigned int before = over; over < N; before = over) {
		event_base_loop(rig.base, EVLOOP_ONCE);
		over = 0;
		for (int i = 0; i < N; i++)
			over += r[i].over;
		assert_in_range(over, before, before + 1);
	}
	for (int i = 0; i < N; i++)
		rig_assert_status(&r[i], OUTCOME_OK);
	rig.engine->options.rota = NULL;
	rota_free(rota);
}

/* A tenant whose calls never cease to wait, and another one, which gets a warm worker all the same.
 */
static void
a_long_queue_leaves_warm_workers_to_others(void **state)
{
	enum { N = 32 };
	static struct rig_result r[N];
	struct execution_request request = rig_request();
	struct tenant *other = NULL;
	uint64_t end = rig_now_us() + RIG_PATIENCE_MS * 1000;

	(void)state;
	for (int i = 0; i < N; i++)
		rig_start(&r[i], "1", &request);
	while (!other || other->share[0].n_warm == 0) {
		event_base_loop(rig.base, EVLOOP_ONCE);
		assert_in_range(rig_now_us(), 0, end);
		for (int i = 0; i < N; i++) {
			if (!r[i].over)
				continue;
			if (!other)
				other = engine_tenant(rig.engine, 4712);
			rig_start(&r[i], "1", &request);
		}
	}
	for (int i = 0; i < N; i++)
		rig_turn_until(&r[i].over);
	tenant_release(other);
}

static void
full_queue_answers_overloaded(void **state)
{
	unsigned int n = rig.config->pool.tenant_queue_max +
			 rig.config->pool.tenant_running_max + 8;
	struct rig_result *r = calloc(n, sizeof(*r));
	struct execution **e = calloc(n, sizeof(*e));
	struct execution_request request = rig_request();
	unsigned int overloaded = 0;

	(void)state;
	for (unsigned int i = 0; i < n; i++)
		e[i] = rig_start(&r[i], "import time\ntime.sleep(600)", &request);
	/* As if a worker had been tried, which could not run it. */
	e[n - 1]->usage.start_us = rig_now_us();
	rig_turn_until(&r[n - 1].over);
	rig_assert_status(&r[n - 1], OUTCOME_OVERLOADED);
	assert_in_range(r[n - 1].retry_ms, 1, 3600000);
	assert_int_equal(r[n - 1].exit_code, -1);
	assert_int_equal(r[n - 1].duration_ms, 0);
	for (unsigned int i = 0; i < n; i++)
		if (!r[i].over)
			execution_cancel(e[i], CANCEL_BY_CLIENT);
		else
			overloaded += r[i].status == OUTCOME_OVERLOADED;
	assert_in_range(overloaded, 1, n);
	for (unsigned int i = 0; i < n; i++) {
		rig_turn_until(&r[i].over);
		assert_int_equal(r[i].outcomes, 1);
	}
	free(r);
	free(e);
}

/* Lets a waiting execution look at the clock, as if it had waited for longer. */
static void
wait_longer(struct execution *e, uint64_t ms)
{
	e->usage.asked_us -= ms * 1000;
	event_active(&e->deadline, EV_TIMEOUT, 0);
	event_base_loop(rig.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

/* Behind others a call waits for half of its time, but as long as a worker takes to be made; one
 * for which a worker is made waits longer, and a job longest. */
static void
waits_are_a_part_of_the_time(void **state)
{
	unsigned int *most = &rig.tenant->queue.running_max, before = *most;
	struct execution_request request = rig_request();
	struct rig_result r[4], other;
	struct execution *e[4], *runs;

	(void)state;
	*most = 1;
	runs = rig_start(&other, "import time\nprint(1, flush=True)\ntime.sleep(600)", &request);
	rig_turn_until_seen(&other);
	request.limits.wall_ms = 4000;
	e[1] = rig_start(&r[1], "print(1, flush=True)\nwhile True: pass", &request);
	*most = before;
	wait_longer(e[1], 15000);
	assert_false(r[1].over);
	pool_dispatch(rig.tenant, e[1]->item.kind);
	rig_turn_until_seen(&r[1]);
	*most = 1;
	request.limits.wall_ms = 40000;
	e[0] = rig_start(&r[0], "1", &request);
	request.limits.wall_ms = 1000;
	e[2] = rig_start(&r[2], "1", &request);
	request.patient = true;
	e[3] = rig_start(&r[3], "1", &request);
	wait_longer(e[0], 12000);
	assert_false(r[0].over);
	wait_longer(e[2], 10000);
	wait_longer(e[0], 8000);
	rig_turn_until(&r[2].over);
	rig_turn_until(&r[0].over);
	rig_assert_status(&r[0], OUTCOME_OVERLOADED);
	rig_assert_status(&r[2], OUTCOME_OVERLOADED);
	assert_non_null(strstr(r[2].message, "no worker was free for 1"));
	wait_longer(e[3], 30000);
	assert_false(r[3].over);
	rig_turn_until(&r[1].over);
	rig_assert_status(&r[1], OUTCOME_TIMEOUT);
	assert_non_null(strstr(r[1].message, "timeout of 4 s reached, 2 s of it before it ran"));
	*most = before;
	pool_dispatch(rig.tenant, e[3]->item.kind);
	rig_turn_until(&r[3].over);
	rig_assert_status(&r[3], OUTCOME_OK);
	execution_cancel(runs, CANCEL_BY_CLIENT);
	rig_turn_until(&other.over);
}

static void
lost_zygote_is_replaced(void **state)
{
	pid_t first = zygote_pid(rig.engine->pool->profile[0].zygote);
	struct execution_request request = rig_request();
	struct rig_result r, goes_on;

	(void)state;
	rig_run(&r, "print('before')");
	rig_assert_status(&r, OUTCOME_OK);
	rig_start(&goes_on, "import time\ntime.sleep(0.5)\nprint('went on')",
		   &request);
	assert_int_equal(kill(first, SIGKILL), 0);
	rig_run(&r, "print('meanwhile')");
	rig_turn_until(&goes_on.over);
	rig_assert_status(&goes_on, OUTCOME_OK);
	for (int i = 0; i < 20; i++) {
		rig_run(&r, "print('after')");
		rig_assert_status(&r, OUTCOME_OK);
	}
	assert_int_not_equal(zygote_pid(rig.engine->pool->profile[0].zygote), first);
}

static int
compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void
on_pause_over(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	*(bool *)arg = true;
}

/* Not a judgement, but a number to look at: the machine may be busy. */
static void
hello_is_quick(void **state)
{
	enum { N = 300 };
	static const struct timeval pause = { 0, 10000 };
	uint64_t took[N];
	struct rig_result r;

	(void)state;
	for (int i = 0; i < N; i++) {
		bool rested = false;
		struct event *rest = evtimer_new(rig.base, on_pause_over, &rested);
		uint64_t start;

		evtimer_add(rest, &pause);
		rig_turn_until(&rested);
		event_free(rest);
		start = rig_now_us();
		rig_run(&r, "print('hello')");
		took[i] = rig_now_us() - start;
		rig_assert_status(&r, OUTCOME_OK);
	}
	qsort(took, N, sizeof(took[0]), compare);
	print_message("hello: p50 %u us, p90 %u us, p99 %u us\n",
		      (unsigned int)took[N / 2], (unsigned int)took[N * 9 / 10],
		      (unsigned int)took[N * 99 / 100]);
}

static void
idle_tenants_are_given_up(void **state)
{
	uint32_t seconds = rig.config->pool.idle_seconds;
	struct tenant *guest = engine_tenant(rig.engine, 815);
	uint64_t end = rig_now_us() + RIG_PATIENCE_MS * 1000;
	struct engine_counts counts;
	struct rig_result r;

	(void)state;
	tenant_release(guest);
	rig.config->pool.idle_seconds = 1;
	do {
		event_base_loop(rig.base, EVLOOP_ONCE);
		engine_count(rig.engine, &counts);
		assert_in_range(rig_now_us(), 0, end);
	} while (counts.tenants > 1 || counts.workers > 0 ||
		 (rig.cgroups != NULL && cgroup_root_count(rig.cgroups) > 1));
	rig.config->pool.idle_seconds = seconds;
	/* One that is held comes back, if with a colder start. */
	rig_run(&r, "print('hello')");
	rig_assert_status(&r, OUTCOME_OK);
}

/* Turns the loop until the pool is as it is at rest: as many warm as configured for
 * each of n tenants, and a cgroup for each of all these, nothing else. */
static void
settle(unsigned int n)
{
	static const struct timeval pause = { 0, 100000 };
	struct engine_counts counts;
	uint64_t end = rig_now_us() + RIG_PATIENCE_MS * 1000;

	do {
		bool rested = false;
		struct event *rest = evtimer_new(rig.base, on_pause_over, &rested);

		evtimer_add(rest, &pause);
		rig_turn_until(&rested);
		event_free(rest);
		engine_count(rig.engine, &counts);
		assert_in_range(rig_now_us(), 0, end);
	} while (counts.warm != n * rig.config->pool.warm ||
		 counts.workers != counts.warm ||
		 (rig.cgroups != NULL &&
		  cgroup_root_count(rig.cgroups) != n + counts.workers));
	assert_int_equal(counts.running, 0);
	assert_int_equal(counts.queued, 0);
	assert_int_equal(counts.tenants, n);
}

/* ---- an observer that makes an execution wait ---- */

static bool holds;
static struct engine_hold *held;

static void
release(struct engine_hold *hold)
{
	hold->what = NULL;
}

static int
on_start(void *arg, const struct engine_event *event, struct why *why_r)
{
	(void)arg;
	(void)why_r;
	if (!holds)
		return 0;
	held = event->hold;
	held->what = &holds;
	held->release = release;
	return 0;
}

static void
on_event(void *arg, const struct engine_event *event, const struct outcome *outcome)
{
	(void)arg;
	(void)event;
	(void)outcome;
}

static uint64_t quota_ms = UINT64_MAX, charged_ms;

static uint64_t
on_cpu(void *arg, const struct tenant *tenant, uint64_t cpu_ms)
{
	(void)arg;
	(void)tenant;
	charged_ms += cpu_ms;
	return quota_ms == UINT64_MAX || charged_ms < quota_ms ? quota_ms - charged_ms : 0;
}

static const struct engine_observer observer = {
	.on_start = on_start, .on_end = on_event, .on_answered = on_event,
	.on_cpu = on_cpu,
};

/* The script's own limit is far away. All that it used is charged, once. */
static void
a_script_ends_with_its_tenants_quota(void **state)
{
	struct execution_request request = rig_request();
	struct rig_result r;

	(void)state;
	settle(1);
	request.limits.cpu_ms = request.limits.wall_ms = RIG_PATIENCE_MS;
	charged_ms = 0;
	quota_ms = 300;
	rig_start(&r, "while True: pass", &request);
	rig_turn_until(&r.over);
	quota_ms = UINT64_MAX;
	rig_assert_status(&r, OUTCOME_CPU_LIMIT);
	assert_non_null(strstr(r.message, "quota cpu_seconds_per_hour"));
	assert_int_equal(charged_ms, r.cpu_ms);
	assert_in_range(r.cpu_ms, 300, RIG_PATIENCE_MS - 1);
}

/* While its record is written, a call has its warm worker. The next one would be made at the very
 * moment at which the call may run. */
static void
a_held_call_makes_no_worker(void **state)
{
	struct execution_request request = rig_request();
	struct engine_counts before, after;
	struct rig_result r;

	(void)state;
	rig_run(&r, "1");
	settle(1);
	engine_count(rig.engine, &before);
	holds = true;
	rig_start(&r, "print('x')", &request);
	holds = false;
	engine_count(rig.engine, &after);
	assert_int_equal(after.queued, 1);
	assert_int_equal(after.workers, before.workers);
	held->on_over(held, 0);
	engine_count(rig.engine, &after);
	assert_int_equal(after.running, 1);
	assert_int_equal(after.workers, before.workers);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_OK);
	settle(1);
}

static void
nothing_piles_up(void **state)
{
	struct rig_result r;
	unsigned int fds;

	(void)state;
	settle(1);
	fds = rig_count_fds();
	for (int i = 0; i < 500; i++) {
		rig_run(&r, "print('hello')");
		rig_assert_status(&r, OUTCOME_OK);
	}
	settle(1);
	assert_int_equal(rig_count_fds(), fds);
}

/* The end of a worker does not meet the call after it; it comes by itself a little later, and
 * what the script left running ends with it. */
static void
used_workers_end_in_a_quiet_moment(void **state)
{
	const struct pool *pool = rig.engine->pool;
	struct rig_result r;

	(void)state;
	settle(1);
	rig_run(&r, "import subprocess, threading, time\n"
		   "subprocess.Popen(['sleep', '600'])\n"
		   "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()");
	rig_assert_status(&r, OUTCOME_OK);
	assert_int_equal(pool->n_spent, 1);
	assert_int_equal(pool->n_ending, 0);
	rig_run(&r, "print('hello')");
	rig_assert_status(&r, OUTCOME_OK);
	settle(1);
	assert_int_equal(pool->n_workers, pool->n_warm);
}

static void
on_shut_down(void *arg)
{
	*(bool *)arg = true;
}

static void
shutdown_answers_everybody(void **state)
{
	struct execution_request request = rig_request();
	static struct rig_result r[40];
	bool over = false;

	(void)state;
	for (int i = 0; i < 40; i++)
		rig_start(&r[i], "import time\ntime.sleep(600)", &request);
	engine_shutdown(rig.engine, on_shut_down, &over);
	for (int i = 0; i < 40; i++)
		assert_false(r[i].over);
	rig_turn_until(&over);
	for (int i = 0; i < 40; i++) {
		rig_assert_status(&r[i], OUTCOME_CANCELLED);
		assert_non_null(strstr(r[i].message, "shutting down"));
	}
	rig_start(&r[0], "print('late')", &request);
	rig_turn_until(&r[0].over);
	rig_assert_status(&r[0], OUTCOME_CANCELLED);
	assert_non_null(strstr(r[0].message, "shutting down"));
}

/* It passes what it was given as standard input, and keeps no copy. */
static void
a_worker_cannot_make_us_wait(void **state)
{
	static const char script[] =
		"import array, os, socket, time\n"
		"c = socket.socket(fileno=os.dup(63))\n"
		"c.sendmsg([b'\\x01'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0]))])\n"
		"os.dup2(os.open('/dev/null', os.O_RDONLY), 0)\n"
		"print('passed', flush=True)\n"
		"c.send(b'\\xff' * 6)\n"
		"time.sleep(600)\n";
	struct execution_request request = rig_request();
	struct rig_result r, other;
	uint64_t start_us;
	int fd, unread;

	(void)state;
	fd = linger_open(&unread);
	request.channel = &fd;
	rig_start(&r, script, &request);
	start_us = rig_now_us();
	rig_run(&other, "print(1)");
	rig_assert_status(&other, OUTCOME_OK);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_WORKER_PROTOCOL_ERROR);
	assert_string_equal(r.out, "passed\n");
	assert_in_range(rig_now_us() - start_us, 0, HANG_MS * 1000);
	close(unread);
}

#define TOGETHER 4

/* Stops those that the zygote has named and that are not ready yet; serials of all of them. */
static unsigned int
stop_starting(uint64_t *stopped, unsigned int n)
{
	struct worker *w;

	for (size_t i = 0; i < POOL_BUCKETS; i++)
		LIST_FOREACH(w, &rig.engine->pool->by_serial[i], all_link) {
			bool known = w->state != WORKER_STARTING || w->pid == 0;

			for (unsigned int k = 0; k < n; k++)
				known |= stopped[k] == w->serial;
			if (!known && n < TOGETHER && kill(w->pid, SIGSTOP) == 0)
				stopped[n++] = w->serial;
		}
	return n;
}

/* Workers that are being made when TOGETHER calls wait miss their time. How many: a worker may be
 * ready before it can be stopped. The calls end well. */
static unsigned int
miss_together(void)
{
	struct execution_request request = rig_request();
	uint64_t stopped[TOGETHER];
	struct rig_result r[TOGETHER];
	struct worker *w;
	unsigned int n = 0, late = 0;

	while ((w = TAILQ_FIRST(&rig.engine->pool->age)) != NULL)
		worker_end(w);
	for (size_t i = 0; i < TOGETHER; i++)
		rig_start(&r[i], "print('late')", &request);
	while (n < TOGETHER && !r[TOGETHER - 1].over) {
		event_base_loop(rig.base, EVLOOP_ONCE);
		n = stop_starting(stopped, n);
	}
	for (unsigned int k = 0; k < n; k++) {
		w = pool_find(rig.engine, stopped[k]);
		if (w && w->state == WORKER_STARTING) {
			event_active(&w->timer, EV_TIMEOUT, 0);
			late++;
		} else if (w) {
			kill(w->pid, SIGCONT);
		}
	}
	for (size_t i = 0; i < TOGETHER; i++) {
		rig_turn_until(&r[i].over);
		rig_assert_status(&r[i], OUTCOME_OK);
	}
	return late;
}

/* On a busy machine all workers that are being made miss their time together. Calls that wait
 * are not told of it before it has happened again and again. */
static void
a_slow_moment_fails_no_call(void **state)
{
	unsigned int tries = 0;

	(void)state;
	while (miss_together() < 3)
		assert_true(++tries < 200);
}

/* Asks for workers and stops one before it is ready. Its serial. */
static uint64_t
stop_one_starting(void)
{
	uint64_t stopped[TOGETHER];
	struct worker *w;

	while ((w = TAILQ_FIRST(&rig.engine->pool->age)) != NULL)
		worker_end(w);
	pool_pump(rig.engine);
	while (stop_starting(stopped, 0) == 0)
		event_base_loop(rig.base, EVLOOP_ONCE);
	return stopped[0];
}

/* Changes the profile while that worker is stopped, and lets the successor of the zygote take over.
 * False: the worker was ready before it could be stopped. */
static bool
change_while_starting(uint64_t serial)
{
	struct pool_profile *profile = &rig.engine->pool->profile[0];
	uint64_t end = rig_now_us() + RIG_PATIENCE_MS * 1000;
	bool was_starting = false;
	struct worker *w;

	pool_change_profile(rig.engine, 0);
	while (profile->has_changed) {
		w = pool_find(rig.engine, serial);
		was_starting = w != NULL && w->state == WORKER_STARTING;
		event_base_loop(rig.base, EVLOOP_ONCE);
		assert_in_range(rig_now_us(), 0, end);
	}
	w = pool_find(rig.engine, serial);
	assert_true(w == NULL || w->state == WORKER_ENDING);
	return was_starting;
}

/* It was made with the settings from before. */
static void
a_changed_profile_ends_who_is_being_made(void **state)
{
	unsigned int tries = 0;
	struct rig_result r;

	(void)state;
	while (!change_while_starting(stop_one_starting()))
		assert_true(++tries < 200);
	rig_run(&r, "print('after')");
	rig_assert_status(&r, OUTCOME_OK);
	settle(1);
}

/* The kernel has no memory for what a worker has sent, until the worker has ended. */
static int starved_fd = -1;
static unsigned int to_refuse;

ssize_t
recvmsg(int fd, struct msghdr *message, int flags)
{
	siginfo_t ended = { 0 };

	if (fd != starved_fd || to_refuse == 0)
		return syscall(SYS_recvmsg, fd, message, flags);
	/* From now on at least one turn of the loop has the end, too. */
	if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid > 0)
		to_refuse--;
	errno = ENOMEM;
	return -1;
}

static void
last_messages_wait_for_memory(void **)
{
	struct execution_request request = rig_request();
	const struct execution *e;
	struct rig_result r;

	settle(1);
	to_refuse = 20;
	e = rig_start(&r, "import os; os.kill(os.getpid(), 11)", &request);
	assert_non_null(e->worker);
	starved_fd = e->worker->control;
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_CRASHED);
	assert_int_equal(r.signal, 11);
	assert_int_equal(to_refuse, 0);
}

static int
run_group(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello_is_answered),
		cmocka_unit_test(a_held_call_makes_no_worker),
		cmocka_unit_test(a_script_ends_with_its_tenants_quota),
		cmocka_unit_test(failures_are_told_apart),
		cmocka_unit_test(input_and_arguments_arrive),
		cmocka_unit_test(unknown_profile_is_refused),
		cmocka_unit_test(tenants_have_names),
		cmocka_unit_test(a_tenant_is_held_to_its_profile),
		cmocka_unit_test(time_limits_hold),
		cmocka_unit_test(memory_limit_holds),
		cmocka_unit_test(fork_bomb_is_contained),
		cmocka_unit_test(flood_is_cut_and_ended),
		cmocka_unit_test(cancel_ends_it_once),
		cmocka_unit_test(answers_do_not_mix),
		cmocka_unit_test(long_answers_take_turns),
		cmocka_unit_test(a_long_queue_leaves_warm_workers_to_others),
		cmocka_unit_test(full_queue_answers_overloaded),
		cmocka_unit_test(waits_are_a_part_of_the_time),
		cmocka_unit_test(lost_zygote_is_replaced),
		cmocka_unit_test(hello_is_quick),
		cmocka_unit_test(idle_tenants_are_given_up),
		cmocka_unit_test(nothing_piles_up),
		cmocka_unit_test(used_workers_end_in_a_quiet_moment),
		cmocka_unit_test(a_worker_cannot_make_us_wait),
		cmocka_unit_test(a_slow_moment_fails_no_call),
		cmocka_unit_test(a_changed_profile_ends_who_is_being_made),
		cmocka_unit_test(last_messages_wait_for_memory),
		cmocka_unit_test(shutdown_answers_everybody),
	};

	return cmocka_run_group_tests(tests, rig_set_up, rig_tear_down);
}

int
main(void)
{
	rig.observer = &observer;
	return rig_main(run_group, LOG_WARNING, true);
}
