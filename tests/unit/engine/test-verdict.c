/* SPDX-License-Identifier: Apache-2.0 */
/* The precedence of what is known about an end, and the sentence that comes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "engine/verdict.h"
#include "policy/limits.h"

#define SIGNALLED(signal) (signal)
#define EXITED(code) ((code) << 8)

static const struct limits limits = {
	.wall_ms = 30000, .cpu_ms = 10000, .memory_bytes = 512ull << 20, .pids = 64,
	.output_bytes = 1 << 20, .output_total = 64 << 20,
};

struct a_case {
	const char *name;
	struct outcome_facts facts;
	enum outcome_status status;
	int exit_code, signal;
	const char *says;
};

#define F(...) { .limits = &limits, __VA_ARGS__ }
#define DONE(code) .has_done = true, .done_code = (code)
#define RAISED(type, text) .has_done = true, .done_code = 1, .raised = true, \
	.error_type = type, .error_message = text
#define ENDED(status) .has_exit = true, .wait_status = (status)

static const struct a_case cases[] = {
	{ "done", F(DONE(0)), OUTCOME_OK, 0, 0, "finished" },
	{ "exit code", F(DONE(3)), OUTCOME_ERROR, 3, 0, "exit code 3" },
	{ "raised", F(RAISED("KeyError", "'x'")), OUTCOME_ERROR, 1, 0, "KeyError" },
	{ "raised, but says 0", F(.has_done = true, .raised = true), OUTCOME_ERROR, 0, 0, "raised" },
	{ "_exit(0)", F(ENDED(EXITED(0))), OUTCOME_OK, 0, 0, NULL },
	{ "_exit(9)", F(ENDED(EXITED(9))), OUTCOME_ERROR, 9, 0, NULL },
	{ "killed", F(ENDED(SIGNALLED(SIGKILL))), OUTCOME_KILLED, 137, 9, "SIGKILL" },
	{ "terminated", F(ENDED(SIGNALLED(SIGTERM))), OUTCOME_KILLED, 143, 15, "SIGTERM" },
	{ "real-time signal", F(ENDED(SIGNALLED(40))), OUTCOME_KILLED, 168, 40, "signal 40" },
	{ "segfault with core", F(ENDED(0x80 | SIGSEGV)), OUTCOME_CRASHED, 139, 11, "SIGSEGV" },
	{ "seccomp", F(ENDED(SIGNALLED(SIGSYS))), OUTCOME_CRASHED, 159, 31, "SIGSYS" },
	{ "vanished", F(.cpu_ms = 1), OUTCOME_KILLED, 137, 9, NULL },

	{ "oom", F(.oom_kills = 1, .peak_memory_bytes = 512ull << 20), OUTCOME_MEMORY_LIMIT, 137, 9,
	  "memory limit of 512 MiB reached; peak 512 MiB" },
	{ "oom of many", F(.oom_kills = 1, .peak_memory_bytes = 512ull << 20, .peak_pids = 17), OUTCOME_MEMORY_LIMIT,
	  137, 9, "peak 512 MiB with 17 processes and threads; files in" },
	{ "one request", F(.oom_kills = 1, .peak_memory_bytes = 12ull << 10), OUTCOME_MEMORY_LIMIT, 137, 9,
	  "memory limit of 512 MiB reached: one request was larger than what was left" },
	{ "oom beside a small state", F(.oom_kills = 1, .peak_memory_bytes = 512ull << 20,
	    .state_bytes = 20 << 20), OUTCOME_MEMORY_LIMIT, 137, 9,
	  "memory limit of 512 MiB reached; peak 512 MiB; before this cell the session held 20 MiB of it" },
	{ "oom beside a large state", F(.oom_kills = 1, .state_bytes = 250 << 20), OUTCOME_MEMORY_LIMIT, 137, 9,
	  "the session held 250 MiB of it, which stays beside" },
	{ "oom before DONE's story", F(.oom_kills = 1, DONE(0)), OUTCOME_MEMORY_LIMIT, 0, 0, NULL },
	{ "oom before cancel", F(.oom_kills = 1, .stop = STOP_CANCEL), OUTCOME_MEMORY_LIMIT, 137, 9, NULL },
	{ "watchdog memory", F(.stop = STOP_MEMORY, .watchdog_memory = true), OUTCOME_MEMORY_LIMIT, 137, 9, NULL },
	{ "MemoryError under the watchdog", F(RAISED("MemoryError", ""), .watchdog_memory = true),
	  OUTCOME_MEMORY_LIMIT, 1, 0, NULL },
	{ "ENOMEM under the watchdog", F(RAISED("OSError", "[Errno 12] Cannot allocate memory"),
	    .watchdog_memory = true), OUTCOME_MEMORY_LIMIT, 1, 0, NULL },
	{ "numpy's MemoryError", F(RAISED("numpy.core._exceptions._ArrayMemoryError", "Unable"), .watchdog_memory = true),
	  OUTCOME_MEMORY_LIMIT, 1, 0, NULL },
	{ "a class of a similar name", F(RAISED("m.ArrayMemoryError", ""), .watchdog_memory = true), OUTCOME_ERROR, 1, 0, NULL },
	{ "MemoryError with a controller", F(RAISED("MemoryError", "")), OUTCOME_ERROR, 1, 0, NULL },

	{ "timeout", F(.stop = STOP_WALL), OUTCOME_TIMEOUT, 137, 9, "timeout of 30 s" },
	{ "timeout before DONE", F(.stop = STOP_WALL, DONE(0)), OUTCOME_TIMEOUT, 137, 9, NULL },
	{ "timeout, it gave way", F(.stop = STOP_WALL, .interrupted = true, .gave_way = true,
	    RAISED("KeyboardInterrupt", "")), OUTCOME_TIMEOUT, 1, 0, "; interrupted" },
	{ "timeout, it did not listen", F(.stop = STOP_WALL, .interrupted = true), OUTCOME_TIMEOUT, 137, 9,
	  "; killed, because it did not end when it was interrupted" },
	{ "cpu", F(.stop = STOP_CPU, .cpu_ms = 10050), OUTCOME_CPU_LIMIT, 137, 9, "10 s reached; used 10.05 s" },
	{ "quota", F(.stop = STOP_QUOTA, .cpu_ms = 1500), OUTCOME_CPU_LIMIT, 137, 9,
	  "quota cpu_seconds_per_hour: the processor time of this hour is used up; this execution used 1.50 s" },
	{ "SIGXCPU", F(ENDED(SIGNALLED(SIGXCPU)), .cpu_ms = 10000), OUTCOME_CPU_LIMIT, 152, 24, NULL },
	{ "SIGXCPU by itself", F(ENDED(SIGNALLED(SIGXCPU)), .cpu_ms = 20), OUTCOME_KILLED, 152, 24, NULL },
	{ "output", F(.stop = STOP_OUTPUT), OUTCOME_OUTPUT_LIMIT, 137, 9, "64 MiB" },
	{ "cancel", F(.stop = STOP_CANCEL, .cancel = CANCEL_DISCONNECTED), OUTCOME_CANCELLED, 137, 9, "went away" },
	{ "shutdown", F(.stop = STOP_CANCEL, .cancel = CANCEL_SHUTDOWN), OUTCOME_CANCELLED, 137, 9, "shutting down" },
	{ "cancelled while it waited", F(.stop = STOP_CANCEL, .never_ran = true), OUTCOME_CANCELLED, -1, 0, NULL },

	{ "pids, raised", F(RAISED("BlockingIOError", "[Errno 11] x"), .pids_hits = 3), OUTCOME_PIDS_LIMIT, 1, 0, "64" },
	{ "pids, timeout", F(.stop = STOP_WALL, .pids_hits = 3), OUTCOME_PIDS_LIMIT, 137, 9, "timeout" },
	{ "pids, but ended well", F(DONE(0), .pids_hits = 3), OUTCOME_OK, 0, 0, NULL },
	{ "pids, cancelled", F(.stop = STOP_CANCEL, .pids_hits = 3), OUTCOME_CANCELLED, 137, 9, NULL },
	{ "pids, seen by the watchdog", F(DONE(1), .watchdog_pids = true, .peak_pids = 64),
	  OUTCOME_PIDS_LIMIT, 1, 0, "peak 64" },
	{ "pids, below", F(DONE(1), .watchdog_pids = true, .peak_pids = 63), OUTCOME_ERROR, 1, 0, NULL },
	{ "pids, thread refused", F(RAISED("RuntimeError", "can't start new thread"), .watchdog_pids = true),
	  OUTCOME_PIDS_LIMIT, 1, 0, NULL },
	{ "pids, fork refused", F(RAISED("BlockingIOError", "[Errno 11] x"), .error_traceback = "os.fork()",
	  .watchdog_pids = true), OUTCOME_PIDS_LIMIT, 1, 0, NULL },
	{ "no pids, a socket would block", F(RAISED("BlockingIOError", "[Errno 11] x"), .error_traceback = "recv",
	  .watchdog_pids = true), OUTCOME_ERROR, 1, 0, NULL },

	{ "disk, with a volume", F(RAISED("OSError", "[Errno 28] x"), .volume_bytes = 1 << 20, .volume_files = 9),
	  OUTCOME_DISK_LIMIT, 1, 0, "volume: 1 MiB or 9 files, or the number of volumes; or the host's disk" },
	{ "disk", F(RAISED("OSError", "[Errno 28] No space left on device"),
	  .disk_bytes = 256 << 20, .disk_inodes = 65536), OUTCOME_DISK_LIMIT, 1, 0, "256 MiB or 65536 files" },
	{ "quota", F(RAISED("OSError", "[Errno 122] Disk quota exceeded")), OUTCOME_DISK_LIMIT, 1, 0, NULL },
	{ "SQLite's disk", F(RAISED("sqlite3.OperationalError", "database or disk is full"),
	  .disk_bytes = 256 << 20), OUTCOME_DISK_LIMIT, 1, 0, "256 MiB" },
	{ "a library's disk", F(RAISED("h5py.Error", "write failed: No space left on device")), OUTCOME_DISK_LIMIT, 1, 0,
	  "remove files, or have the operator raise it" },
	{ "another OSError", F(RAISED("OSError", "[Errno 2] No space")), OUTCOME_ERROR, 1, 0, NULL },
	{ "error 280", F(RAISED("OSError", "[Errno 280]")), OUTCOME_ERROR, 1, 0, NULL },
	{ "SIGXFSZ", F(ENDED(SIGNALLED(SIGXFSZ))), OUTCOME_DISK_LIMIT, 153, 25, NULL },

	{ "protocol", F(.stop = STOP_PROTOCOL), OUTCOME_WORKER_PROTOCOL_ERROR, 137, 9, NULL },
	{ "its state is gone", F(.never_ran = true, .by_state = true, .jail_text = "it is gone"), OUTCOME_CRASHED, -1, 0, "could not run it: it is gone" },
	{ "jail", F(.never_ran = true, .jail_text = "landlock: EPERM"), OUTCOME_JAIL_FAILED, -1, 0, "landlock" },
	{ "overloaded", F(.overloaded = true), OUTCOME_OVERLOADED, -1, 0, NULL },
};

static void
every_end_has_its_status(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct a_case *c = &cases[i];
		struct outcome_verdict v;

		outcome_decide(&c->facts, &v);
		if (v.status != c->status || v.exit_code != c->exit_code ||
		    v.signal != c->signal ||
		    (c->says != NULL && strstr(v.message, c->says) == NULL))
			print_error("case %s: %s %d %d: %s\n", c->name,
				    outcome_status_name(v.status), v.exit_code,
				    v.signal, v.message);
		assert_int_equal(v.status, c->status);
		assert_int_equal(v.exit_code, c->exit_code);
		assert_int_equal(v.signal, c->signal);
		assert_true(strlen(v.message) > 0);
		if (c->says != NULL)
			assert_non_null(strstr(v.message, c->says));
	}
}

/* The sample came before the last processes: a lower number would contradict the message. */
static void
a_peak_below_the_limit_is_not_shown(void **state)
{
	const struct outcome_facts facts = F(RAISED("RuntimeError", "can't start new thread"),
					     .watchdog_pids = true, .peak_pids = 53);
	struct outcome_verdict v;

	(void)state;
	outcome_decide(&facts, &v);
	assert_string_equal(v.message, "limit of 64 processes and threads reached");
}

