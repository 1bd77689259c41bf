/* Runs in: the supervisor.   Owns: the calls of run_repl.
 * A call lives from an accepted start to its answer; one whose client is gone goes on without
 * it until the session is as it should be. */
#include "supervisor/tools/run_repl.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "policy/config.h"
#include "supervisor/tools/background.h"
#include "supervisor/tools/environment.h"
#include "supervisor/tools/outcome_copy.h"
#include "supervisor/tools/packages/needs.h"
#include "supervisor/tools/packages/set.h"
#include "supervisor/tools/resources.h"
#include "supervisor/xalloc.h"

#define MIB (1024 * 1024)

enum step {
	STEP_TURN,		/* waits for its turn */
	STEP_NEEDS,		/* what the session is to begin with is found or installed */
	STEP_COPY,		/* restores or branches */
	STEP_CELL,
	STEP_CHECKPOINT,
};

struct tool_run {
	struct tool_host host;
	json_t *json;			/* what arguments borrow from */
	struct run_script_arguments arguments;
	struct limits limits;
	enum step step;
	struct repl_turn turn;		/* of the session that it works in */
	struct repl_turn source;	/* of the one that this one is copied from */
	struct needs *needs;		/* STEP_NEEDS */
	char environment[SET_NAME + 1];	/* that it came to; "": none */
	json_t *packages;		/* which are in it */
	bool *over;			/* not NULL: set when the run is freed */
	bool began;			/* by this call: nobody else knows its handle yet */
	bool orphan;			/* its client is gone */
	struct execution *execution;	/* STEP_CELL */
	int checkpoint;			/* its place; -1: none */
	int checkpoint_error;		/* why it could not be made; 0: not tried */
	struct outcome_copy *outcome;	/* STEP_CHECKPOINT */
};

/* ---- description ---- */

static char *
make_description(const struct config *config)
{
	char *limits = run_script_limits_text(config), *text;
	int n;

	n = asprintf(&text,
		"Run Python %s code in a session that keeps its variables, imports and files "
		"for the next call, like a notebook. The first call (without session) begins "
		"one and answers its handle as session; send that with the next cells. "
		"Returns what run_script returns, and state.\n"
		"A session survives mistakes: after an exception everything up to it is kept; "
		"after a time-out, a crash, a limit or os._exit the session is as before the "
		"cell (state rolled_back; files in /workspace are not taken back). Threads, "
		"processes and sockets end with their cell (not_carried).\n"
		"checkpoint and restore keep a state by name and go back to it; branch works in "
		"a copy. One cell at a time runs in a session, others wait. A session that is not "
		"used for %u s is closed. It sees no files of the machine and %s.\n"
		"Example: {\"code\": \"x = 20\"} answers session S; then {\"session\": S, \"code\": "
		"\"x + 1\"} gives result 21.\n%s memory_mb, profile and dependencies are chosen when "
		"a session begins, and memory_mb bounds all of it.",
		PYTHON_VERSION, config->repl.idle_seconds, run_script_network_text(config),
		limits);
	xalloc_check(n < 0 ? NULL : text);
	free(limits);
	return text;
}

static void
describe(const struct config *config, struct tool_description *description_r)
{
	*description_r = (struct tool_description){
		.name = run_repl_tool.name,
		.title = "Run Python in a session",
		.description = make_description(config),
		.input_schema = run_script_input_schema(RUN_FOR_REPL, config),
		.output_schema = run_script_output_schema(RUN_FOR_REPL),
		/* A session is only in its own worker, and reaches nobody but whom
		 * [network] names. */
		.read_only = false,
		.destructive = false,
		.idempotent = false,
		.open_world = config->network.allow.n > 0,
		.task = TOOL_TASK_MAY,
	};
}

/* ---- the end of a call ---- */

static void
free_run(struct tool_run *run)
{
	assert(!run->turn.session && !run->source.session);
	run_script_arguments_done(&run->arguments);
	json_decref(run->json);
	outcome_copy_free(run->outcome);
	json_decref(run->packages);
	if (run->over)
		*run->over = true;
	free(run);
}

