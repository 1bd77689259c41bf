/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: calls of run_repl from the start of their cell on, and the
 * end of calls without a cell. */
#include "tools/repl/run_repl_parts.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <event2/event.h>

#include "policy/config.h"
#include "tools/script/run_script.h"
#include "tools/shared/resources.h"

#define MIB (1024 * 1024)

/* ---- the end of a call ---- */

void
repl_run_free(struct tool_run *run)
{
	assert(!run->turn.session && !run->source.session);
	run_script_arguments_done(&run->arguments);
	json_decref(run->json);
	outcome_copy_free(run->outcome);
	outcome_copy_free(run->seen);
	if (run->patience)
		event_free(run->patience);
	json_decref(run->packages);
	found_done(&run->found);
	if (run->over)
		*run->over = true;
	free(run);
}

/* Releases its sessions. A new session whose client has left is closed. */
void
repl_run_leave(struct tool_run *run, bool closes, bool used)
{
	repl_session_leave(&run->source, true);
	if (!run->turn.session)
		return;
	if (closes)
		repl_session_close(&run->turn);
	else
		repl_session_leave(&run->turn, used);
}

static void
tell_memory(const struct tool_run *run, struct repl_told *told)
{
	if (run->had_memory > 0)
		repl_tell_more(told, "Its memory_mb is %llu from now on; it was %llu.",
			       (unsigned long long)(run->limits.memory_bytes / MIB),
			       (unsigned long long)(run->had_memory / MIB));
}

/* Nothing was run, and the run is over. */
void
repl_run_refuse(struct tool_run *run, const char *reason, const char *text)
{
	struct tool_host host = run->host;
	bool orphan = run->orphan;
	struct repl_told told;

	repl_tell(run->began ? NULL : run->turn.session, &told);
	if (run->source.session)
		repl_tell(run->source.session, &told);
	tell_memory(run, &told);
	if (run->turn.session && repl_session_is_closing(run->turn.session))
		told = (struct repl_told){ .state = NULL };
	repl_run_leave(run, run->began, true);
	/* The arguments live until the text was written, because it may quote them. */
	if (!orphan)
		run_repl_refuse(reason, text, &told, &host);
	repl_run_free(run);
}

const char *
repl_run_reason(int error)
{
	return error == -ENOSPC ? RUN_SESSION_LIMIT :
	       error == -EBUSY ? RUN_SESSION_BUSY :
	       error == -EDQUOT ? TOOL_QUOTA_EXCEEDED :
	       error == -EPERM ? TOOL_DENIED :
	       error == -EIO ? TOOL_AUDIT_UNAVAILABLE :
	       error == -ESRCH ? RUN_NO_SESSION : RUN_INVALID_ARGUMENTS;
}

/* Has the session lost every state that a later call could use? */
static bool
is_spent(const struct repl_session *session)
{
	return !session || (!repl_session_has_state(session) &&
			    !repl_session_checkpoint_name(session, 0));
}

/* A client that did not wait gets this with the next answer. */
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
	told->text_tokens = run->arguments.text_tokens;
	told->changes = run->began || run->arguments.reset || run->arguments.restore ||
			run->arguments.checkpoint;
	if (!run->arguments.inspect || outcome->status != OUTCOME_OK)
		repl_tell_outcome(outcome, told);
	tell_memory(run, told);
	if (outcome->status == OUTCOME_TIMEOUT && run->waited_ms >= 1000)
		repl_tell_more(told, "It had waited %u s for its turn, which is a part of its time.",
			       run->waited_ms / 1000);
	repl_run_tell_files(run, told);
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