/* No combination of facts is without an answer, and none of a worker's words makes one
 * better that the kernel or the supervisor called bad. */
static void
nothing_is_undecided_or_talked_better(void **state)
{
	(void)state;
	for (unsigned int bits = 0; bits < 1u << 10; bits++)
		for (int stop = STOP_NONE; stop <= STOP_PROTOCOL; stop++) {
			struct outcome_facts f = {
				.limits = &limits,
				.stop = (enum stop_reason)stop,
				.oom_kills = bits & 1,
				.pids_hits = bits >> 1 & 1,
				.has_done = bits >> 2 & 1,
				.raised = bits >> 3 & 1,
				.has_exit = bits >> 4 & 1,
				.wait_status = bits >> 5 & 1 ? 9 : 0,
				.watchdog_memory = bits >> 6 & 1,
				.watchdog_pids = bits >> 7 & 1,
				.never_ran = bits >> 8 & 1,
				.done_code = bits >> 9 & 1,
			};
			struct outcome_verdict v;

			outcome_decide(&f, &v);
			assert_true(v.status < OUTCOME_STATUS_COUNT);
			if (f.oom_kills || stop != STOP_NONE || f.never_ran)
				assert_int_not_equal(v.status, OUTCOME_OK);
			if (f.oom_kills)
				assert_int_equal(v.status, OUTCOME_MEMORY_LIMIT);
		}
}

static void
every_status_has_a_name(void **state)
{
	(void)state;
	for (int i = 0; i < OUTCOME_STATUS_COUNT; i++)
		for (int j = 0; j < i; j++)
			assert_string_not_equal(
				outcome_status_name((enum outcome_status)i),
				outcome_status_name((enum outcome_status)j));
	assert_string_equal(outcome_status_name(OUTCOME_PIDS_LIMIT), "pids_limit");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_end_has_its_status),
		cmocka_unit_test(a_peak_below_the_limit_is_not_shown),
		cmocka_unit_test(nothing_is_undecided_or_talked_better),
		cmocka_unit_test(every_status_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