/* Gives up its sessions: a new one that nobody will hear of is closed. */
static void
leave(struct tool_run *run, bool closes, bool used)
{
	repl_session_leave(&run->source, true);
	if (!run->turn.session)
		return;
	if (closes)
		repl_session_close(&run->turn);
	else
		repl_session_leave(&run->turn, used);
}

/* Nothing was run, and the run is over. */
static void
refuse(struct tool_run *run, const char *reason, const char *text)
{
	struct tool_host host = run->host;
	bool orphan = run->orphan;
	struct repl_told told;

	repl_tell(run->began ? NULL : run->turn.session, &told);
	if (run->source.session)
		repl_tell(run->source.session, &told);
	leave(run, run->began, true);
	/* The arguments live until the text is said, which may quote them. */
	if (!orphan)
		run_repl_refuse(reason, text, &told, &host);
	free_run(run);
}

static const char *
reason_of(int error)
{
	return error == -ENOSPC ? RUN_SESSION_LIMIT :
	       error == -EDQUOT ? TOOL_QUOTA_EXCEEDED :
	       error == -EIO ? TOOL_AUDIT_UNAVAILABLE :
	       error == -ESRCH ? RUN_NO_SESSION : RUN_INVALID_ARGUMENTS;
}

/* Is there nothing left that a later call could use? */
static bool
is_spent(const struct repl_session *session)
{
	return !session || (!repl_session_has_state(session) &&
			    !repl_session_checkpoint_name(session, 0));
}

/* A client that did not wait is told with the next answer. */
static void
leave_note(struct repl_session *session, const struct outcome *outcome)
{
	if (outcome->state == STATE_COMMITTED)
		repl_session_set_note(session, "The cell before was cancelled; what it did until "
				      "then is kept.");
	else if (outcome->state == STATE_ROLLED_BACK)
		repl_session_set_note(session, "The cell before was cancelled and had to be killed: "
				      "it was undone.");
	else if (outcome->state == STATE_LOST)
		repl_session_set_note(session, "The cell before was cancelled, and the state was "
				      "lost.");
}

static void
tell_end(const struct tool_run *run, const struct outcome *outcome, bool spent,
	 struct repl_told *told)
{
	repl_tell(run->turn.session, told);
	repl_tell_outcome(outcome, told);
	if (run->arguments.checkpoint && run->checkpoint < 0)
		repl_tell_more(told, run->checkpoint_error == -ENOMEM
			? "No checkpoint was made: the session's memory_mb has no room for one."
			: "No checkpoint was made.");
	if (spent) {
		told->state = "lost";
		repl_tell_more(told, "The session is gone: begin a new one.");
	} else if (outcome->state == STATE_LOST) {
		repl_tell_more(told, "Restore one of its checkpoints, or reset it.");
	}
	if (run->arguments.close)
		told->state = "closed";
}

/* The cell has ended, and its checkpoint is made or not. The run is over. */
static void
finish(struct tool_run *run, const struct outcome *outcome)
{
	struct repl_session *session = run->turn.session;
	struct tool_host host = run->host;
	bool spent = is_spent(session);
	bool closing = session && repl_session_is_closing(session);
	/* One that never ran anything is not worth a handle. */
	bool closes = spent || run->arguments.close ||
		      (run->began && (run->orphan || outcome->state == STATE_NONE));
	struct repl_told told;

	tell_end(run, outcome, spent, &told);
	if (closing)
		told.state = "closed";
	if (closes || closing)
		told.handle[0] = told.expires[0] = '\0', told.n_checkpoints = 0;
	if (session)
		repl_session_set_note(session, NULL);
	if (session && run->orphan)
		leave_note(session, outcome);
	leave(run, closes, true);
	if (!run->orphan) {
		resources_keep(host.config, host.tenant, outcome);
		run_repl_answer(outcome, &told, &host);
	}
	free_run(run);
}

/* ---- the checkpoint ---- */

static void
on_checkpointed(void *arg, int error)
{
	struct tool_run *run = arg;

	if (error == 0)
		repl_session_keep(run->turn.session, run->arguments.checkpoint,
				  (unsigned int)run->checkpoint);
	else
		repl_session_unreserve(run->turn.session, (unsigned int)run->checkpoint);
	if (error < 0)
		run->checkpoint = -1;
	run->checkpoint_error = error;
	finish(run, outcome_copy_get(run->outcome));
}

