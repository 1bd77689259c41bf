/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in a real engine: what becomes of their state when cells end in all the ways that
 * they can. As root (then as the service's user) and as an ordinary user, each in a process of
 * its own. Exits 77 when the worker program is not built. */
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
#include <unistd.h>

#include <event2/event.h>

#include "engine_rig.h"
#include "base/log.h"
#include "base/why.h"
#include "engine/dispatch.h"
#include "engine/engine_parts.h"
#include "engine/repl_parts.h"
#include "engine/tenant.h"
#include "engine/worker.h"
#include "host/startup.h"
#include "policy/config.h"

#define SESSIONS_MAX 4
#define COMMITTED "2"	/* REPORT_COMMITTED of worker/line.h */

static struct session {
	struct repl *repl;
	bool ended, copied;
	int error;		/* of the last copy */
	unsigned int cells;
	char text[256];
} session;

static void
on_end(void *arg, const char *text)
{
	struct session *s = arg;

	s->ended = true;
	snprintf(s->text, sizeof(s->text), "%s", text);
}

static void
on_copied(void *arg, int error)
{
	struct session *s = arg;

	s->copied = true;
	s->error = error;
}

static void
open_with(uint64_t memory_mb)
{
	struct repl_options options = {
		.limits = rig.config->limits.standard, .sessions_max = SESSIONS_MAX,
		.memory_max = 200 << 20,
	};
	struct repl_watcher watcher = { on_end, &session };
	struct why why;

	memset(&session, 0, sizeof(session));
	options.limits.memory_bytes = memory_mb << 20;
	assert_int_equal(repl_open(rig.engine, rig.tenant, &options, &watcher, &session.repl,
				   &why), 0);
}

static int
open_session(void **state)
{
	(void)state;
	open_with(512);
	return 0;
}

static int
close_session(void **state)
{
	(void)state;
	repl_close(session.repl);
	session.repl = NULL;
	return 0;
}

static struct execution_request
request_in(unsigned int snapshot)
{
	struct execution_request request = rig_request();

	request.repl = session.repl;
	request.snapshot = snapshot;
	request.cell = ++session.cells;
	return request;
}

static void
run_in(struct rig_result *r, unsigned int snapshot, const char *code)
{
	struct execution_request request = request_in(snapshot);

	rig_start(r, code, &request);
	rig_turn_until(&r->over);
}

/* Runs a cell, and looks what became of it and of the state. */
static void
expect(const char *code, enum outcome_status status, enum outcome_state became)
{
	struct rig_result r;

	run_in(&r, 0, code);
	if (r.became != became)
		print_error("%s: state %d: %s\n%s\n", code, r.became, r.message, r.err);
	rig_assert_status(&r, status);
	assert_int_equal(r.became, became);
}

static void
gives(unsigned int snapshot, const char *code, const char *value)
{
	struct rig_result r;

	run_in(&r, snapshot, code);
	rig_assert_status(&r, OUTCOME_OK);
	assert_string_equal(r.value, value);
	assert_int_equal(r.became, STATE_COMMITTED);
}

static void
copy_snapshot(unsigned int from, unsigned int to, int error)
{
	session.copied = false;
	repl_copy(session.repl, from, to, on_copied, &session);
	rig_turn_until(&session.copied);
	assert_int_equal(session.error, error);
}

/* ---- the tests ---- */

static void
names_stay(void **state)
{
	struct rig_result r;

	(void)state;
	expect("import math\nx = 20", OUTCOME_OK, STATE_COMMITTED);
	gives(0, "x += 1\nx * 2", "42");
	gives(0, "_ + int(math.pi)", "45");
	expect("def f():\n    return x\n__name__", OUTCOME_OK, STATE_COMMITTED);
	gives(0, "import inspect; inspect.getsource(f)", "'def f():\\n    return x\\n'");
	run_in(&r, 0, "print('one'); print('two')");
	assert_string_equal(r.out, "one\ntwo\n");
}

static void
tracebacks_name_their_cell(void **state)
{
	struct rig_result r;

	(void)state;
	expect("def f():\n    return 1 / 0", OUTCOME_OK, STATE_COMMITTED);
	run_in(&r, 0, "pass\nf()");
	rig_assert_status(&r, OUTCOME_ERROR);
	assert_string_equal(r.error_type, "ZeroDivisionError");
	assert_non_null(strstr(r.err, "File \"<cell 2>\", line 2, in <module>\n    f()\n"));
	assert_non_null(strstr(r.err, "File \"<cell 1>\", line 2, in f\n    return 1 / 0\n"));
	run_in(&r, 0, "x = (");
	rig_assert_status(&r, OUTCOME_ERROR);
	assert_string_equal(r.error_type, "SyntaxError");
	assert_int_equal(r.became, STATE_COMMITTED);
}

static void
await_works_at_the_top(void **state)
{
	(void)state;
	expect("import asyncio", OUTCOME_OK, STATE_COMMITTED);
	gives(0, "y = await asyncio.sleep(0, 7)\ny", "7");
	gives(0, "y + 1", "8");
}

static void
a_cell_that_ends_itself_keeps_what_it_did(void **state)
{
	(void)state;
	expect("x = 1\nraise ValueError('x')", OUTCOME_ERROR, STATE_COMMITTED);
	expect("x += 1\nimport sys\nsys.exit(3)", OUTCOME_ERROR, STATE_COMMITTED);
	expect("x += 1\nquit()", OUTCOME_OK, STATE_COMMITTED);
	gives(0, "x", "3");
}

static void
a_cell_that_is_ended_leaves_nothing(void **state)
{
	static const struct {
		const char *code;
		enum outcome_status status;
	} cases[] = {
		{ "x = 2; import os; os._exit(0)", OUTCOME_OK },
		{ "x = 2; import os; os._exit(5)", OUTCOME_ERROR },
		{ "x = 2; import ctypes; ctypes.string_at(0)", OUTCOME_CRASHED },
		{ "x = 2; import os; os.abort()", OUTCOME_CRASHED },
		{ "x = 2; import os; os.kill(os.getpid(), 9)", OUTCOME_KILLED },
		{ "x = 2; import os; os.closerange(3, 100)", OUTCOME_ERROR },
	};

	(void)state;
	expect("x = 1", OUTCOME_OK, STATE_COMMITTED);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		expect(cases[i].code, cases[i].status, STATE_ROLLED_BACK);
		gives(0, "x", "1");
	}
}

