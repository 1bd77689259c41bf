/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * The kernel's facts take precedence over the supervisor's actions, and both over the worker's
 * report: DONE can make an outcome worse, never better. */
#include "engine/verdict.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "policy/limits.h"

static const char *
signal_name(int signal, char *buffer, size_t size)
{
	const char *abbreviation = sigabbrev_np(signal);

	if (abbreviation == NULL)
		snprintf(buffer, size, "signal %d", signal);
	else
		snprintf(buffer, size, "SIG%s", abbreviation);
	return buffer;
}

/* ---- the conditions of the table ---- */

static bool
verdict_raised(const struct outcome_facts *f, const char *type)
{
	return f->has_done && f->raised && f->error_type != NULL &&
	       strcmp(f->error_type, type) == 0;
}

/* numpy raises a subclass of MemoryError, in a module whose name depends on numpy's version. */
static bool
raised_for_memory(const struct outcome_facts *f)
{
	static const char array[] = "._ArrayMemoryError";
	size_t len = f->error_type != NULL ? strlen(f->error_type) : 0;

	return verdict_raised(f, "MemoryError") ||
	       (len >= strlen(array) && verdict_raised(f, f->error_type) &&
		strcmp(f->error_type + len - strlen(array), array) == 0);
}

/* Python writes "[Errno 28] No space left on device: ..." */
static bool
message_has_errno(const struct outcome_facts *f, int number)
{
	char start[24];

	snprintf(start, sizeof(start), "[Errno %d]", number);
	return f->error_message != NULL &&
	       strncmp(f->error_message, start, strlen(start)) == 0;
}

static int
signal_of(const struct outcome_facts *f)
{
	return !f->has_done && f->has_exit && WIFSIGNALED(f->wait_status)
	       ? WTERMSIG(f->wait_status) : 0;
}

static bool
ended_well(const struct outcome_facts *f)
{
	if (f->stop != STOP_NONE)
		return false;
	if (f->has_done)
		return !f->raised && f->done_code == 0;
	return f->has_exit && WIFEXITED(f->wait_status) &&
	       WEXITSTATUS(f->wait_status) == 0;
}

#define PROCESSES_TOLD 4		/* so many are a cause of a memory limit */

#define HOLDS(name, condition) \
	static bool name(const struct outcome_facts *f) { return (condition); }
HOLDS(was_overloaded, f->overloaded)
HOLDS(was_unrecorded, f->unrecorded)
HOLDS(was_oom_killed, f->oom_kills > 0)
HOLDS(stopped_for_memory, f->stop == STOP_MEMORY || f->stop == STOP_SOCKETS)
HOLDS(was_cancelled, f->stop == STOP_CANCEL)
HOLDS(never_ran, f->never_ran)
HOLDS(had_no_state, f->never_ran && f->by_state)
HOLDS(stopped_for_output, f->stop == STOP_OUTPUT)
HOLDS(stopped_for_pids, f->stop == STOP_PIDS || f->stop == STOP_TASKS)
HOLDS(broke_protocol, f->stop == STOP_PROTOCOL)
HOLDS(stopped_for_wall, f->stop == STOP_WALL)
HOLDS(stopped_for_cpu, f->stop == STOP_CPU || f->stop == STOP_QUOTA)
HOLDS(ended_badly, !ended_well(f))

/* Did a script without a pids controller end because a fork was refused? Such forks are not
 * counted, and the script may have ended before the watchdog looked; but its exception names the
 * error. */
static bool
says_fork_was_refused(const struct outcome_facts *f)
{
	if (verdict_raised(f, "RuntimeError"))
		return f->error_message != NULL &&
		       strcmp(f->error_message, "can't start new thread") == 0;
	return verdict_raised(f, "BlockingIOError") && message_has_errno(f, EAGAIN) &&
	       f->error_traceback != NULL && strstr(f->error_traceback, "fork") != NULL;
}

static bool
hit_pids(const struct outcome_facts *f)
{
	if (ended_well(f))
		return false;
	if (!f->watchdog_pids)
		return f->pids_hits > 0;
	return f->peak_pids >= f->limits->pids || says_fork_was_refused(f);
}

/* Did a script without a memory controller end because of RLIMIT_DATA, which limits its memory? The
 * script's report shows this. */
