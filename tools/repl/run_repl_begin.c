/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the steps in a session before the cell of a call: it installs
 * packages and begins a session of the engine, or it copies a state. */
#include "tools/repl/run_repl_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "policy/config.h"
#include "tools/packages/needs.h"
#include "tools/shared/environment.h"

#define MIB (1024 * 1024)

/* ---- a state is copied ---- */

/* Nothing has changed, except for what the error says. */
static void
refuse_copy(struct tool_run *run, int error)
{
	if (error == -ENOMEM)
		repl_run_refuse(run, outcome_status_name(OUTCOME_MEMORY_LIMIT),
				"the session's memory_mb has no room for another state; the "
				"session is as it was");
	else if (run->arguments.branch)
		repl_run_refuse(run, RUN_SESSION_LIMIT, "the session could not be copied: it has "
				"no room for another process");
	else
		repl_run_refuse(run, RUN_NO_CHECKPOINT, "the checkpoint could not be restored; "
				"the session is as it was");
}

static void
on_restored(void *arg, const struct outcome *outcome)
{
	struct tool_run *run = arg;

	run->execution = NULL;
	run->files_left = repl_run_files_left(outcome);
	if (run->orphan || !run->turn.session || outcome->status == OUTCOME_CANCELLED)
		repl_run_finish(run, outcome);
	else
		repl_run_cell_or_refuse(run);
}

static int
restore_files(struct tool_run *run, struct why *why_r)
{
	char order[32];

	snprintf(order, sizeof(order), "restore %u", run->from);
	return repl_run_copy_files(run, run->turn.session, order, on_restored, why_r);
}

static void
on_copied(void *arg, int error)
{
	struct tool_run *run = arg;
	struct why why = { .field = "" };
	int r;

	if (error < 0) {
		refuse_copy(run, error);
		return;
	}
	repl_session_leave(&run->source, true);
	if (run->orphan) {
		repl_run_leave(run, run->began, true);
		repl_run_free(run);
		return;
	}
	r = run->arguments.restore && !run->arguments.branch ? restore_files(run, &why)
							     : repl_run_cell(run, &why);
	if (r < 0)
		repl_run_refuse(run, repl_run_reason(r), why.text);
}

/* ---- a branch ---- */

static void
on_branch_files(void *arg, const struct outcome *outcome)
{
	struct tool_run *run = arg;

	run->execution = NULL;
	run->files_left = repl_run_files_left(outcome);
	if (run->impatient && !run->orphan) {
		repl_run_refuse_busy(run);
	} else if (run->orphan || !run->turn.session || !run->source.session ||
		   outcome->status == OUTCOME_CANCELLED) {
		repl_run_refuse(run, RUN_NO_SESSION, "the session was closed");
	} else {
		run->step = STEP_COPY;
		repl_copy(run->source.session->origin->repl, run->from,
			  run->turn.session->snapshot, on_copied, run);
		repl_run_say_wait(run);
	}
}

/* The turn passes to the copy; the original session is kept until the copy exists. Its files are
 * copied first, while they are in /workspace. */
static int
begin_branch(struct tool_run *run, struct why *why_r)
{
	struct repl_session *source = run->turn.session, *branch;
	struct repl_turn turn = repl_run_turn(run);
	int r = repl_session_branch(source, &run->host, &turn, &branch, why_r);
	char order[32];

	if (r < 0)
		return r;
	repl_session_move_turn(&run->turn, &run->source);
	repl_session_move_turn(&turn, &run->turn);
	run->began = true;
	if (run->arguments.restore)
		snprintf(order, sizeof(order), "branch %u %u", branch->snapshot,
			 run->from);
	else
		snprintf(order, sizeof(order), "branch %u", branch->snapshot);
	return repl_run_copy_files(run, source, order, on_branch_files, why_r);
}

/* A call may ask for more memory than the session has. */
static int
raise_memory(struct tool_run *run, struct why *why_r)
{
	struct repl_session *session = run->turn.session;
	uint64_t had = session->origin->limits.memory_bytes;
	uint64_t asked = run->arguments.asked.memory_bytes;
	int r;

	if (asked <= had)
		return 0;
	r = repl_session_raise(session, &run->host, asked, why_r);
	if (r < 0)
		return r;
	run->limits.memory_bytes = asked;
	run->had_memory = had;
	return 0;
}