static void
time_limits_hold(void **state)
{
	/* Otherwise it is interrupted first, and what it did is kept. */
	static const char deaf[] = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
				   "x = 2\nwhile True: pass";
	struct execution_request request;
	struct rig_result r;

	(void)state;
	expect("x = 1", OUTCOME_OK, STATE_COMMITTED);
	request = request_in(0);
	request.limits.wall_ms = 300;
	rig_start(&r, deaf, &request);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_TIMEOUT);
	assert_int_equal(r.became, STATE_ROLLED_BACK);
	request = request_in(0);
	request.limits.cpu_ms = 300;
	rig_start(&r, deaf, &request);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_CPU_LIMIT);
	assert_int_equal(r.became, STATE_ROLLED_BACK);
	/* Each cell has its own. */
	gives(0, "x", "1");
}

static void
cancel_interrupts_first(void **state)
{
	struct execution_request request = request_in(0);
	struct execution *e;
	struct rig_result r;

	(void)state;
	/* A signal just before one long sleep would be noticed after it. */
	e = rig_start(&r, "import time\nx = 1\nprint('go', flush=True)\n"
			  "while True: time.sleep(.01)", &request);
	rig_turn_until_seen(&r);
	execution_cancel(e, CANCEL_BY_CLIENT);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_CANCELLED);
	assert_string_equal(r.error_type, "KeyboardInterrupt");
	assert_int_equal(r.became, STATE_COMMITTED);
	gives(0, "x", "1");
}

static void
cancel_kills_what_does_not_listen(void **state)
{
	struct execution_request request;
	struct execution *e;
	struct rig_result r;

	(void)state;
	expect("x = 1", OUTCOME_OK, STATE_COMMITTED);
	request = request_in(0);
	e = rig_start(&r, "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nx = 2\n"
		      "print('go', flush=True)\nwhile True: pass", &request);
	rig_turn_until_seen(&r);
	execution_cancel(e, CANCEL_BY_CLIENT);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_CANCELLED);
	assert_int_equal(r.became, STATE_ROLLED_BACK);
	gives(0, "x", "1");
}