static void
make_checkpoint(struct tool_run *run, const struct outcome *outcome)
{
	struct repl_session *session = run->turn.session;

	run->step = STEP_CHECKPOINT;
	run->outcome = outcome_copy_new(outcome);
	repl_copy(repl_session_repl(session), repl_session_place(session),
		  (unsigned int)run->checkpoint, on_checkpointed, run);
}

/* ---- the cell ---- */

static void
on_output(void *arg, enum stream stream, const char *bytes, size_t len)
{
	struct tool_run *run = arg;

	if (!run->orphan)
		run->host.on_output(run->host.arg, stream, bytes, len);
}

static void
on_outcome(void *arg, const struct outcome *outcome)
{
	struct tool_run *run = arg;
	struct repl_session *session = run->turn.session;

	run->execution = NULL;
	if (session && run->checkpoint >= 0) {
		if (outcome->status == OUTCOME_OK && outcome->state == STATE_COMMITTED &&
		    !run->orphan) {
			make_checkpoint(run, outcome);
			return;
		}
		repl_session_unreserve(session, (unsigned int)run->checkpoint);
	}
	run->checkpoint = -1;
	finish(run, outcome);
}

/* 0, or negative with why_r: then nothing runs. */
static int
start_cell(struct tool_run *run, struct why *why_r)
{
	struct run_script_arguments *arguments = &run->arguments;
	struct repl_session *session = run->turn.session;
	const struct execution_watcher watcher = {
		.on_output = run->host.on_output ? on_output : NULL,
		.on_outcome = on_outcome,
		.arg = run,
	};
	struct execution_request request = {
		.script = arguments->script ? arguments->script : "",
		.script_len = arguments->script_len,
		.spill = arguments->spill,
		.network = &run->host.config->network,
		.limits = run->limits,
		.repl = repl_session_repl(session),
		.place = repl_session_place(session),
	};
	int r = 0;

	if (arguments->checkpoint) {
		run->checkpoint = r = repl_session_reserve(session, arguments->checkpoint,
							   why_r);
	}
	if (r >= 0)
		r = run_script_files_resolve(&arguments->files, run->host.config,
					     run->host.tenant, why_r);
	if (r >= 0) {
		run->step = STEP_CELL;
		request.input = arguments->files.item;
		request.n_inputs = arguments->files.n;
		request.cell = repl_session_number_cell(session);
		r = execution_start(run->host.engine, run->host.tenant, &request, &watcher,
				    &run->execution, why_r);
	}
	if (r < 0 && run->checkpoint >= 0)
		repl_session_unreserve(session, (unsigned int)run->checkpoint);
	return r;
}

static void
start_cell_or_refuse(struct tool_run *run)
{
	struct why why = { .field = "" };
	int r = start_cell(run, &why);

	if (r < 0)
		refuse(run, r == -EDQUOT ? TOOL_QUOTA_EXCEEDED :
			    r == -EIO ? TOOL_AUDIT_UNAVAILABLE : reason_of(r), why.text);
}

/* ---- before the cell ---- */

/* Nothing has changed but what the error says. */
static void
refuse_copy(struct tool_run *run, int error)
{
	bool branch = run->arguments.branch;

	if (error == -ENOMEM)
		refuse(run, outcome_status_name(OUTCOME_MEMORY_LIMIT),
		       "the session's memory_mb has no room for another state; the session is "
		       "as it was");
	else
		refuse(run, branch ? RUN_SESSION_LIMIT : RUN_NO_CHECKPOINT,
		       branch ? "the session could not be copied: it has no room for another "
				"process"
			      : "the checkpoint could not be restored; the session is as it was");
}

static void
on_copied(void *arg, int error)
{
	struct tool_run *run = arg;

	if (error < 0) {
		refuse_copy(run, error);
		return;
	}
	repl_session_leave(&run->source, true);
	if (run->orphan) {
		leave(run, run->began, true);
		free_run(run);
		return;
	}
	start_cell_or_refuse(run);
}

static void on_gone(void *arg, const char *text);
static void on_hurry(void *arg);