static bool
ran_out_of_data(const struct outcome_facts *f)
{
	return f->watchdog_memory &&
	       (raised_for_memory(f) ||
		(verdict_raised(f, "OSError") && message_has_errno(f, ENOMEM)));
}

/* Was the script ended by the signal of RLIMIT_CPU, the second safeguard? A process that has sent
 * itself this signal has not used up its time. */
static bool
cpu_signal(const struct outcome_facts *f)
{
	int signal = signal_of(f);

	return (signal == SIGXCPU || signal == SIGKILL) &&
	       f->cpu_ms >= f->limits->cpu_ms - f->limits->cpu_ms / 10;
}

static bool
disk_full(const struct outcome_facts *f)
{
	return signal_of(f) == SIGXFSZ ||
	       (verdict_raised(f, "OSError") &&
		(message_has_errno(f, ENOSPC) || message_has_errno(f, EDQUOT))) ||
	       (f->has_done && f->raised && f->error_message != NULL &&
		(strstr(f->error_message, strerror(ENOSPC)) != NULL ||
		 strcmp(f->error_message, "database or disk is full") == 0));
}

static bool
crash_signal(const struct outcome_facts *f)
{
	switch (signal_of(f)) {
	case SIGSEGV: case SIGABRT: case SIGBUS: case SIGFPE: case SIGILL: case SIGSYS:
	case SIGTRAP:
		return true;
	}
	return false;
}

static bool
any_signal(const struct outcome_facts *f)
{
	return signal_of(f) != 0 || (!f->has_done && !f->has_exit);
}

/* In order of precedence: the first row that holds gives the status. */
static const struct rule {
	enum outcome_status status;
	bool (*holds)(const struct outcome_facts *f);
} rules[] = {
	/* it never ran */
	{ OUTCOME_OVERLOADED,            was_overloaded },
	{ OUTCOME_AUDIT_UNAVAILABLE,     was_unrecorded },
	/* the kernel's facts */
	{ OUTCOME_MEMORY_LIMIT,          was_oom_killed },
	/* the supervisor's actions */
	{ OUTCOME_MEMORY_LIMIT,          stopped_for_memory },
	{ OUTCOME_CANCELLED,             was_cancelled },
	{ OUTCOME_CRASHED,               had_no_state },
	{ OUTCOME_JAIL_FAILED,           never_ran },
	{ OUTCOME_OUTPUT_LIMIT,          stopped_for_output },
	{ OUTCOME_WORKER_PROTOCOL_ERROR, broke_protocol },
	{ OUTCOME_PIDS_LIMIT,            stopped_for_pids },
	/* refused forks explain a failure better than their consequences */
	{ OUTCOME_PIDS_LIMIT,            hit_pids },
	{ OUTCOME_TIMEOUT,               stopped_for_wall },
	{ OUTCOME_CPU_LIMIT,             stopped_for_cpu },
	/* the end of the script's process */
	{ OUTCOME_CPU_LIMIT,             cpu_signal },
	{ OUTCOME_DISK_LIMIT,            disk_full },
	{ OUTCOME_CRASHED,               crash_signal },
	{ OUTCOME_KILLED,                any_signal },
	/* the script's own report */
	{ OUTCOME_MEMORY_LIMIT,          ran_out_of_data },
	{ OUTCOME_ERROR,                 ended_badly },
	{ OUTCOME_OK,                    ended_well },
};

/* ---- the sentence ---- */

static void
size_text(uint64_t bytes, char *text, size_t size)
{
	static const char *const units[] = { "KiB", "MiB", "GiB" };
	double value = (double)bytes / 1024;
	size_t unit = 0;

	while (value >= 1024 && unit < 2) {
		value /= 1024;
		unit++;
	}
	if (unit == 2 && value < 10)
		value *= 1024, unit = 1;
	snprintf(text, size, "%.0f %s", value, units[unit]);
}

static void
time_text(uint64_t ms, char *text, size_t size)
{
	if (ms % 1000 == 0)
		snprintf(text, size, "%" PRIu64 " s", ms / 1000);
	else
		snprintf(text, size, "%.2f s", (double)ms / 1000);
}

/* Adds a sentence about the memory of the session's state. A cell runs in a copy of the state; both
 * share the memory that neither changes. */