/* 0: on_copied() continues; 1: there is nothing to copy. */
static int
copy_first(struct tool_run *run, struct why *why_r)
{
	const struct run_script_arguments *arguments = &run->arguments;
	struct repl_session *session = run->turn.session;
	int from = (int)session->snapshot, r;
	const char *job = repl_session_other_job(session);

	/* A copy cannot be taken back while it waits, so it is not begun. */
	if (job && !run->host.job && (arguments->restore || arguments->branch))
		return why_say(why_r, -EBUSY, "session", REPL_BUSY_WITH_JOB, job);
	if (arguments->restore)
		from = repl_session_checkpoint(session, arguments->restore);
	else if (!repl_session_has_state(session))
		return why_say(why_r, -ESRCH, "session", "the state of this session was lost: "
			       "restore one of its checkpoints, or reset it");
	if (from < 0)
		return why_say(why_r, -ENOENT, "restore", "there is no checkpoint %s",
			       arguments->restore);
	r = raise_memory(run, why_r);
	if (r < 0)
		return r;
	run->from = (unsigned int)from;
	if (arguments->branch)
		return begin_branch(run, why_r);
	if (!arguments->restore)
		return 1;
	run->step = STEP_COPY;
	repl_copy(session->origin->repl, (unsigned int)from, session->snapshot, on_copied, run);
	repl_run_say_wait(run);
	return 0;
}

/* ---- a session begins, or begins again ---- */

/* Whether the session has no snapshots, or is to have none. */
static bool
is_alone(const struct tool_run *run)
{
	if (run->arguments.has_snapshot)
		return !run->arguments.snapshot;
	return run->turn.session && repl_session_is_alone(run->turn.session);
}

/* Without snapshots there are no copies of the state. */
static int
check_alone(const struct tool_run *run, struct why *why_r)
{
	const struct run_script_arguments *arguments = &run->arguments;
	const char *field = arguments->checkpoint ? "checkpoint"
			  : arguments->restore ? "restore"
			  : arguments->branch ? "branch"
			  : arguments->inspect ? "inspect" : NULL;

	if (!field || !is_alone(run))
		return 0;
	return why_say(why_r, -EINVAL, field, "%s needs a copy of the state, and with snapshot: "
		       "false a session has none", field);
}

/* Refuses arguments that the session has fixed, and that a later call cannot change. */
static int
check_fixed(const struct tool_run *run, const struct repl_session *session,
	    struct why *why_r)
{
	const struct run_script_arguments *arguments = &run->arguments;
	const char *standard = run->host.config->profile[0].name;
	const char *profile = session->origin->profile;
	uint64_t memory = session->origin->limits.memory_bytes;

	if (arguments->reset)
		return 0;
	if (arguments->profile &&
	    strcmp(arguments->profile, profile ? profile : standard) != 0)
		return why_say(why_r, -EINVAL, "profile", "profile is chosen when a session "
			       "begins, or with reset: this one has %s",
			       profile ? profile : standard);
	if (arguments->dependencies)
		return why_say(why_r, -EINVAL, "dependencies", "dependencies are chosen when a "
			       "session begins, or with reset; install_package gives a session "
			       "more");
	if (is_alone(run) != repl_session_is_alone(session))
		return why_say(why_r, -EINVAL, "snapshot", "snapshot is chosen when a session "
			       "begins, or with reset: this one has %s",
			       arguments->snapshot ? "false" : "true");
	if (arguments->asked.memory_bytes && arguments->asked.memory_bytes < memory)
		return why_say(why_r, -EINVAL, "memory_mb", "memory_mb of a session can be raised, "
			       "and only reset lowers it: this one has %llu",
			       (unsigned long long)(memory / MIB));
	return 0;
}

static struct repl_first
first_of(const struct tool_run *run)
{
	return (struct repl_first){ is_alone(run), run->arguments.script,
				    run->arguments.script_len };
}

/* Begins again under the same handle. Limits that the call does not name stay. */
static int
reset_session(struct tool_run *run, const struct repl_packages *packages,
	      struct why *why_r)
{
	struct repl_session *session = run->turn.session;
	const struct run_script_arguments *arguments = &run->arguments;
	const struct repl_first first = first_of(run);
	struct limits limits = run->limits;
	int r;