/* The turn becomes that of the copy; the other one is kept until the copy is made. */
static int
begin_branch(struct tool_run *run, unsigned int from, struct why *why_r)
{
	struct repl_session *source = run->turn.session, *branch;
	struct repl_turn turn = { .on_gone = on_gone, .on_hurry = on_hurry, .arg = run };
	int r = repl_session_branch(source, &run->host, &turn, &branch, why_r);

	if (r < 0)
		return r;
	repl_session_move_turn(&run->turn, &run->source);
	repl_session_move_turn(&turn, &run->turn);
	run->began = true;
	run->step = STEP_COPY;
	repl_copy(repl_session_repl(source), from, repl_session_place(branch), on_copied,
		  run);
	return 0;
}

/* 0 when it goes on from on_copied, 1 when there is nothing to copy. */
static int
copy_first(struct tool_run *run, struct why *why_r)
{
	const struct run_script_arguments *arguments = &run->arguments;
	struct repl_session *session = run->turn.session;
	int from = (int)repl_session_place(session);

	if (arguments->restore)
		from = repl_session_checkpoint(session, arguments->restore);
	else if (!repl_session_has_state(session))
		return why_say(why_r, -ESRCH, "session", "the state of this session was lost: "
			       "restore one of its checkpoints, or reset it");
	if (from < 0)
		return why_say(why_r, -ENOENT, "restore", "there is no checkpoint %s",
			       arguments->restore);
	if (arguments->branch)
		return begin_branch(run, (unsigned int)from, why_r);
	if (!arguments->restore)
		return 1;
	run->step = STEP_COPY;
	repl_copy(repl_session_repl(session), (unsigned int)from,
		  repl_session_place(session), on_copied, run);
	return 0;
}

/* What the session has, and a later call cannot change. */
static int
check_fixed(const struct tool_run *run, const struct repl_session *session,
	    struct why *why_r)
{
	const struct run_script_arguments *arguments = &run->arguments;
	const char *standard = run->host.config->profile[0].name;
	const char *profile = repl_session_profile(session);
	uint64_t memory = repl_session_limits(session)->memory_bytes;

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
	if (arguments->asked.memory_bytes && arguments->asked.memory_bytes != memory)
		return why_say(why_r, -EINVAL, "memory_mb", "memory_mb is chosen when a session "
			       "begins, or with reset: this one has %llu",
			       (unsigned long long)(memory / MIB));
	return 0;
}

/* Begins again under the same handle. What is not asked for otherwise stays. */
static int
reset_session(struct tool_run *run, const struct repl_packages *packages,
	      struct why *why_r)
{
	struct repl_session *session = run->turn.session;
	const struct run_script_arguments *arguments = &run->arguments;
	struct limits limits = run->limits;
	int r;

	if (!packages && !arguments->dependencies && !arguments->profile)
		packages = repl_session_packages(session);
	if (!arguments->asked.memory_bytes)
		limits.memory_bytes = repl_session_limits(session)->memory_bytes;
	r = repl_session_reset(session, &run->host,
			       arguments->profile ? arguments->profile
						  : repl_session_profile(session),
			       &limits, packages, why_r);
	run->limits = limits;
	run->began = r < 0 && !repl_session_is_open(session);	/* it is gone */
	return r;
}

/* A new session, or the same one anew, with what it needs; then the cell. */
static int
begin_session(struct tool_run *run, struct why *why_r)
{
	const struct repl_packages met = { run->environment, run->packages };
	const struct repl_packages *packages = *run->environment ? &met : NULL;
	struct repl_session *session;
	int r;

	if (run->turn.session) {
		r = reset_session(run, packages, why_r);
	} else {
		r = repl_session_new(&run->host, run->arguments.profile, &run->limits,
				     packages, &run->turn, &session, why_r);
		run->began = r == 0;
	}
	return r < 0 ? r : start_cell(run, why_r);
}

/* What was to find out what it needs ended in its own way. */
static void
tell_trouble(struct tool_run *run, const struct outcome *outcome)
{
	struct tool_host host = run->host;
	struct repl_told told;

	repl_tell(run->turn.session, &told);
	repl_tell_outcome(outcome, &told);
	leave(run, false, true);
	free_run(run);
	run_repl_answer(outcome, &told, &host);
}