static void
state_message(const struct outcome_facts *f, char *m, size_t size)
{
	char state[32];
	int n;

	size_text(f->state_bytes, state, sizeof(state));
	n = snprintf(m, size, "; before this cell the session held %s of it", state);
	if (f->state_bytes >= f->limits->memory_bytes / 4)
		snprintf(m + n, size - (size_t)n, ", which stays beside what a cell changes or "
			 "adds: drop objects, files or checkpoints, change less at once, or send "
			 "the next cell with a larger memory_mb");
}

static void
memory_message(const struct outcome_facts *f, char *m, size_t size)
{
	char limit[32], peak[32];
	int n;

	if (f->stop == STOP_SOCKETS) {
		snprintf(m, size, "too many sockets, which take memory of the machine's kernel "
			 "(connections that nobody has accepted, and closed ones with unread data, "
			 "count too)");
		return;
	}
	size_text(f->limits->memory_bytes, limit, sizeof(limit));
	n = snprintf(m, size, "memory limit of %s reached", limit);
	if (f->peak_memory_bytes >= f->limits->memory_bytes / 2) {
		size_text(f->peak_memory_bytes, peak, sizeof(peak));
		n += snprintf(m + n, size - (size_t)n, "; peak %s", peak);
		if (f->peak_pids >= PROCESSES_TOLD)
			n += snprintf(m + n, size - (size_t)n, " with %" PRIu32 " processes and threads",
				      f->peak_pids);
	} else if (f->peak_memory_bytes > 0) {	/* a figure that would mislead */
		n += snprintf(m + n, size - (size_t)n,
			      ": one request was larger than what was left");
	}
	if (f->state_bytes > 0)
		state_message(f, m + n, size - (size_t)n);
	else
		snprintf(m + n, size - (size_t)n, "; files in /workspace and /tmp count: use less "
			 "at once, or ask for a larger memory_mb");
}

/* Adds a sentence about the limits of the volume, for bytes and for files: the kernel has one error
 * for both. */
static void
volume_message(const struct outcome_facts *f, char *m, size_t size)
{
	const size_t len = strlen(m);
	char text[32];

	size_text(f->volume_bytes, text, sizeof(text));
	snprintf(m + len, size - len, "; or that of its volume: %s or %" PRIu64 " files, or the "
		 "number of volumes; or the host's disk with the volumes has little room left: tell "
		 "the operator", text, f->volume_files);
}

static void
pids_message(const struct outcome_facts *f, char *m, size_t size)
{
	int n;

	if (f->stop == STOP_TASKS) {
		snprintf(m, size, "your running scripts have more than half of the processes and "
			 "threads that this machine can have");
		return;
	}
	n = snprintf(m, size, "limit of %" PRIu32 " processes and threads reached",
		     f->limits->pids);

	/* A lower peak is a sample that came too late. */
	if (f->peak_pids >= f->limits->pids)
		snprintf(m + n, size - (size_t)n, "; peak %" PRIu32, f->peak_pids);
	else if (f->stop == STOP_WALL)
		snprintf(m + n, size - (size_t)n, ", then the timeout");
}

static const char *
how_it_ended(const struct outcome_facts *f)
{
	return f->gave_way ? "; interrupted" : f->interrupted
	       ? "; killed, because it did not end when it was interrupted" : "";
}

static void
time_message(const struct outcome_facts *f, bool cpu, char *m, size_t size)
{
	char limit[32], used[32], late[32], waited[64] = "";

	time_text(f->late_ms, late, sizeof(late));
	if (f->late_ms > 0 && !cpu)
		snprintf(waited, sizeof(waited), ", %s of it before it ran", late);
	time_text(cpu ? f->limits->cpu_ms : f->limits->wall_ms, limit, sizeof(limit));
	time_text(f->cpu_ms, used, sizeof(used));
	if (f->stop == STOP_QUOTA)
		snprintf(m, size, "quota cpu_seconds_per_hour: the processor time of this hour is "
			 "used up; this execution used %s%s", used, how_it_ended(f));
	else
		snprintf(m, size, cpu ? "processor time limit of %s reached%s; used %s%s"
			 : "timeout of %s reached%s; processor time used %s%s",
			 limit, waited, used, how_it_ended(f));
}

