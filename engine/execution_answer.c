/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the texts of an execution's answer while it is delivered. */
#include "engine/execution_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/trace.h"
#include "base/utf8.h"
#include "base/xalloc.h"
#include "engine/engine_parts.h"
#include "engine/execution_modules.h"
#include "engine/execution_tools.h"
#include "policy/imports.h"

static char *
answer_copy(const char *bytes, size_t len)
{
	char *at = xmalloc(len + 1);

	if (len > 0)
		memcpy(at, bytes, len);
	at[len] = '\0';
	return at;
}

/* Strings of a frame have no terminating NUL, and the watcher wants C strings. */
static char *
answer_text_of(bool has, const struct msg_str *str)
{
	return has ? answer_copy(str->at, str->len) : NULL;
}

struct done_texts {
	char *value_repr, *value_json, *error_type, *error_message, *error_traceback;
	char *names;
};

static void
take_done(const struct execution *e, struct done_texts *t, struct outcome *outcome)
{
	const struct msg_done *done = &e->done.msg.done;

	*t = (struct done_texts){ 0 };
	if (!e->facts.has_done)
		return;
	t->value_repr = answer_text_of(done->has_value_repr, &done->value_repr);
	t->value_json = answer_text_of(done->has_value_json, &done->value_json);
	t->error_type = answer_text_of(done->has_error_type, &done->error_type);
	t->error_message = answer_text_of(done->has_error_message, &done->error_message);
	t->error_traceback = answer_text_of(done->has_error_traceback, &done->error_traceback);
	t->names = answer_text_of(done->has_names && e->request.tell_names, &done->names);
	outcome->value_repr = t->value_repr;
	outcome->value_json = t->value_json;
	outcome->value_cut = done->has_value_cut && done->value_cut;
	outcome->value_converted = done->has_value_exact && !done->value_exact;
	outcome->names = t->names;
	outcome->error_type = t->error_type;
	outcome->error_message = t->error_message;
	outcome->error_traceback = t->error_traceback;
	outcome->error_line = done->has_error_line ? done->error_line : 0;
	outcome->undisplayed = done->has_undisplayed ? done->undisplayed : 0;
}

/* Replaces the traceback by the reported stacks: the script ended without a traceback. */
static void
take_where(const struct execution *e, struct done_texts *t, struct outcome *outcome)
{
	const struct msg_where *where = &e->where.msg.where;

	if (e->where.body == NULL || e->facts.has_done ||
	    (outcome->status != OUTCOME_TIMEOUT && outcome->status != OUTCOME_CPU_LIMIT &&
	     outcome->status != OUTCOME_CRASHED))
		return;
	t->error_traceback = answer_text_of(true, &where->text);
	outcome->error_traceback = t->error_traceback;
	outcome->error_line = where->has_line ? where->line : 0;
}

static void
free_done(struct done_texts *t)
{
	free(t->value_repr);
	free(t->value_json);
	free(t->error_type);
	free(t->error_message);
	free(t->error_traceback);
	free(t->names);
}

/* An answer has at most the notes of the cell's process, one note about processes that were ended,
 * and one about what the session lost before the cell began. */
#define NOTES_OF_CELL (NOTES_MAX + 2)