/* The order of events that a session with much state has to survive. */
static void
a_large_state_survives(void **state)
{
	struct execution_request request;
	struct execution *e;
	struct rig_result r;

	(void)state;
	repl_close(session.repl);
	open_with(160);	/* MiB */
	expect("import zlib, random\nrandom.seed(7)\nbig = random.randbytes(1 << 20) * 64\n"
	       "sum_ = zlib.crc32(big)", OUTCOME_OK, STATE_COMMITTED);
	expect("1 / 0", OUTCOME_ERROR, STATE_COMMITTED);
	gives(0, "zlib.crc32(big) == sum_", "True");
	request = request_in(0);
	request.limits.wall_ms = 200;
	rig_start(&r, "while True: pass", &request);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_TIMEOUT);
	gives(0, "zlib.crc32(big) == sum_", "True");
	/* Not refused as a whole by RLIMIT_DATA, which a script hears of. */
	run_in(&r, 0, "def eat():\n    more = []\n"
	       "    while True: more.append(bytearray(b'x') * (40 << 20))\neat()");
	rig_assert_status(&r, OUTCOME_MEMORY_LIMIT);
	run_in(&r, 0, "import os\nfor i in range(3):\n    if os.fork() == 0:\n"
	       "        more = b'x' * (60 << 20)\n        import time; time.sleep(60)\n"
	       "os.wait()");
	/* A controller ends one process at a time, the watchdog the cell. */
	rig_assert_status(&r, OUTCOME_MEMORY_LIMIT);
	assert_int_not_equal(r.became, STATE_LOST);
	gives(0, "zlib.crc32(big) == sum_", "True");
	expect("import ctypes; ctypes.string_at(0)", OUTCOME_CRASHED, STATE_ROLLED_BACK);
	gives(0, "zlib.crc32(big) == sum_", "True");
	request = request_in(0);
	request.limits.wall_ms = 1000;
	rig_start(&r, "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n"
		  "        pass", &request);
	rig_turn_until(&r.over);
	/* Which limit is met first is the machine's matter: each copy takes memory too. */
	if (r.status != OUTCOME_PIDS_LIMIT && r.status != OUTCOME_TIMEOUT)
		rig_assert_status(&r, OUTCOME_MEMORY_LIMIT);
	assert_int_equal(r.became, STATE_ROLLED_BACK);
	gives(0, "zlib.crc32(big) == sum_", "True");
	request = request_in(0);
	e = rig_start(&r, "print('go', flush=True)\nwhile True: pass", &request);
	rig_turn_until_seen(&r);
	execution_cancel(e, CANCEL_BY_CLIENT);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_CANCELLED);
	assert_int_equal(r.became, STATE_COMMITTED);
	gives(0, "zlib.crc32(big) == sum_", "True");
	assert_false(session.ended);
}

/* AddressSanitizer keeps what was freed, and with it a process stays as large as it was. */
#ifdef WITH_SANITIZERS
#define FREED_IS_KEPT true
#else
#define FREED_IS_KEPT false
#endif

static void
checkpoints_count_as_memory(void **state)
{
	struct repl_usage usage;
	struct rig_result r;
	char code[64];
	unsigned int i;

	(void)state;
	if (FREED_IS_KEPT)
		skip();
	if (rig.engine->memory_counted)
		skip();		/* where the kernel counts, no look is needed */
	repl_close(session.repl);
	open_with(160);
	for (i = 1; i < REPL_SNAPSHOTS_MAX; i++) {
		/* Too quick to be met by a look now and then. Five of them fit with their
		 * copies' own 3 MiB each, and a sixth is 14 MiB too much. */
		snprintf(code, sizeof(code), "x = b'%c' * (25 << 20)", 'a' + (int)i);
		run_in(&r, 0, code);
		if (r.status != OUTCOME_OK)
			break;
		copy_snapshot(0, i, 0);
	}
	rig_assert_status(&r, OUTCOME_MEMORY_LIMIT);
	assert_int_equal(r.became, STATE_ROLLED_BACK);
	assert_non_null(strstr(r.message, "memory limit of 160 MiB reached; peak "));
	assert_in_range(i, 3, 8);
	snprintf(code, sizeof(code), "x[:1] == b'%c'", 'a' + (int)i - 1);
	gives(0, code, "True");
	repl_drop(session.repl, 1);
	repl_drop(session.repl, 2);
	gives(0, "x = b'z' * (20 << 20); x[:1]", "b'z'");
	/* A copy has little of its own, and may yet be too much. */
	repl_usage(session.repl, &usage);
	session.repl->memory_bytes = 1 << 20;
	copy_snapshot(0, 1, -ENOMEM);
	assert_int_equal(session.repl->snapshots, usage.snapshots);
	session.repl->memory_bytes = 160 << 20;
	copy_snapshot(0, 1, 0);
	gives(1, "x[:1]", "b'z'");
}

static void
raise_to(uint64_t memory_mb, int error)
{
	struct why why = { .field = "" };

	assert_int_equal(repl_raise(session.repl, memory_mb << 20, &why), error);
	assert_string_equal(why.field, error < 0 ? "memory_mb" : "");
}

static void
memory_is_raised_for_all_states(void **state)
{
	struct rig_result r;

	(void)state;
	if (FREED_IS_KEPT)
		skip();
	repl_close(session.repl);
	open_with(64);
	copy_snapshot(0, 1, 0);
	run_in(&r, 0, "x = bytes(100 << 20)");
	rig_assert_status(&r, OUTCOME_MEMORY_LIMIT);
	raise_to(160, 0);
	raise_to(100, 0);		/* it has more, and keeps it */
	for (unsigned int i = 0; i < 2; i++) {
		run_in(&r, i, "len(bytes(100 << 20))");
		rig_assert_status(&r, OUTCOME_OK);
	}
	if (rig.engine->memory_counted)
		return;
	/* Hard limits of processes are what they were when the session began. */
	raise_to(201, -ERANGE);
	raise_to(200, 0);
	gives(0, "len(bytes(160 << 20)) >> 20", "160");
}