/* The cell has ended, and its checkpoint was made or not. The run is over. */
void
repl_run_finish(struct tool_run *run, const struct outcome *outcome)
{
	struct repl_session *session = run->turn.session;
	struct tool_host host = run->host;
	bool spent = is_spent(session);
	bool closing = session && repl_session_is_closing(session);
	/* A session that never ran anything is closed, and one whose handle nobody got. That of a
	 * job was in the answer that named the job. */
	bool closes = spent || run->arguments.close ||
		      (run->began && ((run->orphan && !run->host.job) ||
				      outcome->state == STATE_NONE));
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
	repl_run_leave(run, closes, true);
	if (!run->orphan) {
		resources_keep(host.config, host.tenant, outcome);
		run_repl_answer(outcome, &told, &host);
	}
	repl_run_free(run);
}

/* Closes without running anything. */
void
repl_run_close(struct tool_run *run)
{
	const struct outcome outcome = {
		.status = OUTCOME_OK, .exit_code = -1, .transcript = "", .message = "closed",
		.stream = { { .text = "" }, { .text = "" } }, .limits = &run->limits,
	};
	struct repl_told told = { .state = "closed" };

	repl_run_leave(run, true, true);
	run_repl_answer(&outcome, &told, &run->host);
	repl_run_free(run);
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
	if (error == 0)
		repl_run_keep_files(run);
	else
		repl_run_finish(run, outcome_copy_get(run->outcome));
}

static void
make_checkpoint(struct tool_run *run, const struct outcome *outcome)
{
	struct repl_session *session = run->turn.session;

	run->step = STEP_CHECKPOINT;
	run->outcome = outcome_copy_new(outcome);
	repl_copy(session->origin->repl, session->snapshot,
		  (unsigned int)run->checkpoint, on_checkpointed, run);
}

/* ---- the cell ---- */

static void
run_repl_cell_on_output(void *arg, enum stream stream, const char *bytes, size_t len)
{
	struct tool_run *run = arg;

	if (!run->orphan && run->host.on_output)
		run->host.on_output(run->host.arg, stream, bytes, len);
}

static void
run_repl_cell_on_outcome(void *arg, const struct outcome *outcome)
{
	struct tool_run *run = arg;
	struct repl_session *session = run->turn.session;

	script_tools_end(&run->tools);
	run->execution = NULL;
	if (!run->orphan)
		script_input_end(&run->input, &run->host, outcome->id);
	if (session && run->checkpoint >= 0) {
		if (outcome->status == OUTCOME_OK && outcome->state == STATE_COMMITTED &&
		    !run->orphan) {
			make_checkpoint(run, outcome);
			return;
		}
		repl_session_unreserve(session, (unsigned int)run->checkpoint);
	}
	run->checkpoint = -1;
	if (run->impatient && !run->orphan && outcome->state == STATE_NONE)
		repl_run_refuse_busy(run);
	else
		repl_run_finish(run, outcome);
}

static void
run_repl_cell_on_prompt(void *arg, unsigned int number, const char *prompt, size_t len)
{
	struct tool_run *run = arg;

	if (run->orphan)
		execution_answer_prompt(run->execution, NULL, 0);
	else if (script_tools_asks(&run->tools))
		script_input_keep(&run->input, number, prompt, len);
	else
		script_input_ask(&run->input, &run->host, run->execution, number, prompt, len);
}

static void
run_repl_cell_on_tool(void *arg, const struct execution_tool *tool)
{
	struct tool_run *run = arg;

	if (run->orphan)
		execution_answer_tool(run->execution, tool->number, TOOL_REFUSED, "", 0);
	else
		script_tools_call(&run->tools, run->execution, tool);
}

static void
run_repl_cell_on_module(void *arg, const struct execution_module *module)
{
	struct tool_run *run = arg;
	const struct repl_packages *has = NULL;

	if (run->turn.session)
		has = repl_session_packages(run->turn.session);
	if (run->orphan || !run->turn.session)
		execution_answer_module(run->execution, NULL);
	else
		found_answer(&run->found, &run->host, run->execution, module,
			     has ? has->set : NULL);
}

/* The set that an import of the cell has found is mounted: the session now has its packages. */
static void
run_repl_cell_on_mounted(void *arg)
{
	struct tool_run *run = arg;

	if (run->turn.session)
		repl_session_set_packages(run->turn.session, &(struct repl_packages){
			run->found.name, run->found.set });
}