static char *
note_of_fall(int status)
{
	return xasprintf("since the last cell the session's process has ended (%s %d): what "
			 "earlier cells had started has ended too, and variables are as that cell "
			 "left them",
			 WIFEXITED(status) ? "exit status" : "signal",
			 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

static const char held_up[] = "the cell did not begin, because the session's process did not answer: as a rule "
			      "a thread of an earlier cell does not let go of the interpreter's lock (GIL); when three cells in a row "
			      "did not begin, the session goes back to the end of the last one that did, or is lost if there is no copy of that";

static const char unnamed[] = "the cell was ended before it had begun: threads and connections of earlier cells, if "
			      "there were any, have ended";

/* Makes the notes about what the session has lost with the cell. Returns their number. The texts
 * belong to the caller. */
static size_t
make_notes(const struct execution *e, char *note_r[NOTES_OF_CELL])
{
	const struct msg_at_stake *stake = &e->stake.msg.at_stake;
	size_t n = 0;

	if (e->became == STATE_ROLLED_BACK && e->stake.body != NULL && stake->has_notes)
		for (size_t i = 0; i < stake->notes.n; i++)
			note_r[n++] =
				answer_copy(stake->notes.item[i].at, stake->notes.item[i].len);
	if (e->processes_ended > 0 && e->became != STATE_LOST)
		note_r[n++] = xasprintf("%u %s that cells had started %s ended", e->processes_ended,
					e->processes_ended == 1 ? "process" : "processes",
					e->processes_ended == 1 ? "was" : "were");
	if (e->fell)
		note_r[n++] = note_of_fall(e->fell_status);
	else if (e->held_up)
		note_r[n++] = answer_copy(held_up, strlen(held_up));
	else if (e->became == STATE_ROLLED_BACK && e->stake.body == NULL && !e->not_made &&
		 !e->request.inspect)
		note_r[n++] = answer_copy(unnamed, strlen(unnamed));
	return n;
}

/* Puts the output of threads of earlier cells into the outcome. The texts belong to the caller. */
static void
answer_take_background(struct execution *e, struct output_text text_r[STREAM_COUNT],
		       struct outcome *outcome)
{
	for (int i = 0; i < STREAM_COUNT; i++) {
		text_r[i] = output_stream_text(&e->background, (enum stream)i);
		outcome->background[i] = (struct outcome_stream){
			.text = text_r[i].text, .len = text_r[i].len };
	}
}

/* Makes the list of refused imports, as make_notes. The report of a script that had no list of
 * modules is ignored. */
static size_t
make_refused(const struct execution *e, char *refused_r[REFUSED_IMPORTS_MAX])
{
	const struct msg_done *done = &e->done.msg.done;
	size_t n = 0;

	if (!e->facts.has_done || !done->has_refused_imports || e->request.imports.item == NULL)
		return 0;
	for (; n < done->refused_imports.n; n++) {
		const struct msg_str *name = &done->refused_imports.item[n];

		refused_r[n] = answer_copy(name->at, name->len <= IMPORT_NAME_MAX ? name->len :
					   IMPORT_NAME_MAX - utf8_begun(name->at, IMPORT_NAME_MAX));
	}
	return n;
}

static struct engine_event
event_of(struct execution *e)
{
	const struct config_profile *profile = &e->engine->config->profile[e->profile];

	return (struct engine_event){
		.hold = &e->hold,
		.tenant = e->tenant,
		.id = e->id,
		.script = e->request.script.at,
		.script_len = e->request.script.len,
		.profile = profile->name,
		/* The disk of a session was charged with the session, not with the cell. */
		.disk_bytes = e->item.kind == SCHED_CELLS ? 0
			      : e->facts.disk_bytes < e->limits.memory_bytes
			      ? e->facts.disk_bytes : e->limits.memory_bytes,
		.limits = &e->limits,
		.internal = e->request.internal,
		.is_cell = e->item.kind == SCHED_CELLS,
		.waited_us = execution_waited_us(e), .ran_us = execution_ran_us(e),
	};
}

int
execution_announce(struct execution *e, struct why *why_r)
{
	const struct engine_observer *observer = e->engine->options.observer;
	struct engine_event event = event_of(e);
	int r = observer != NULL ? observer->on_start(observer->arg, &event, why_r) : 0;

	e->observed = observer != NULL && r == 0;
	return r;
}

/* Tells the observer, the caller, and the observer again. */
static void
answer_tell(struct execution *e, const struct outcome *outcome)
{
	const struct engine_observer *observer = e->engine->options.observer;
	struct engine_event event = event_of(e);

	if (e->observed) {
		execution_charge(e);
		observer->on_end(observer->arg, &event, outcome);
	}
	if (e->watcher.on_outcome != NULL)
		e->watcher.on_outcome(e->watcher.arg, outcome);
	if (e->observed)
		observer->on_answered(observer->arg, &event, outcome);
}

void
execution_answer(struct execution *e)
{
	char *note[NOTES_OF_CELL], *refused[REFUSED_IMPORTS_MAX];
	const char *found[MODULES_OF_RUN_MAX];
	struct output_text text[STREAM_COUNT], background[STREAM_COUNT], transcript = { 0 };
	struct outcome_verdict verdict;
	struct outcome_part *part;
	struct done_texts texts;
	struct outcome outcome = { .id = e->id, .limits = &e->limits };
	const int only = output_only(&e->output);

	take_done(e, &texts, &outcome);
	e->facts.error_type = texts.error_type;
	e->facts.error_message = texts.error_message;
	e->facts.error_traceback = texts.error_traceback;
	outcome.volume_lost = execution_mounts_lost(&e->mounts);
	outcome.network_lost = e->network_lost;
	outcome_decide(&e->facts, &verdict);
	outcome.status = verdict.status;
	trace_line(e->serial, "decision=outcome status=%s", outcome_status_name(verdict.status));
	outcome.exit_code = verdict.exit_code;
	outcome.signal = verdict.signal;
	outcome.message = verdict.message;
	take_where(e, &texts, &outcome);
	if (only < 0)
		transcript = output_transcript(&e->output);
	for (int i = 0; i < STREAM_COUNT; i++) {
		text[i] = output_stream_text(&e->output, (enum stream)i);
		outcome.stream[i] = (struct outcome_stream){
			.text = text[i].text,
			.len = text[i].len,
			.written = e->output.stream[i].written,
			.dropped = text[i].dropped,
		};
	}
	answer_take_background(e, background, &outcome);
	outcome.transcript = only < 0 ? transcript.text : text[only].text;
	outcome.transcript_len = only < 0 ? transcript.len : text[only].len;
	outcome.part = part = output_parts(&e->output, &outcome.n_parts);
	results_show(&e->results, &outcome);
	tools_show(e->tools, &outcome);
	outcome.state = e->became;
	outcome.n_notes = make_notes(e, note);
	outcome.note = (const char *const *)note;
	outcome.n_refused_imports = make_refused(e, refused);
	outcome.refused_import = (const char *const *)refused;
	outcome.n_found_modules = modules_found(e->modules, found, &outcome.environment);
	outcome.found_module = found;
	outcome.duration_ms = (execution_ran_us(e) + 500) / 1000;
	outcome.cpu_ms = e->facts.cpu_ms;
	outcome.cpu_us = e->facts.cpu_us;
	outcome.peak_memory_bytes = e->facts.peak_memory_bytes;
	outcome.made_ready = e->made_ready;
	outcome.retry_after_ms = e->retry_after_ms;
	answer_tell(e, &outcome);
	for (int i = 0; i < STREAM_COUNT; i++) {
		free(text[i].text);
		free(background[i].text);
	}
	free(transcript.text);
	free(part);
	for (size_t i = 0; i < outcome.n_notes; i++)
		free(note[i]);
	for (size_t i = 0; i < outcome.n_refused_imports; i++)
		free(refused[i]);
	free_done(&texts);
}