static void
cancel_message(const struct outcome_facts *f, char *m, size_t size)
{
	switch (f->cancel) {
	case CANCEL_BY_CLIENT:
		snprintf(m, size, "the client cancelled it");
		break;
	case CANCEL_BY_OPERATOR:
		snprintf(m, size, "an operator of the service stopped it");
		break;
	case CANCEL_DISCONNECTED:
		snprintf(m, size, "the client went away");
		break;
	case CANCEL_SHUTDOWN:
		snprintf(m, size, "the service is shutting down");
		break;
	case CANCEL_SESSION_ENDED:
		snprintf(m, size, "its session has ended");
		break;
	}
}

static void
write_message(const struct outcome_facts *f, const struct outcome_verdict *v, char *m,
	      size_t size)
{
	char text[64];

	switch (v->status) {
	case OUTCOME_OK:
		snprintf(m, size, "finished");
		break;
	case OUTCOME_ERROR:
		if (f->has_done && f->raised)
			snprintf(m, size, "raised %.200s",
				 f->error_type ? f->error_type : "an exception");
		else
			snprintf(m, size, "ended with exit code %d", v->exit_code);
		break;
	case OUTCOME_TIMEOUT:
	case OUTCOME_CPU_LIMIT:
		time_message(f, v->status == OUTCOME_CPU_LIMIT, m, size);
		break;
	case OUTCOME_MEMORY_LIMIT:
		memory_message(f, m, size);
		break;
	case OUTCOME_PIDS_LIMIT:
		pids_message(f, m, size);
		break;
	case OUTCOME_OUTPUT_LIMIT:
		size_text(f->limits->output_total, text, sizeof(text));
		snprintf(m, size, "output limit of %s reached", text);
		break;
	case OUTCOME_DISK_LIMIT:
		size_text(f->disk_bytes, text, sizeof(text));
		snprintf(m, size, "disk limit of %s or %" PRIu64 " files reached, of /workspace, "
			 "/tmp and HOME together; remove files, or have the operator raise it "
			 "([profile] disk_bytes, disk_inodes)", text, f->disk_inodes);
		if (f->volume_bytes > 0)
			volume_message(f, m, size);
		break;
	case OUTCOME_KILLED:
		snprintf(m, size, "killed by %s",
			 signal_name(v->signal, text, sizeof(text)));
		break;
	case OUTCOME_CRASHED:
		if (had_no_state(f))
			snprintf(m, size, "the session could not run it: %.400s",
				 f->jail_text ? f->jail_text : "its process is gone");
		else
			snprintf(m, size, "crashed with %s",
				 signal_name(v->signal, text, sizeof(text)));
		break;
	case OUTCOME_CANCELLED:
		cancel_message(f, m, size);
		break;
	case OUTCOME_OVERLOADED:
		snprintf(m, size, "%.400s; try again later",
			 f->jail_text ? f->jail_text : "too many calls are waiting");
		break;
	case OUTCOME_JAIL_FAILED:
		snprintf(m, size,
			 "the jail could not be set up, nothing was run: %.400s",
			 f->jail_text ? f->jail_text : "unknown step");
		break;
	case OUTCOME_AUDIT_UNAVAILABLE:
		snprintf(m, size, "the audit log cannot be written, and nothing may run without "
			 "it: tell the operator");
		break;
	case OUTCOME_WORKER_PROTOCOL_ERROR:
		snprintf(m, size, "the worker broke its protocol and was killed");
		break;
	case OUTCOME_STATUS_COUNT:
		break;
	}
}

void
outcome_decide(const struct outcome_facts *f, struct outcome_verdict *verdict_r)
{
	struct outcome_verdict v = { .status = OUTCOME_STATUS_COUNT };

	for (size_t i = 0; v.status == OUTCOME_STATUS_COUNT; i++) {
		assert(i < sizeof(rules) / sizeof(rules[0]));
		if (rules[i].holds(f))
			v.status = rules[i].status;
	}
	if (f->never_ran || f->overloaded) {
		v.exit_code = -1;
	} else if (f->has_done && (f->stop == STOP_NONE || f->committed || f->gave_way)) {
		v.exit_code = (int)f->done_code;
	} else if (f->has_exit && WIFEXITED(f->wait_status) && f->stop == STOP_NONE) {
		v.exit_code = WEXITSTATUS(f->wait_status);
	} else {
		v.signal = signal_of(f) != 0 && f->stop == STOP_NONE ? signal_of(f)
								     : SIGKILL;
		v.exit_code = 128 + v.signal;
	}
	write_message(f, &v, v.message, sizeof(v.message));
	*verdict_r = v;
}
