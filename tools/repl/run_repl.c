/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the calls of run_repl.
 * A call lives from an accepted start to its answer. A call whose client has left continues
 * until the session is in a defined state. */
#include "tools/repl/run_repl_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "policy/config.h"
#include "tools/job/background.h"
#include "tools/packages/needs.h"
#include "tools/script/run_script.h"
#include "tools/shared/environment.h"
#include "tools/shared/resources.h"

#define JOB_WAIT_MS 5000	/* a call waits so long behind a job before it is refused */
#define CALL_WAIT_MS 60000	/* ... behind another call, and for at most half of its own time */
#define WAIT_STEP_MS 1000	/* near its end the wait is looked at so often */
#define LOOK_WAIT_MS 500	/* ... if it only looks, unless it will see what was before */

/* ---- description ---- */

static char *
make_description(const struct config *config)
{
	char *text;
	int n;

	n = asprintf(&text,
		"Run Python %s code in a session that keeps variables, imports and files for the "
		"next call, like a notebook. The first call, without session, begins one; send "
		"the session that it answers with the next cells. Answers, packages and network "
		"are those of run_script.\n"
		"After an exception everything up to it is kept; after a crash or a limit "
		"the session is as before the cell (state rolled_back), but for files%s. "
		"Threads, processes and tasks live on. Unused for %u s it is closed. "
		"profile and dependencies are chosen when it begins.%s\n"
		"Example: {\"code\": \"x = 20\"} answers session S; then {\"session\": S, \"code\": "
		"\"x + 1\"} gives result 21.",
		environment_version(), config->folder.is_writable
			? " (checkpoints never have those in /folder)" : "",
		config->repl.idle_seconds, script_input_text(config));
	return xalloc_check(n < 0 ? NULL : text);
}

static void
run_repl_describe_tool(const struct config *config, struct tool_description *description_r)
{
	*description_r = (struct tool_description){
		.name = run_repl_tool.name,
		.title = "Run Python in a session",
		.icon = ICON_SESSION,
		.hint = "run_repl runs code a step at a time: variables and files stay for the next "
			"call with the same session; use it to look at data.",
		.description = make_description(config),
		.input_schema = run_script_input_schema(RUN_FOR_REPL, config),
		.output_schema = run_script_output_schema(RUN_FOR_REPL, config),
		/* A session changes only its own worker, and reaches only hosts that [network]
		 * names. */
		.read_only = false,
		.destructive = false,
		.idempotent = false,
		.open_world = config->network.allow.n > 0,
		.task = TOOL_TASK_MAY,
	};
}

/* ---- its turn ---- */

/* A call that does nothing but close the session. */
bool
repl_run_only_closes(const struct run_script_arguments *arguments)
{
	return arguments->close && !arguments->script && !arguments->checkpoint &&
	       !arguments->restore && !arguments->branch && !arguments->reset &&
	       arguments->files.n == 0;
}

/* The client was told how long the call may take, and the wait is a part of that. */
static void
on_turn(void *arg)
{
	struct tool_run *run = arg;
	uint64_t left = run->limits.wall_ms / 2;

	if (run->patience) {
		run->waited_ms = (uint32_t)(clock_ms() - run->waits_since_ms);
		run->limits.wall_ms -= run->waited_ms < left ? run->waited_ms : (uint32_t)left;
	}
	repl_run_begin(run);
}

/* The session ended, and its requests with it; the outcome of a cell is reported separately. */
static void
on_gone(void *arg, const char *text)
{
	struct tool_run *run = arg;

	if (run->step == STEP_CELL || run->step == STEP_LOOK || run->step == STEP_FILES) {
		/* The session of the engine goes on if a branch has it. */
		if (run->execution)
			execution_cancel(run->execution, CANCEL_SESSION_ENDED);
		return;
	}
	if (run->needs)
		needs_cancel(run->needs, CANCEL_SESSION_ENDED);
	/* The other session of a branch may still exist; both end together. */
	if (run->step == STEP_COPY) {
		repl_session_leave(&run->source, false);
		if (run->turn.session)
			repl_session_close(&run->turn);
	}
	if (run->step == STEP_CHECKPOINT) {
		run->checkpoint = -1;
		repl_run_finish(run, outcome_copy_get(run->outcome));
		return;
	}
	if (repl_run_only_closes(&run->arguments))
		repl_run_close(run);
	else
		repl_run_refuse(run, RUN_NO_SESSION, text);
}