static void
a_full_session_can_be_emptied(void **state)
{
	struct rig_result r;

	(void)state;
	if (FREED_IS_KEPT)
		skip();
	repl_close(session.repl);
	open_with(64);
	run_in(&r, 0, "with open('/tmp/x', 'wb') as f:\n    while True: f.write(bytes(1 << 20))");
	rig_assert_status(&r, OUTCOME_MEMORY_LIMIT);
	assert_int_equal(r.became, STATE_ROLLED_BACK);
	gives(0, "import os\nos.path.getsize('/tmp/x') > 40 << 20", "True");
	/* Room for a cell, and not for what it may keep. */
	run_in(&r, 0, "x = b'x' * (30 << 20)");
	rig_assert_status(&r, OUTCOME_MEMORY_LIMIT);
	gives(0, "os.remove('/tmp/x')\n'x' in globals()", "False");
	gives(0, "x = b'x' * (30 << 20)\nlen(x)", "31457280");
}

static void
what_a_fork_keeps_is_as_before(void **state)
{
	(void)state;
	expect("import random, sqlite3, os\n"
	       "random.seed(5)\n"
	       "count = iter(range(100))\n"
	       "memory = sqlite3.connect(':memory:')\n"
	       "memory.execute('create table t (x)')\n"
	       "disk = sqlite3.connect('/workspace/d.db')\n"
	       "disk.execute('create table t (x)')\n"
	       "disk.commit()\n"
	       "open('/workspace/f', 'w').write('line 1\\nline 2\\nline 3\\n')\n"
	       "f = open('/workspace/f', buffering=1)\n"
	       "raw = os.open('/workspace/f', os.O_RDONLY)\n"
	       "first = f.readline()", OUTCOME_OK, STATE_COMMITTED);
	expect("random.random(); next(count); memory.execute('insert into t values (1)')\n"
	       "disk.execute('insert into t values (1)')\n"
	       "f.read(); os.read(raw, 5)\n"
	       "os._exit(0)", OUTCOME_OK, STATE_ROLLED_BACK);
	gives(0, "next(count)", "0");
	gives(0, "random.random() == random.Random(5).random()", "True");
	gives(0, "memory.execute('select count(*) from t').fetchone()", "(0,)");
	gives(0, "disk.execute('select count(*) from t').fetchone()", "(0,)");
	gives(0, "f.readline()", "'line 2\\n'");
	gives(0, "os.read(raw, 6)", "b'line 1'");
	expect("disk.execute('insert into t values (1)'); disk.commit()", OUTCOME_OK,
	       STATE_COMMITTED);
	gives(0, "disk.execute('select count(*) from t').fetchone()", "(1,)");
}

static void
snapshots_are_copied(void **state)
{
	struct repl_usage usage;

	(void)state;
	expect("import random; random.seed(1); x = [0]", OUTCOME_OK, STATE_COMMITTED);
	copy_snapshot(0, 5, 0);
	expect("x.append(1)", OUTCOME_OK, STATE_COMMITTED);
	copy_snapshot(0, 1, 0);
	gives(1, "x.append(2); x", "[0, 1, 2]");
	gives(0, "x", "[0, 1]");
	gives(0, "random.random() == random.Random(1).random()", "True");
	gives(1, "random.random() == random.Random(1).random()", "True");
	copy_snapshot(5, 0, 0);
	gives(0, "x", "[0]");
	gives(0, "x.append(9); x", "[0, 9]");
	copy_snapshot(5, 0, 0);
	gives(0, "x", "[0]");
	gives(1, "x", "[0, 1, 2]");
	copy_snapshot(7, 0, -ENOENT);
	gives(0, "x", "[0]");
	repl_drop(session.repl, 5);
	copy_snapshot(5, 0, -ENOENT);
	repl_usage(session.repl, &usage);
	assert_int_equal(usage.snapshots, 3);
	assert_false(usage.busy);
	/* One snapshot's loss is not another's. */
	repl_drop(session.repl, 0);
	expect("x", OUTCOME_CRASHED, STATE_LOST);
	gives(1, "x", "[0, 1, 2]");
	assert_false(session.ended);
}