/* ---- a look before it ---- */

#define LOOK_MS 5000
#define LONG_MS 60000		/* a call that may take longer is looked at before, like a job */

static void
on_looked(void *arg, const struct outcome *outcome)
{
	struct tool_run *run = arg;

	run->execution = NULL;
	if (run->impatient && !run->orphan) {
		repl_run_refuse_busy(run);
		return;
	}
	if (run->orphan || !run->turn.session || outcome->status == OUTCOME_CANCELLED) {
		repl_run_finish(run, outcome);
		return;
	}
	run->seen = outcome_copy_new(outcome);
	if (outcome->status == OUTCOME_OK)
		repl_session_show(&run->turn, outcome_copy_get(run->seen));
	repl_run_cell_or_refuse(run);
}

/* Is the cell one that others may have to wait for, so that they want to see its session? A list
 * takes longer than a short cell: for that, somebody has to have looked behind the cell before. A
 * notebook, to which output comes as it is written, allows each of its cells a long time. */
static bool
is_to_be_looked_at(const struct tool_run *run)
{
	bool is_long = run->limits.wall_ms > LONG_MS &&
		       !(run->host.client & CLIENT_SHOWS_OUTPUT);
	bool watched = repl_session_was_watched(run->turn.session);

	return !run->seen && run->arguments.script_len > 0 &&
	       (run->host.job || ((watched || is_long) && !run->began)) &&
	       !repl_session_is_alone(run->turn.session);
}

/* Starts a copy of the head's process that follows an order of the service, within ms. "" lists the
 * variables. */
static int
start_own(struct tool_run *run, const struct repl_session *session, enum step step,
	  const char *order, uint64_t ms,
	  void (*on_outcome)(void *arg, const struct outcome *outcome), struct why *why_r)
{
	const struct execution_watcher watcher = { .on_outcome = on_outcome, .arg = run };
	struct execution_request request = {
		.script = order,
		.script_len = strlen(order),
		.network = &run->host.config->network,
		.limits = run->limits,
		.repl = session->origin->repl,
		.snapshot = session->snapshot,
		.inspect = true,
		.internal = true,
	};
	int r;

	request.limits.wall_ms = request.limits.cpu_ms = ms;
	run->step = step;
	r = execution_start(run->host.engine, run->host.tenant, &request, &watcher,
			    &run->execution, why_r);
	if (r >= 0)
		repl_run_say_wait(run);
	return r;
}

/* ---- its start ---- */

/* Sets the number of the cell, and its questions: for input, for modules, for calls of tools. */
static void
offer_cell(struct tool_run *run, struct execution_request *request)
{
	request->cell = repl_session_number_cell(run->turn.session,
						 request->script_len == 0);
	script_input_offer(&run->host, request);
	found_offer(&run->host, request);
	script_tools_offer(&run->tools, &run->host, &run->input, request);
}

/* 0, or negative with why_r: then nothing runs. */
int
repl_run_cell(struct tool_run *run, struct why *why_r)
{
	struct run_script_arguments *arguments = &run->arguments;
	struct repl_session *session = run->turn.session;
	const struct execution_watcher watcher = {
		.on_output = run->host.on_output || run->host.config->n_tools > 0
				     ? run_repl_cell_on_output : NULL,
		.on_outcome = run_repl_cell_on_outcome,
		.on_prompt = run_repl_cell_on_prompt,
		.on_module = run_repl_cell_on_module,
		.on_tool = run_repl_cell_on_tool,
		.on_mounted = run_repl_cell_on_mounted,
		.arg = run,
	};
	struct execution_request request = {
		.script = arguments->script ? arguments->script : "",
		.script_len = arguments->script_len,
		.spill = arguments->spill,
		.patient = run->host.job != NULL,
		.network = &run->host.config->network,
		.limits = run->limits,
		.repl = session->origin->repl,
		.snapshot = session->snapshot,
		.background = run->host.config->repl.background,
		.background_ms = run->host.config->repl.background_ms,
	};
	int r = 0;

	if (repl_session_is_closing(session))
		return why_say(why_r, -ESRCH, "session", "the session was closed");
	run->turn.looks = is_to_be_looked_at(run);
	if (run->turn.looks)
		return start_own(run, session, STEP_LOOK, "", LOOK_MS, on_looked, why_r);
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
		request.volume = arguments->volume;
		request.folder = true;
		request.inspect = arguments->inspect;
		if (!request.inspect)
			offer_cell(run, &request);
		r = execution_start(run->host.engine, run->host.tenant, &request, &watcher,
				    &run->execution, why_r);
	}
	if (r < 0 && run->checkpoint >= 0)
		repl_session_unreserve(session, (unsigned int)run->checkpoint);
	if (r >= 0)
		repl_run_say_wait(run);
	return r;
}