/* The session is to be closed. */
static void
on_hurry(void *arg)
{
	struct tool_run *run = arg;

	if (run->execution)
		execution_cancel(run->execution, CANCEL_SESSION_ENDED);
	if (run->needs) {
		needs_cancel(run->needs, CANCEL_SESSION_ENDED);
		repl_run_refuse(run, RUN_NO_SESSION, "the session was closed");
	}
}

static void
repl_run_wait(struct tool_run *run, uint64_t ms)
{
	const struct timeval wait = { .tv_sec = (time_t)(ms / 1000),
				      .tv_usec = (suseconds_t)(ms % 1000 * 1000) };

	evtimer_add(run->patience, &wait);
}

/* A call that only looks can be answered now. */
static void
on_seen(void *arg)
{
	struct tool_run *run = arg;

	if (run->arguments.inspect && run->patience)
		repl_run_wait(run, 0);
}

struct repl_turn
repl_run_turn(struct tool_run *run)
{
	return (struct repl_turn){ .on_turn = on_turn, .on_gone = on_gone,
				   .on_hurry = on_hurry, .on_seen = on_seen, .arg = run,
				   .job = run->host.job };
}

/* ---- waits ---- */

/* Behind calls of the same handle. */
static bool
waits_for_turn(const struct tool_run *run, char *text_r, size_t size)
{
	const char *job;
	size_t n = run->turn.session ? repl_session_before(&run->turn, &job) : 0;

	if (n == 0)
		return false;
	snprintf(text_r, size, "waits for another call in this session%s%s%s", job ? " (job " : "",
		 job ? job : "", job ? ")" : "");
	if (n > 1)
		snprintf(text_r + strlen(text_r), size - strlen(text_r), ", and for %zu more",
			 n - 1);
	return true;
}

/* Behind the cell of a branch, which has a handle of its own. */
static bool
waits_for_branch(const struct tool_run *run, char *text_r, size_t size)
{
	const struct repl_session *session = run->turn.session;

	if (!session || !repl_runs_other(session->origin->repl, run->execution))
		return false;
	snprintf(text_r, size, "waits for a cell in a branch of this session");
	return true;
}

/* The job that the call waits for; NULL: it waits for none. */
static const char *
job_before(const struct tool_run *run)
{
	const char *job = NULL;

	if (!run->turn.session)
		return NULL;
	if (run->step != STEP_TURN)
		return repl_session_other_job(run->turn.session);
	(void)repl_session_before(&run->turn, &job);
	return job;
}

static bool
run_repl_waits(struct tool_run *run, char *text_r, size_t size)
{
	if (run->step == STEP_TURN)
		return waits_for_turn(run, text_r, size);
	return (run->step == STEP_CELL && script_tools_waits(&run->tools, text_r, size)) ||
	       (run->step != STEP_NEEDS && waits_for_branch(run, text_r, size));
}

void
repl_run_refuse_busy(struct tool_run *run)
{
	const char *job = job_before(run);
	char text[256];

	if (job)
		snprintf(text, sizeof(text), REPL_BUSY_WITH_JOB, job);
	else if (run->arguments.inspect && run->step == STEP_TURN)
		snprintf(text, sizeof(text), "nothing was looked at: the session is busy with another "
			 "call, which began %u s ago. Its variables are listed before the next call, "
			 "and from then on they can be seen at once",
			 repl_session_held_s(run->turn.session));
	else
		snprintf(text, sizeof(text), "nothing was run: the session was busy with other calls for "
			 "%u s. Make the call again later, or begin another session",
			 (unsigned int)((clock_ms() - run->waits_since_ms) / 1000));
	repl_run_refuse(run, RUN_SESSION_BUSY, text);
}