static void
a_look_changes_nothing(void **state)
{
	struct execution_request request = request_in(0);
	struct rig_result r;

	(void)state;
	expect("class Shy:\n    def __repr__(self):\n        global n\n        n += 1\n"
	       "        return 'shy'\nn, shy = 1, Shy()", OUTCOME_OK, STATE_COMMITTED);
	request.cell = 0;
	request.inspect = true;
	rig_start(&r, "", &request);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_OK);
	assert_int_equal(r.became, STATE_NONE);
	assert_non_null(strstr(r.value, "n: int = 1"));
	assert_non_null(strstr(r.value, "shy: Shy = shy"));
	gives(0, "n", "1");
	expect("Shy.__repr__ = lambda self: __import__('os')._exit(3)", OUTCOME_OK,
	       STATE_COMMITTED);
	rig_start(&r, "", &request);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_ERROR);
	assert_int_equal(r.became, STATE_ROLLED_BACK);
	gives(0, "n", "1");
}

static void
cells_wait_for_each_other(void **state)
{
	struct execution_request request;
	struct rig_result r[6];

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		request = request_in(0);
		rig_start(&r[i], i == 0 ? "import time; n = [0]; time.sleep(0.1)"
					: "n.append(len(n)); n", &request);
	}
	for (size_t i = 0; i < 6; i++) {
		rig_turn_until(&r[i].over);
		rig_assert_status(&r[i], OUTCOME_OK);
	}
	assert_string_equal(r[5].value, "[0, 1, 2, 3, 4, 5]");
}

static void
what_is_lost_is_told(void **state)
{
	struct rig_result r;

	(void)state;
	run_in(&r, 0, "import threading, time\n"
	       "threading.Thread(target=time.sleep, args=(60,), name='clock', daemon=True).start()");
	rig_assert_status(&r, OUTCOME_OK);
	run_in(&r, 0, "import os, subprocess, socket\np = subprocess.Popen(['sleep', '60'])\n"
	       "a, b = socket.socketpair()");
	rig_assert_status(&r, OUTCOME_OK);
	gives(0, "p.poll(), threading.active_count()", "(None, 2)");
	run_in(&r, 0, "os._exit(1)");
	assert_int_equal(r.became, STATE_ROLLED_BACK);
	assert_non_null(strstr(r.notes, "1 process that cells had started was ended"));
	assert_non_null(strstr(r.notes, "thread 'clock' has ended"));
	assert_non_null(strstr(r.notes, "a socket is open"));
	/* Not 0, as of a child of another process. */
	gives(0, "p.poll(), threading.active_count()", "(-9, 1)");
	run_in(&r, 0, "a.close(); b.close(); 1");
	assert_string_equal(r.notes, "");
	run_in(&r, 0, "os._exit(1)");
	assert_string_equal(r.notes, "");
}

static void
nothing_that_hides_stays(void **state)
{
	struct rig_result r;

	(void)state;
	/* Not dumpable: init does not see it in /proc. */
	run_in(&r, 0, "import ctypes, os, time\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n"
	       "if os.fork() == 0:\n    time.sleep(60)\nx = 1");
	rig_assert_status(&r, OUTCOME_OK);
	run_in(&r, 0, "x = 2; os._exit(1)");
	assert_int_equal(r.became, STATE_ROLLED_BACK);
	assert_non_null(strstr(r.notes, "1 process that cells had started was ended"));
	gives(0, "x", "1");
	run_in(&r, 0, "open('/tmp/x', 'wb').write(open('/usr/bin/sleep', 'rb').read())\n"
	       "os.chmod('/tmp/x', 0o111)\nimport subprocess\n"
	       "p = subprocess.Popen(['/tmp/x', '60'])");
	rig_assert_status(&r, OUTCOME_OK);
	run_in(&r, 0, "os._exit(1)");
	assert_non_null(strstr(r.notes, "1 process that cells had started was ended"));
}

/* They come in the order of the directory, which is the kernel's. */
static void
assert_files(const struct rig_result *r, const char *one, const char *other)
{
	char text[2][sizeof(r->files)];

	snprintf(text[0], sizeof(text[0]), "%s\n%s\n", one, other);
	snprintf(text[1], sizeof(text[1]), "%s\n%s\n", other, one);
	if (strcmp(r->files, text[1]) != 0)
		assert_string_equal(r->files, text[0]);
}

static void
files_are_those_of_the_cell(void **state)
{
	static const struct execution_input input = { "in.txt", 6, "given", 5, NULL };
	struct execution_request request;
	struct rig_result r;

	(void)state;
	run_in(&r, 0, "open('a', 'w').write('1')\nopen('b', 'w').write('2')\n"
	       "import os; t = os.stat('b').st_ctime_ns");
	assert_files(&r, "a", "b");
	/* The clock of files has steps. */
	run_in(&r, 0, "import time\nwhile time.clock_gettime_ns(5) <= t: pass");
	request = request_in(0);
	request.input = &input;
	request.n_inputs = 1;
	rig_start(&r, "open('b', 'a').write('x'); open('in.txt').read()", &request);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_OK);
	assert_string_equal(r.value, "'given'");
	assert_files(&r, "b", "in.txt");
	request = request_in(0);
	request.input = &input;
	request.n_inputs = 1;
	rig_start(&r, "open('in.txt').read()", &request);
	rig_turn_until(&r.over);
	assert_string_equal(r.value, "'given'");
	/* Nothing takes back what was written; init tells of it. */
	run_in(&r, 0, "import os; open('c', 'w').write('3'); os._exit(1)");
	assert_int_equal(r.became, STATE_ROLLED_BACK);
	assert_non_null(strstr(r.files, "c\n"));
}