void
repl_run_cell_or_refuse(struct tool_run *run)
{
	struct why why = { .field = "" };
	int r = repl_run_cell(run, &why);

	if (r < 0)
		repl_run_refuse(run, repl_run_reason(r), why.text);
}

/* ---- files of checkpoints and branches ---- */

#define FILES_MS 10000		/* the time that copying may take */

/* What the copying process reports, and the end of a sentence. */
static const struct {
	const char *word, *because;
} files_left[] = {
	{ "\"large\"", "they are more than may be copied" },
	{ "\"changed\"", "they changed while they were copied" },
	{ "\"late\"", "copying them took too long" },
	{ "\"none\"", "the checkpoint has none" },
};

const char *
repl_run_files_left(const struct outcome *outcome)
{
	const char *word = outcome->status == OUTCOME_TIMEOUT ? "\"late\"" :
			   outcome->status != OUTCOME_OK || !outcome->value_json
			   ? "" : outcome->value_json;

	for (size_t i = 0; i < sizeof(files_left) / sizeof(files_left[0]); i++)
		if (strcmp(word, files_left[i].word) == 0)
			return files_left[i].because;
	return strcmp(word, "\"copied\"") == 0 ? NULL : "there was no memory for a copy";
}

/* A copy of the state's process copies the files (worker/checkpoints.py), so nothing of this is
 * trusted: the result is only told. */
int
repl_run_copy_files(struct tool_run *run, const struct repl_session *session, const char *order,
		    void (*done)(void *arg, const struct outcome *outcome), struct why *why_r)
{
	return start_own(run, session, STEP_FILES, order, FILES_MS, done, why_r);
}

static void
on_kept(void *arg, const struct outcome *outcome)
{
	struct tool_run *run = arg;

	run->execution = NULL;
	run->files_unkept = repl_run_files_left(outcome);
	repl_run_finish(run, outcome_copy_get(run->outcome));
}

void
repl_run_keep_files(struct tool_run *run)
{
	struct why why = { .field = "" };
	char order[32];

	run->files_unkept = "they could not be copied";
	snprintf(order, sizeof(order), "keep %d", run->checkpoint);
	if (run->orphan || !run->turn.session ||
	    repl_run_copy_files(run, run->turn.session, order, on_kept, &why) < 0)
		repl_run_finish(run, outcome_copy_get(run->outcome));
}

void
repl_run_tell_files(const struct tool_run *run, struct repl_told *told)
{
	if (run->arguments.branch && !run->files_left)
		repl_tell_more(told, "It has variables and files of its own.");
	else if (run->arguments.branch)
		repl_tell_more(told, "It has variables of its own, and shares /workspace with the "
			       "session that it is a copy of: the files were not copied, because "
			       "%s.", run->files_left);
	else if (run->files_left)
		repl_tell_more(told, "Files in /workspace were not restored, or not all of them, "
			       "because %s.", run->files_left);
	if (run->files_unkept)
		repl_tell_more(told, "The checkpoint has variables alone: the files in /workspace "
			       "were not copied, because %s.", run->files_unkept);
}