/* How long the call may wait behind calls that are no jobs. */
static uint64_t
most_wait_ms(const struct tool_run *run)
{
	uint32_t half = run->limits.wall_ms / 2, most = CALL_WAIT_MS;

	if (run->arguments.inspect)
		most = run->turn.session && repl_session_will_show(run->turn.session)
			? JOB_WAIT_MS : LOOK_WAIT_MS;
	return half < most ? half : most;
}

/* While a job or a long call runs, its session is inspected as it was before: the copy that waits
 * has this state, too. */
static bool
answer_seen(struct tool_run *run, const struct repl_session *session)
{
	const char *job;
	const struct outcome *seen = repl_session_seen(session, &job);
	struct repl_told told;

	if (!seen)
		return false;
	repl_tell(session, &told);
	repl_tell_more(&told, "This is the state before %s%s, which runs now.",
		       job ? "job " : "another call", job ? job : "");
	told.text_tokens = run->arguments.text_tokens;
	run_repl_answer(seen, &told, &run->host);
	repl_session_leave(&run->turn, false);
	repl_run_free(run);
	return true;
}

/* The call has waited long enough: an answer is of more use to a model than a progress message, and
 * many clients give up after a minute. */
static void
on_impatient(evutil_socket_t, short, void *arg)
{
	struct tool_run *run = arg;
	char text[TOOL_WAITS_MAX];
	uint64_t waited = clock_ms() - run->waits_since_ms, most = most_wait_ms(run);

	if (run->orphan || run->host.job || !run_repl_waits(run, text, sizeof(text)))
		return;
	if (run->arguments.inspect && run->step == STEP_TURN &&
	    answer_seen(run, run->turn.session))
		return;
	if (waited < most && (run->arguments.inspect || !job_before(run))) {
		repl_run_wait(run, most - waited <= JOB_WAIT_MS ? WAIT_STEP_MS : JOB_WAIT_MS);
	} else if (run->step == STEP_TURN) {
		repl_run_refuse_busy(run);
	} else if (run->step != STEP_NEEDS && run->execution &&
		   !script_tools_waits(&run->tools, text, sizeof(text))) {
		run->impatient = true;
		execution_cancel(run->execution, CANCEL_BY_CLIENT);
	}
}

void
repl_run_say_wait(struct tool_run *run)
{
	char text[TOOL_WAITS_MAX];
	struct tool_progress note = { .message = text, .is_note = true };
	uint64_t most;

	if (run->orphan || !run_repl_waits(run, text, sizeof(text)))
		return;
	if (run->host.on_progress)
		run->host.on_progress(run->host.arg, &note);
	if (run->host.job)
		return;
	if (!run->patience) {
		run->patience = xalloc_check(evtimer_new(run->host.base, on_impatient, run));
		run->waits_since_ms = clock_ms();
	}
	most = most_wait_ms(run);
	repl_run_wait(run, most < WAIT_STEP_MS ? most
			   : most < JOB_WAIT_MS ? WAIT_STEP_MS : JOB_WAIT_MS);
}

/* ---- an approval ---- */

static void
run_repl_tell_job(struct tool_run *run, const struct tool_host *job, const char *waits,
		  const struct tool_host *caller)
{
	struct repl_told told;

	repl_tell(run ? run->turn.session : NULL, &told);
	if (run) {
		run->host = *job;
		run->turn.job = job->job;
	}
	run_repl_answer_job(job->job, waits, run && run->execution, &told, caller);
}

/* ---- start ---- */

static int
check_together(const struct run_script_arguments *arguments, struct why *why_r)
{
	const char *field = arguments->branch ? "branch" : arguments->restore ? "restore"
			  : arguments->reset ? "reset"
			  : arguments->inspect ? "inspect" : NULL;

	if (field && !arguments->session)
		return why_say(why_r, -EINVAL, field, "%s needs a session", field);
	if (arguments->inspect &&
	    ((arguments->script && *arguments->script) || arguments->checkpoint ||
	     arguments->restore || arguments->branch || arguments->reset || arguments->close ||
	     arguments->dependencies || arguments->files.n > 0 || arguments->volume))
		return why_say(why_r, -EINVAL, "inspect", "inspect only looks: it goes with session "
			       "and limits alone");
	if (arguments->reset && (arguments->branch || arguments->restore))
		return why_say(why_r, -EINVAL, "reset", "reset leaves nothing to %s",
			       arguments->branch ? "branch from" : "restore");
	return 0;
}