static void
on_needs(void *arg, const struct needs_result *result)
{
	struct tool_run *run = arg;
	struct why why = { .field = "" };
	int r;

	run->needs = NULL;
	if (result->status == NEEDS_TROUBLE) {
		tell_trouble(run, result->trouble);
		return;
	}
	if (result->status != NEEDS_MET) {
		refuse(run, result->reason, result->text);
		return;
	}
	if (result->environment) {
		memcpy(run->environment, result->environment, sizeof(run->environment));
		run->packages = json_incref((json_t *)result->packages);
	}
	r = begin_session(run, &why);
	if (r < 0)
		refuse(run, reason_of(r), why.text);
}

/* Begins once what is asked for is there, which may be now: the run may be over after this. */
static int
begin_with_needs(struct tool_run *run, const char *profile, struct why *why_r)
{
	const struct run_script_arguments *arguments = &run->arguments;
	struct requirements_question question = {
		.script = arguments->script ? arguments->script : "",
		.script_len = arguments->script_len,
		.dependencies = arguments->dependencies,
	};
	struct needs *needs;
	int r;

	if (!requirements_any(question.script, question.script_len, question.dependencies))
		return begin_session(run, why_r);
	r = environment_profile(&run->host, profile, &question.profile, why_r);
	run->step = STEP_NEEDS;
	if (r == 0)
		r = needs_start(&run->host, &question, on_needs, run, &needs, why_r);
	if (r == 0 && needs)
		run->needs = needs;
	return r;
}

/* A call to close the session and for nothing else. */
static bool
is_to_close(const struct run_script_arguments *arguments)
{
	return arguments->close && !arguments->script && !arguments->checkpoint &&
	       !arguments->restore && !arguments->branch && !arguments->reset &&
	       arguments->files.n == 0;
}

/* Nothing is run for it. */
static void
close_and_answer(struct tool_run *run)
{
	const struct outcome outcome = {
		.status = OUTCOME_OK, .exit_code = -1, .transcript = "", .message = "closed",
		.stream = { { .text = "" }, { .text = "" } }, .limits = &run->limits,
	};
	struct repl_told told = { .state = "closed" };

	leave(run, true, true);
	run_repl_answer(&outcome, &told, &run->host);
	free_run(run);
}

/* It has its turn: the first thing that is done in the session. */
static void
begin_work(struct tool_run *run)
{
	struct repl_session *session = run->turn.session;
	struct why why = { .field = "" };
	int r = check_fixed(run, session, &why);

	if (r == 0 && is_to_close(&run->arguments)) {
		close_and_answer(run);
		return;
	}
	if (r == 0 && run->arguments.reset) {
		r = begin_with_needs(run, run->arguments.profile
					  ? run->arguments.profile
					  : repl_session_profile(session), &why);
	} else if (r == 0) {
		run->limits.memory_bytes = repl_session_limits(session)->memory_bytes;
		r = copy_first(run, &why);
	}
	if (r == 1)
		r = start_cell(run, &why);
	if (r < 0)
		refuse(run, r == -ENOENT && run->arguments.restore ? RUN_NO_CHECKPOINT
								   : reason_of(r),
		       why.text);
}

static void
on_turn(void *arg)
{
	begin_work(arg);
}

/* The session ended, and with it what was asked of it; the outcome of a cell comes by
 * itself. */
static void
on_gone(void *arg, const char *text)
{
	struct tool_run *run = arg;

	if (run->step == STEP_CELL)
		return;
	if (run->needs)
		needs_cancel(run->needs, CANCEL_SESSION_ENDED);
	/* Of the two of a branch the other one may be there still; both end together. */
	if (run->step == STEP_COPY) {
		repl_session_leave(&run->source, false);
		if (run->turn.session)
			repl_session_close(&run->turn);
	}
	if (run->step == STEP_CHECKPOINT) {
		run->checkpoint = -1;
		finish(run, outcome_copy_get(run->outcome));
		return;
	}
	if (is_to_close(&run->arguments))
		close_and_answer(run);
	else
		refuse(run, RUN_NO_SESSION, text);
}

