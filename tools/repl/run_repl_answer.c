/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * The parts of run_repl's answers that run_script's lack.
 * Reads:   the notes of an outcome, which a worker wrote. */
#include "tools/repl/run_repl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonout.h"
#include "tools/shared/readable.h"

#define BACKGROUND_SAID 2000	/* bytes of a stream, in the text */
#define WHAT_IS_KEPT "What the cell did until then is kept."

void
repl_tell(const struct repl_session *session, struct repl_told *told_r)
{
	const char *name;

	*told_r = (struct repl_told){ .state = NULL };
	if (!session)
		return;
	snprintf(told_r->handle, sizeof(told_r->handle), "%s",
		 session->handle);
	repl_session_expires(session, told_r->expires);
	while ((name = repl_session_checkpoint_name(session, told_r->n_checkpoints)))
		snprintf(told_r->checkpoint[told_r->n_checkpoints++], REPL_NAME_MAX + 1, "%s",
			 name);
	if (session->note)
		repl_tell_more(told_r, "%s", session->note);
	if (repl_session_is_alone(session))
		repl_tell_more(told_r, "It has no snapshots (snapshot: false): a time-out, a "
			       "crash or a limit loses it.");
}

void
repl_tell_more(struct repl_told *told, const char *format, ...)
{
	size_t len = strlen(told->text);
	va_list args;

	if (len > 0 && len < sizeof(told->text) - 1)
		told->text[len++] = ' ';
	va_start(args, format);
	vsnprintf(told->text + len, sizeof(told->text) - len, format, args);
	va_end(args);
}

void
repl_tell_outcome(const struct outcome *outcome, struct repl_told *told)
{
	told->outcome = outcome;
	switch (outcome->state) {
	case STATE_NONE:
		repl_tell_more(told, "Nothing was run; the session is as it was.");
		break;
	case STATE_COMMITTED:
		told->state = "kept";
		if (outcome->status != OUTCOME_OK)
			repl_tell_more(told, WHAT_IS_KEPT);
		break;
	case STATE_ROLLED_BACK:
		told->state = "rolled_back";
		repl_tell_more(told, "The cell was undone: variables are as before it; what it "
			       "wrote to files is not undone.");
		break;
	case STATE_LOST:
		told->state = "lost";
		repl_tell_more(told, "The state of the session is lost.");
		break;
	}
}

/* ---- writing ---- */

/* Has the cell ended by sys.exit()? A cell that calls os._exit() is undone, and does not count. */
static bool
has_exited(const struct outcome *outcome)
{
	return outcome->state == STATE_COMMITTED && outcome->error_type &&
	       strcmp(outcome->error_type, "SystemExit") == 0;
}

static const char *const background[] = { "background_stdout", "background_stderr" };

static void
write_told(const void *arg, struct jsonout *out)
{
	const struct repl_told *told = arg;

	jsonout_member_text(out, "session", *told->handle ? told->handle : NULL);
	jsonout_member_text(out, "expires", *told->expires ? told->expires : NULL);
	jsonout_member_text(out, "state", told->state);
	jsonout_member_text(out, "state_text", *told->text ? told->text : NULL);
	if (told->outcome && has_exited(told->outcome))
		jsonout_member_bool(out, "exited", true);
	for (size_t i = 0; told->outcome && i < STREAM_COUNT; i++)
		if (told->outcome->background[i].len > 0)
			jsonout_member_string(out, background[i],
					      told->outcome->background[i].text,
					      told->outcome->background[i].len);
	jsonout_member_open(out, "not_carried", '[');
	for (size_t i = 0; told->outcome && i < told->outcome->n_notes; i++)
		jsonout_text(out, told->outcome->note[i], strlen(told->outcome->note[i]));
	jsonout_close(out, ']');
	jsonout_member_open(out, "checkpoints", '[');
	for (size_t i = 0; i < told->n_checkpoints; i++)
		jsonout_text(out, told->checkpoint[i], strlen(told->checkpoint[i]));
	jsonout_close(out, ']');
}

static void
say_background(FILE *to, const char *name, const struct outcome_stream *stream)
{
	/* The structured answer has the whole. */
	static const struct reader no_reader = { .execution_id = NULL };
	const struct readable readable = { .text = stream->text, .len = stream->len,
					   .has_frames = true };

	if (stream->len == 0)
		return;
	fprintf(to, "%s: ", name);
	readable_say(to, &readable, BACKGROUND_SAID, &no_reader);
	fputc('\n', to);
}

/* Has the cell raised an exception, and is there nothing else to say of the state? */
static bool
is_plain_error(const struct repl_told *told)
{
	return told->outcome && told->outcome->status == OUTCOME_ERROR &&
	       strcmp(told->text, WHAT_IS_KEPT) == 0;
}

static void
say_told(const void *arg, FILE *to)
{
	const struct repl_told *told = arg;

	bool full = told->changes || !told->outcome || told->outcome->status != OUTCOME_OK;

	if (*told->handle && full)
		fprintf(to, "session: %s\n", told->handle);
	if (told->state && strcmp(told->state, "kept") != 0)
		fprintf(to, "state: %s%s%s\n", told->state, *told->text ? ": " : "", told->text);
	else if (*told->text && !is_plain_error(told))
		fprintf(to, "state: %s\n", told->text);
	for (size_t i = 0; told->outcome && i < told->outcome->n_notes; i++)
		fprintf(to, "not carried: %s\n", told->outcome->note[i]);
	for (size_t i = 0; told->outcome && i < STREAM_COUNT; i++)
		say_background(to, background[i], &told->outcome->background[i]);
	for (size_t i = 0; full && i < told->n_checkpoints; i++)
		fprintf(to, "%s%s%s", i ? ", " : "checkpoints: ", told->checkpoint[i],
			i + 1 == told->n_checkpoints ? "\n" : "");
}

void
run_repl_answer(const struct outcome *outcome, struct repl_told *told,
		const struct tool_host *host)
{
	const struct run_supplement supplement = { write_told, say_told, told };

	told->outcome = outcome;
	run_script_answer(outcome, told->text_tokens, &supplement, host);
}

void
run_repl_refuse(const char *reason, const char *text, const struct repl_told *told,
		const struct tool_host *host)
{
	const struct repl_told none = { .state = NULL };
	const struct run_supplement supplement = { write_told, say_told, told ? told : &none };

	run_script_refuse_as(reason, text, &supplement, host);
}

void
run_repl_answer_job(const char *job, const char *waits, bool begun, const struct repl_told *told,
		    const struct tool_host *host)
{
	const struct repl_told none = { .state = NULL };
	const struct run_supplement supplement = { write_told, say_told, told ? told : &none };

	run_script_answer_job(job, waits, begun, &supplement, host);
}