static void
input_is_the_cells_own(void **state)
{
	struct execution_request request = request_in(0);
	struct rig_result r;

	(void)state;
	request.stdin_text = "one\ntwo\n";
	request.stdin_len = 8;
	rig_start(&r, "input()", &request);
	rig_turn_until(&r.over);
	assert_string_equal(r.value, "'one'");
	run_in(&r, 0, "input()");
	assert_string_equal(r.error_type, "EOFError");
	request.cell = ++session.cells;
	rig_start(&r, "quit()", &request);
	rig_turn_until(&r.over);
	request.cell = ++session.cells;
	rig_start(&r, "input()", &request);
	rig_turn_until(&r.over);
	assert_string_equal(r.value, "'one'");
}

static void
a_hostile_cell_harms_itself(void **state)
{
	struct rig_result r;

	(void)state;
	expect("x = 1", OUTCOME_OK, STATE_COMMITTED);
	/* Garbage instead of results, and to init. */
	expect("import os\nfor i in range(9): os.write(63, b'garbage!' * 100)\n"
	       "import time; time.sleep(60)", OUTCOME_WORKER_PROTOCOL_ERROR, STATE_ROLLED_BACK);
	expect("import os, time\nos.write(62, b'garbage!' * 100)\ntime.sleep(0.1)",
	       OUTCOME_KILLED, STATE_ROLLED_BACK);
	gives(0, "x", "1");
	/* Its own state is in the hands of a process that it may kill. */
	run_in(&r, 0, "import os; os.kill(-1, 9)\nx = 2");
	rig_assert_status(&r, OUTCOME_OK);
	assert_int_equal(r.became, STATE_COMMITTED);
	gives(0, "x", "2");
	run_in(&r, 0, "import os; os.kill(-1, 9); os._exit(1)");
	assert_int_equal(r.became, STATE_LOST);
	rig_turn_until(&session.ended);
	assert_string_equal(session.text, "its last state was lost");
	/* No other session is affected. */
	rig_run(&r, "print('hello')");
	rig_assert_status(&r, OUTCOME_OK);
}

/* As if the worker had said so before it took what was sent to it last. */
static void
worker_tells_states(uint32_t snapshots)
{
	struct frame frame = { .msg = { .type = MSG_STATES, .states.snapshots = snapshots } };

	assert_int_equal(repl_user.on_message(session.repl->worker, &frame), 0);
}

static void
what_states_there_are_is_known(void **state)
{
	(void)state;
	assert_true(repl_holds(session.repl, 0));
	expect("x = 1", OUTCOME_OK, STATE_COMMITTED);
	copy_snapshot(0, 1, 0);
	copy_snapshot(0, 2, 0);
	assert_true(repl_holds(session.repl, 1) && repl_holds(session.repl, 2));
	assert_false(repl_holds(session.repl, 3));
	repl_drop(session.repl, 2);
	worker_tells_states(1 | 1 << 1 | 1 << 2 | 1 << 3);
	assert_true(repl_holds(session.repl, 0) && repl_holds(session.repl, 1));
	assert_false(repl_holds(session.repl, 2) || repl_holds(session.repl, 3));
	copy_snapshot(0, 2, 0);
	expect("x = 2; import os; os.kill(-1, 9)", OUTCOME_OK, STATE_COMMITTED);
	while (repl_holds(session.repl, 1) || repl_holds(session.repl, 2))
		event_base_loop(rig.base, EVLOOP_ONCE);
	copy_snapshot(1, 0, -ENOENT);
	gives(0, "x", "2");
	assert_false(session.ended);
}

/* Damage that a cell does to its own process is not an error of the service, and affects no other
 * state. */