/* The session is to be closed. */
static void
on_hurry(void *arg)
{
	struct tool_run *run = arg;

	if (run->execution)
		execution_cancel(run->execution, CANCEL_SESSION_ENDED);
}

/* ---- start ---- */

static int
check_together(const struct run_script_arguments *arguments, struct why *why_r)
{
	const char *field = arguments->branch ? "branch" : arguments->restore ? "restore"
			  : arguments->reset ? "reset" : NULL;

	if (field && !arguments->session)
		return why_say(why_r, -EINVAL, field, "%s needs a session", field);
	if (arguments->reset && (arguments->branch || arguments->restore))
		return why_say(why_r, -EINVAL, "reset", "reset leaves nothing to %s",
			       arguments->branch ? "branch from" : "restore");
	return 0;
}

/* Begins a session, or waits for the turn in one. 0, or negative: the caller refuses. */
static int
find_session(struct tool_run *run, const char **reason_r, struct why *why_r)
{
	const struct run_script_arguments *arguments = &run->arguments;
	struct repl_session *session;
	int r;

	*reason_r = RUN_INVALID_ARGUMENTS;
	if (!arguments->session) {
		r = begin_with_needs(run, arguments->profile, why_r);
		*reason_r = reason_of(r);
		return r;
	}
	session = repl_session_find(run->host.tenant, arguments->session);
	if (!session) {
		*reason_r = RUN_NO_SESSION;
		return why_say(why_r, -ESRCH, "session", "there is no such session: it was closed, "
			       "it expired, or it never was; a call without session begins one");
	}
	if (is_to_close(arguments)) {
		repl_session_enter_to_close(session, &run->turn);
		return 0;
	}
	r = repl_session_enter(session, &run->turn);
	if (r == 0)
		return 0;
	*reason_r = RUN_SESSION_BUSY;
	return why_say(why_r, r, "session", "%d calls wait for this session already",
		       REPL_WAITING_MAX);
}

static struct tool_run *
start_here(const struct tool_host *host, const json_t *json)
{
	struct tool_run *run = xcalloc(1, sizeof(*run));
	const char *reason = RUN_INVALID_ARGUMENTS;
	struct why why = { .field = "" };
	bool over = false;
	int r;

	run->host = *host;
	run->over = &over;
	run->json = json_incref((json_t *)json);
	run->checkpoint = -1;
	run->turn = (struct repl_turn){ .on_turn = on_turn, .on_gone = on_gone,
					.on_hurry = on_hurry, .arg = run };
	r = run_script_read(RUN_FOR_REPL, json, host->config, &run->arguments, &why);
	if (r == 0)
		r = check_together(&run->arguments, &why);
	if (r == 0)
		r = limits_merge(&host->config->limits, &run->arguments.asked, &run->limits,
				 &why);
	if (r == 0)
		r = find_session(run, &reason, &why);
	if (over)
		return NULL;
	run->over = NULL;
	if (r < 0) {
		refuse(run, reason, why.text);
		return NULL;
	}
	return run;
}

static struct tool_run *
start(const struct tool_host *host, const json_t *json)
{
	struct why why = { .field = "" };
	const char *job;
	int r;

	if (!background_wanted(json))
		return start_here(host, json);
	r = background_start(host, &run_repl_tool, json, &job, &why);
	if (r == 0)
		run_repl_answer_job(job, host);
	else if (r < 0)
		run_repl_refuse(RUN_TOO_MANY_JOBS, why.text, NULL, host);
	return NULL;
}

static void
cancel(struct tool_run *run, enum cancel_reason reason)
{
	run->orphan = true;
	if (run->step == STEP_TURN || run->step == STEP_NEEDS) {
		if (run->needs)
			needs_cancel(run->needs, reason);
		repl_session_leave(&run->turn, false);
		free_run(run);
		return;
	}
	if (run->execution)
		execution_cancel(run->execution, reason);
}

static void
refuse_call(const char *reason, const char *text, const struct tool_host *host)
{
	run_repl_refuse(reason, text, NULL, host);
}

const struct tool run_repl_tool = {
	.name = "run_repl",
	.policy = "run_repl",
	.refuse = refuse_call,
	.long_status = "the cell is running",
	.describe = describe,
	.start = start,
	.cancel = cancel,
	.once = run_script_once,
};