	if (!packages && !arguments->dependencies && !arguments->profile)
		packages = repl_session_packages(session);
	if (!arguments->asked.memory_bytes)
		limits.memory_bytes = session->origin->limits.memory_bytes;
	r = repl_session_reset(session, &run->host,
			       arguments->profile ? arguments->profile
						  : session->origin->profile,
			       &limits, packages, &first, why_r);
	run->limits = limits;
	run->began = r < 0 && !session->origin;	/* the session is gone */
	return r;
}

/* Begins a new session, or the same one again, with its packages; then the cell. */
static int
begin_session(struct tool_run *run, struct why *why_r)
{
	const struct repl_packages met = { run->environment, run->packages };
	const struct repl_packages *packages = *run->environment ? &met : NULL;
	const struct repl_first first = first_of(run);
	struct repl_session *session;
	int r;

	if (run->turn.session) {
		r = reset_session(run, packages, why_r);
	} else {
		r = repl_session_new(&run->host, run->arguments.profile, &run->limits,
				     packages, &first, &run->turn, &session, why_r);
		run->began = r == 0;
	}
	return r < 0 ? r : repl_run_cell(run, why_r);
}

static void
on_needs(void *arg, const struct needs_result *result)
{
	struct tool_run *run = arg;
	struct why why = { .field = "" };
	int r;

	run->needs = NULL;
	if (result->status == NEEDS_TROUBLE) {
		struct tool_host host = run->host;
		struct repl_told told;

		/* The check of the requirements itself has failed. */
		repl_tell(run->turn.session, &told);
		repl_tell_outcome(result->trouble, &told);
		repl_run_leave(run, false, true);
		repl_run_free(run);
		run_repl_answer(result->trouble, &told, &host);
		return;
	}
	if (result->status != NEEDS_MET) {
		repl_run_refuse(run, result->reason, result->text);
		return;
	}
	if (result->environment) {
		memcpy(run->environment, result->environment, sizeof(run->environment));
		run->packages = json_incref((json_t *)result->packages);
	}
	r = begin_session(run, &why);
	if (r < 0)
		repl_run_refuse(run, repl_run_reason(r), why.text);
}

/* Begins once the packages are ready, which may be at once: the run may be over afterwards. */
int
repl_run_begin_with_needs(struct tool_run *run, const char *profile, struct why *why_r)
{
	const struct run_script_arguments *arguments = &run->arguments;
	struct requirements_probe probe = {
		.script = arguments->script ? arguments->script : "",
		.script_len = arguments->script_len,
		.dependencies = arguments->dependencies,
	};
	struct needs *needs;
	int r = check_alone(run, why_r);

	if (r == 0)
		r = environment_profile(&run->host, profile, &probe.profile, why_r);
	if (r < 0)
		return r;
	if (!requirements_any(probe.script, probe.script_len, probe.dependencies))
		return begin_session(run, why_r);
	run->step = STEP_NEEDS;
	r = needs_start(&run->host, &probe, on_needs, run, &needs, why_r);
	if (r == 0 && needs)
		run->needs = needs;
	return r;
}

/* ---- the first step ---- */

/* The call has its turn: the first step in the session. */
void
repl_run_begin(struct tool_run *run)
{
	struct repl_session *session = run->turn.session;
	struct why why = { .field = "" };
	int r = check_fixed(run, session, &why);

	if (r == 0 && repl_run_only_closes(&run->arguments)) {
		repl_run_close(run);
		return;
	}
	if (r == 0 && run->arguments.reset) {
		r = repl_run_begin_with_needs(run, run->arguments.profile
						   ? run->arguments.profile
						   : session->origin->profile, &why);
	} else if (r == 0) {
		run->limits.memory_bytes = session->origin->limits.memory_bytes;
		r = check_alone(run, &why);
		if (r == 0)
			r = copy_first(run, &why);
	}
	if (r == 1)
		r = repl_run_cell(run, &why);
	if (r < 0)
		repl_run_refuse(run, r == -ENOENT && run->arguments.restore
				     ? RUN_NO_CHECKPOINT : repl_run_reason(r), why.text);
}