static void
broken_states_are_given_up(void **state)
{
	struct rig_result r;

	(void)state;
	expect("x = 1", OUTCOME_OK, STATE_COMMITTED);
	copy_snapshot(0, 1, 0);
	/* Says that it has come to its end, on a line on which it gets no orders. */
	run_in(&r, 0, "import os, socket, struct, time\ns = socket.socket(fileno=62)\n"
	       "s.shutdown(socket.SHUT_RD)\n"
	       "s.send(struct.pack('iii', " COMMITTED ", 0, os.getpid()))\ntime.sleep(600)");
	assert_int_equal(r.became, STATE_COMMITTED);
	run_in(&r, 0, "x");
	rig_assert_status(&r, OUTCOME_CRASHED);
	assert_int_equal(r.became, STATE_LOST);
	assert_int_equal(r.exit_code, -1);
	assert_non_null(strstr(r.message, "the one that held the state is gone"));
	assert_false(repl_holds(session.repl, 0));
	copy_snapshot(1, 0, 0);
	gives(0, "x", "1");
	/* The same, and it does not listen: it may still do so, when its threads let it. */
	run_in(&r, 0, "import os, struct, time\n"
	       "os.write(62, struct.pack('iii', " COMMITTED ", 0, os.getpid()))\ntime.sleep(600)");
	assert_int_equal(r.became, STATE_COMMITTED);
	copy_snapshot(0, 2, -EAGAIN);
	assert_true(repl_holds(session.repl, 0));
	copy_snapshot(1, 0, 0);
	gives(0, "x", "1");
	/* May make no process. */
	expect("import resource\nresource.setrlimit(resource.RLIMIT_NPROC, (1, 1))",
	       OUTCOME_OK, STATE_COMMITTED);
	copy_snapshot(0, 2, -EAGAIN);
	run_in(&r, 0, "x");
	rig_assert_status(&r, OUTCOME_CRASHED);
	assert_int_equal(r.became, STATE_ROLLED_BACK);
	assert_non_null(strstr(r.message, "temporarily unavailable"));
	copy_snapshot(1, 0, 0);
	gives(0, "x", "1");
}

static bool
goes_on_after(const char *code)
{
	struct execution_request request = request_in(0);
	struct rig_result r;

	request.background = BACKGROUND_RUN;
	request.background_ms = 60000;
	rig_start(&r, code, &request);
	rig_turn_until(&r.over);
	rig_assert_status(&r, OUTCOME_OK);
	return session.repl->background.runs;
}

static void
what_was_killed_does_not_go_on(void **state)
{
	(void)state;
	assert_false(goes_on_after("import subprocess"));
	assert_true(goes_on_after("p = subprocess.Popen(['sleep', '1000'])"));
	assert_false(goes_on_after("p.kill()"));
	assert_false(goes_on_after("p = subprocess.Popen(['sleep', '1000']); p.kill()"));
}

static void
an_ended_session_takes_nothing(void **state)
{
	struct execution_request request = request_in(0);
	struct execution_watcher watcher = { 0 };
	struct execution *e;
	struct why why;

	(void)state;
	expect("1", OUTCOME_OK, STATE_COMMITTED);
	repl_drop(session.repl, 0);
	rig_turn_until(&session.ended);
	request.script = "1";
	request.script_len = 1;
	assert_int_equal(execution_start(rig.engine, rig.tenant, &request, &watcher, &e, &why),
			 -ESRCH);
	copy_snapshot(0, 1, -ESRCH);
}

static void
closing_answers_its_cells(void **state)
{
	struct execution_request request = request_in(0);
	struct rig_result r[2];

	(void)state;
	rig_start(&r[0], "print('go', flush=True)\nwhile True: pass", &request);
	request = request_in(0);
	rig_start(&r[1], "1", &request);
	rig_turn_until_seen(&r[0]);
	repl_close(session.repl);
	session.repl = NULL;
	for (size_t i = 0; i < 2; i++) {
		rig_turn_until(&r[i].over);
		rig_assert_status(&r[i], OUTCOME_CANCELLED);
	}
}

static void
sessions_are_bounded(void **state)
{
	struct repl_options options = {
		.limits = rig.config->limits.standard, .sessions_max = SESSIONS_MAX,
	};
	struct repl_watcher watcher = { 0 };
	struct repl *repl[SESSIONS_MAX], *refused;
	struct why why;

	(void)state;
	for (uint32_t i = 1; i < SESSIONS_MAX; i++)
		assert_int_equal(repl_open(rig.engine, rig.tenant, &options, &watcher, &repl[i],
					   &why), 0);
	assert_int_equal(repl_open(rig.engine, rig.tenant, &options, &watcher, &refused, &why),
			 -EDQUOT);
	for (uint32_t i = 1; i < SESSIONS_MAX; i++)
		repl_close(repl[i]);
}

static void
an_idle_session_is_frozen(void **state)
{
	struct repl_usage usage;
	bool never = false;

	(void)state;
	expect("x = 1", OUTCOME_OK, STATE_COMMITTED);
	if (rig.cgroups == NULL)
		skip();
	for (uint64_t end = rig_now_us() + RIG_PATIENCE_MS * 1000; !never;) {
		event_base_loop(rig.base, EVLOOP_ONCE);
		repl_usage(session.repl, &usage);
		if (usage.frozen)
			break;
		assert_true(rig_now_us() < end);
	}
	assert_true(usage.idle_ms >= 1000);
	assert_true(usage.memory_bytes > 0);
	gives(0, "x", "1");
}