static int
refuse_unknown(const struct tool_run *run, const char **reason_r, struct why *why_r)
{
	const char *text = repl_session_end_text(run->host.tenant, run->arguments.session);

	*reason_r = RUN_NO_SESSION;
	if (text)
		return why_say(why_r, -ESRCH, "session", "there is no such session any more: %s; "
			       "a call without session begins one", text);
	return why_say(why_r, -ESRCH, "session", "there is no such session: it was closed, "
		       "it expired, or it never was; a call without session begins one");
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
		r = repl_run_begin_with_needs(run, arguments->profile, why_r);
		*reason_r = repl_run_reason(r);
		return r;
	}
	session = repl_session_find(run->host.tenant, arguments->session);
	if (!session)
		return refuse_unknown(run, reason_r, why_r);
	if (repl_run_only_closes(arguments)) {
		repl_session_enter_to_close(session, &run->turn);
		return 0;
	}
	if (arguments->inspect)
		repl_session_watch(session);
	if (arguments->inspect && answer_seen(run, session))
		return 0;
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
	run->input.tool = run_repl_tool.name;
	run->turn = repl_run_turn(run);
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
		repl_run_refuse(run, reason, why.text);
		return NULL;
	}
	repl_run_say_wait(run);
	return run;
}

/* Names the session as well: nobody else could tell a client which one its job has begun. */
static void
answer_started(const struct tool_host *host, const char *handle)
{
	const struct job *job = background_find(host->tenant, handle);
	const struct tool_run *run = job ? background_run(job) : NULL;
	struct repl_told told;

	repl_tell(run ? run->turn.session : NULL, &told);
	run_repl_answer_job(handle, NULL, true, &told, host);
}

static struct tool_run *
run_repl_start(const struct tool_host *host, const json_t *json)
{
	struct why why = { .field = "" };
	const char *job;
	int r;

	if (!background_wanted(json))
		return start_here(host, json);
	if (host->job) {
		json_auto_t *own = background_arguments(host, json);

		return start_here(host, own);
	}
	r = background_start(host, &run_repl_tool, json, &job, &why);
	if (r == 0)
		answer_started(host, job);
	else if (r < 0)
		run_repl_refuse(RUN_TOO_MANY_JOBS, why.text, NULL, host);
	return NULL;
}

static void
run_repl_cancel(struct tool_run *run, enum cancel_reason reason)
{
	run->orphan = true;
	/* A job that is over may be forgotten before its cell has ended. */
	run->turn.job = run->source.job = NULL;
	script_tools_end(&run->tools);
	if (run->step == STEP_TURN || run->step == STEP_NEEDS) {
		if (run->needs)
			needs_cancel(run->needs, reason);
		repl_session_leave(&run->turn, false);
		repl_run_free(run);
		return;
	}
	if (!run->execution)
		return;
	script_input_end(&run->input, &run->host, execution_id(run->execution));
	execution_cancel(run->execution, reason);
}

static void
run_repl_reply(struct tool_run *run, const struct tool_reply *replies, size_t n, const char *)
{
	if (run->needs)
		needs_reply(run->needs, replies);
	else if (run->execution)
		script_tools_reply_to(&run->tools, run->execution, replies, n);
}

static bool
run_repl_uses(struct tool_run *run, struct execution_now *now_r)
{
	return run->execution && execution_uses(run->execution, now_r);
}

static void
refuse_call(const char *reason, const char *text, const struct tool_host *host)
{
	run_repl_refuse(reason, text, NULL, host);
}

const struct tool run_repl_tool = {
	.name = "run_repl",
	.view = VIEW_URI,
	.policy = "run_repl",
	.refuse = refuse_call,
	.long_status = "the cell is running",
	.describe = run_repl_describe_tool,
	.start = run_repl_start,
	.cancel = run_repl_cancel,
	.uses = run_repl_uses,
	.waits = run_repl_waits,
	.answer_job = run_repl_tell_job,
	.reply = run_repl_reply,
	.once = run_script_once,
	.bind = run_script_bind,
};