/* Init may not answer twice: the first answer's look at memory would end what is no copy. */
static void
a_copy_is_answered_once(void **state)
{
	struct frame frame = { .msg = { .type = MSG_COPIED, .copied.to = 1 } };

	(void)state;
	gives(0, "1", "1");
	session.copied = false;
	repl_copy(session.repl, 0, 1, on_copied, &session);
	assert_int_equal(session.repl->phase, REPL_COPY);
	event_del(&session.repl->timer);	/* as after the first answer */
	assert_int_equal(repl_user.on_message(session.repl->worker, &frame), -EBADMSG);
	assert_int_equal(session.repl->phase, REPL_COPY);
	assert_false(session.copied);
}

/* Cells of a session and of its branches wait in one queue of the tenant. One that cannot start
 * ends them all. */
static void
a_cell_that_cannot_start_takes_others_with_it(void **state)
{
	struct sched_queue *queue = &rig.tenant->queue;
	unsigned int most = queue->running_max;
	struct execution_request request;
	struct rig_result r[3];

	(void)state;
	gives(0, "1", "1");
	queue->running_max = 0;
	for (size_t i = 0; i < 3; i++) {
		request = request_in(0);
		rig_start(&r[i], "1", &request);
	}
	assert_int_equal(queue->waiting[SCHED_CELLS], 3);
	queue->running_max = most;
	assert_int_equal(shutdown(session.repl->worker->control, SHUT_RDWR), 0);
	dispatch_cells(rig.tenant);
	assert_int_equal(queue->waiting[SCHED_CELLS], 0);
	for (size_t i = 0; i < 3; i++) {
		rig_turn_until(&r[i].over);
		assert_int_not_equal(r[i].status, OUTCOME_OK);
	}
	rig_turn_until(&session.ended);
}

/* The kernel has no memory for what a cell that has ended has sent last: so often, once its end is
 * known. */
static unsigned int to_refuse;
static bool end_is_known;

ssize_t
recvmsg(int fd, struct msghdr *message, int flags)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };
	const unsigned char *header = message->msg_iov->iov_base;
	ssize_t n;

	if (to_refuse > 0 && poll(&p, 1, 0) == 1 && p.revents & POLLRDHUP) {
		to_refuse -= end_is_known;
		errno = ENOMEM;
		return -1;
	}
	n = syscall(SYS_recvmsg, fd, message, flags);
	end_is_known |= n == FRAME_HEADER && header[1] == MSG_CELL_ENDED;
	return n;
}

static void
last_messages_wait_for_memory(void **)
{
	end_is_known = false;
	to_refuse = 20;
	gives(0, "6 * 7", "42");
	assert_int_equal(to_refuse, 0);
}

static int
run_group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_session, close_session)
	const struct CMUnitTest tests[] = {
		TEST(names_stay),
		TEST(tracebacks_name_their_cell),
		TEST(await_works_at_the_top),
		TEST(a_cell_that_ends_itself_keeps_what_it_did),
		TEST(a_cell_that_is_ended_leaves_nothing),
		TEST(time_limits_hold),
		TEST(cancel_interrupts_first),
		TEST(cancel_kills_what_does_not_listen),
		TEST(checkpoints_count_as_memory),
		TEST(memory_is_raised_for_all_states),
		TEST(a_full_session_can_be_emptied),
		TEST(what_a_fork_keeps_is_as_before),
		TEST(snapshots_are_copied),
		TEST(a_copy_is_answered_once),
		TEST(a_look_changes_nothing),
		TEST(cells_wait_for_each_other),
		TEST(a_cell_that_cannot_start_takes_others_with_it),
		TEST(what_is_lost_is_told),
		TEST(nothing_that_hides_stays),
		TEST(files_are_those_of_the_cell),
		TEST(input_is_the_cells_own),
		TEST(a_hostile_cell_harms_itself),
		TEST(what_states_there_are_is_known),
		TEST(broken_states_are_given_up),
		TEST(what_was_killed_does_not_go_on),
		TEST(an_ended_session_takes_nothing),
		TEST(closing_answers_its_cells),
		TEST(sessions_are_bounded),
		TEST(an_idle_session_is_frozen),
		TEST(a_large_state_survives),
		TEST(last_messages_wait_for_memory),
	};

	return cmocka_run_group_tests(tests, rig_set_up, rig_tear_down);
}

int
main(void)
{
	return rig_main(run_group, LOG_WARNING, false);
}
