/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: an answer's texts while it is written.
 * Reads:   an outcome whose texts a script wrote: its JSON is checked before it is sent. */
#include "tools/script/run_script_answer.h"

#include <stdarg.h>
#include <string.h>

#include "base/jsonout.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "mcp/jsonrpc.h"
#include "policy/config.h"
#include "tools/job/background.h"
#include "tools/packages/found.h"
#include "tools/packages/missing.h"
#include "tools/script/script_tools.h"
#include "tools/script/run_script_results.h"
#include "tools/script/schema/run_output.h"
#include "tools/shared/readable.h"
#include "tools/shared/reasons.h"
#include "tools/shared/schema.h"

#define STREAM_COST_MAX (3 * 512 * 1024)	/* bytes as JSON, if an answer gets too long */
#define VALUE_COST_MAX (256 * 1024)
#define FOUND_SAID 12			/* modules, and packages, in the text */

#define SCRIPT (1u << RUN_FOR_SCRIPT)		/* the tools whose answers have it */
#define REPL (1u << RUN_FOR_REPL)
#define BOTH (SCRIPT | REPL)

static const struct {
	const char *status;
	unsigned int tools;
} not_run[] = {
	{ RUN_INVALID_ARGUMENTS, BOTH },
	{ TOOL_DENIED, BOTH },
	{ TOOL_APPROVAL_PENDING, BOTH },
	{ TOOL_QUOTA_EXCEEDED, BOTH },
	{ RUN_DEPENDENCY_UNAVAILABLE, SCRIPT },
	{ RUN_PYTHON_UNAVAILABLE, SCRIPT },
	{ RUN_TOO_MANY_JOBS, BOTH },
	{ RUN_RUNNING, BOTH },
	{ RUN_NO_SESSION, REPL },
	{ RUN_NO_CHECKPOINT, REPL },
	{ RUN_SESSION_LIMIT, REPL },
	{ RUN_SESSION_BUSY, REPL },
};

/* A text that may have been shortened for this answer. */
struct shown {
	const char *at;		/* NULL: there is none */
	size_t len;
	size_t cut;		/* bytes left out at its end */
	size_t unsaid;		/* bytes behind len that the text of the answer has elsewhere */
	bool has_frames;	/* it may have tracebacks, whose frames of libraries are folded */
	uint64_t dropped;	/* bytes of the output that were dropped in its middle */
	const char *note;	/* a line behind what is unsaid that is said; NULL: there is none */
	size_t note_len;
};

/* The content of an answer, from an outcome or from a refusal. */
struct report {
	const struct outcome *outcome;	/* NULL: nothing was run */
	const char *status;
	const char *job;	/* the job that it runs as; NULL: none */
	double job_seconds;	/* and may run so long */
	const char *waits;	/* what the job waits for; NULL: for nothing */
	struct shown stream[STREAM_COUNT];
	struct shown both;	/* the streams in the order of arrival */
	struct shown repr, json, error_type, error_message, traceback;
	uint32_t error_line;
	struct run_results *results;
	size_t results_cost;
	const struct run_supplement *supplement;	/* NULL: none */
	json_t *found;		/* what imports have found (found_describe); NULL: nothing */
	char advice[MISSING_ADVICE];	/* about the error; "": none */
	struct reader reader;
};

static struct shown
answer_shown(const char *text)
{
	return (struct shown){ text, text ? strlen(text) : 0, 0, 0, false, 0, NULL, 0 };
}

/* ---- shortening ---- */

static void
answer_shorten(struct shown *text, size_t budget)
{
	size_t keep = jsonout_fit(text->at, text->len, budget);

	text->cut = text->len - keep;
	text->len = keep;
}

/* Escapes can make a text six times as long, and it is sent twice. */
static void
answer_fit(struct report *report)
{
	struct shown *const texts[] = {
		&report->stream[STREAM_STDOUT], &report->stream[STREAM_STDERR],
		&report->repr, &report->json, &report->error_message, &report->traceback,
	};
	const size_t n = sizeof(texts) / sizeof(*texts);
	const size_t most = RUN_ANSWER_MAX - report->results_cost;
	/* Each is sent twice, and there are two streams and four values. */
	size_t cost = 0, stream_max = (most - 8 * (size_t)VALUE_COST_MAX) / 4;

	for (size_t i = 0; i < n; i++)
		cost += texts[i]->len;
	if (cost * 12 <= most)
		return;
	if (stream_max > STREAM_COST_MAX)
		stream_max = STREAM_COST_MAX;
	cost = 0;
	for (size_t i = 0; i < n; i++)
		cost += 2 * jsonout_cost(texts[i]->at, texts[i]->len);
	if (cost <= most)
		return;
	for (size_t i = 0; i < n; i++)
		answer_shorten(texts[i], i < STREAM_COUNT ? stream_max : VALUE_COST_MAX);
	if (report->json.cut)		/* an incomplete JSON text is useless */
		report->json.at = NULL;
}

/* The script's own process wrote it: it must be one JSON text on one line, else it is left out. */
bool
run_script_is_json(const char *text, size_t len)
{
	json_t *value;

	if (memchr(text, '\r', len) || memchr(text, '\n', len) ||
	    !jsonrpc_is_bounded(text, len))
		return false;
	value = json_loadb(text, len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES |
				      JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
	json_decref(value);
	return value;
}

static struct shown
checked_json(const char *text)
{
	return answer_shown(text && run_script_is_json(text, strlen(text)) ? text : NULL);
}

static void
read_outcome(const struct outcome *outcome, const struct run_supplement *supplement,
	     const struct tool_host *host, struct report *report_r)
{
	struct report report = {
		.outcome = outcome,
		.supplement = supplement,
		.status = outcome_status_name(outcome->status),
		.repr = answer_shown(outcome->value_repr),
		.json = checked_json(outcome->value_json),
	};

	for (size_t i = 0; i < STREAM_COUNT; i++)
		report.stream[i] = (struct shown){ outcome->stream[i].text,
						   outcome->stream[i].len, 0, 0,
						   i == STREAM_STDERR,
						   outcome->stream[i].dropped, NULL, 0 };
	report.both = (struct shown){ outcome->transcript, outcome->transcript_len, 0, 0, true,
				      0, NULL, 0 };
	if (outcome->status != OUTCOME_OK) {
		bool raised = outcome->status == OUTCOME_ERROR && outcome->error_type;

		report.error_type = answer_shown(
			raised ? outcome->error_type
			: outcome->status == OUTCOME_ERROR ? "SystemExit" : report.status);
		report.error_message = answer_shown(raised ? outcome->error_message
							   : outcome->message);
		if (!report.error_message.at)
			report.error_message = answer_shown("");
		report.traceback = answer_shown(outcome->error_traceback);
		report.traceback.has_frames = true;
		report.error_line = outcome->error_line;
	}
	report.results = run_results_new(outcome, host, &report.results_cost);
	answer_fit(&report);
	*report_r = report;
}

/* ---- structuredContent ---- */

static void
write_shown(struct jsonout *out, const char *key, const struct shown *text)
{
	jsonout_member_string(out, key, text->at, text->len);
}

static void
script_answer_write_result(struct jsonout *out, const struct report *report)
{
	jsonout_key(out, "result");
	if (!report->repr.at) {
		jsonout_null(out);
		return;
	}
	jsonout_open(out, '{');
	write_shown(out, "repr", &report->repr);
	if (report->json.at) {
		jsonout_key(out, "json");
		jsonout_raw(out, report->json.at, report->json.len);
		if (report->outcome->value_converted)
			jsonout_member_bool(out, "json_exact", false);
	}
	jsonout_close(out, '}');
}

static void
write_error(struct jsonout *out, const struct report *report)
{
	jsonout_key(out, "error");
	if (!report->error_type.at) {
		jsonout_null(out);
		return;
	}
	jsonout_open(out, '{');
	write_shown(out, "type", &report->error_type);
	write_shown(out, "message", &report->error_message);
	write_shown(out, "traceback", &report->traceback);
	jsonout_member_known(out, "line", report->error_line, report->error_line);
	if (*report->advice)
		jsonout_member_text(out, "advice", report->advice);
	jsonout_close(out, '}');
}

static uint64_t
answer_dropped(const struct report *report, enum stream stream)
{
	return (report->outcome ? report->outcome->stream[stream].dropped : 0) +
	       report->stream[stream].cut;
}

static bool
value_is_cut(const struct report *report)
{
	return (report->outcome && report->outcome->value_cut) || report->repr.cut;
}

static void
write_truncated(struct jsonout *out, const struct report *report)
{
	jsonout_key(out, "truncated");
	if (!answer_dropped(report, STREAM_STDOUT) && !answer_dropped(report, STREAM_STDERR) &&
	    !value_is_cut(report)) {
		jsonout_null(out);
		return;
	}
	jsonout_open(out, '{');
	jsonout_member_uint(out, "stdout_dropped", answer_dropped(report, STREAM_STDOUT));
	jsonout_member_uint(out, "stderr_dropped", answer_dropped(report, STREAM_STDERR));
	jsonout_member_bool(out, "result", value_is_cut(report));
	jsonout_close(out, '}');
}

/* The length of this list is bounded, and small compared with RUN_ANSWER_MAX. */
static void
write_found(struct jsonout *out, const struct report *report)
{
	if (!report->found)
		return;
	jsonout_key(out, "found");
	jsonrpc_write_value(out, report->found);
}

static void
script_answer_write_structured(struct jsonout *out, const struct report *report)
{
	const struct outcome *outcome = report->outcome;
	struct shown none = answer_shown("");

	jsonout_open(out, '{');
	jsonout_member_text(out, "execution_id", outcome ? outcome->id : NULL);
	jsonout_member_text(out, "status", report->status);
	write_shown(out, "stdout", outcome ? &report->stream[STREAM_STDOUT] : &none);
	write_shown(out, "stderr", outcome ? &report->stream[STREAM_STDERR] : &none);
	script_answer_write_result(out, report);
	write_error(out, report);
	jsonout_member_known(out, "exit_code", outcome && outcome->exit_code >= 0,
			     outcome ? (uint64_t)outcome->exit_code : 0);
	jsonout_member_uint(out, "duration_ms", outcome ? outcome->duration_ms : 0);
	jsonout_member_uint(out, "cpu_ms", outcome ? outcome->cpu_ms : 0);
	jsonout_member_known(out, "peak_memory_bytes", outcome && outcome->peak_memory_bytes,
			     outcome ? outcome->peak_memory_bytes : 0);
	write_truncated(out, report);
	run_results_write(report->results, out);
	write_found(out, report);
	if (outcome && outcome->made_ready)
		jsonout_member_bool(out, "made_ready", true);
	run_calls_write(outcome, out);
	if (report->job)
		jsonout_member_text(out, "job", report->job);
	if (report->waits)
		jsonout_member_text(out, "waits", report->waits);
	if (outcome && outcome->status == OUTCOME_OVERLOADED)
		jsonout_member_uint(out, "retry_after_ms", outcome->retry_after_ms);
	if (report->supplement)
		report->supplement->write(report->supplement->arg, out);
	jsonout_close(out, '}');
}

static json_t *
answer_statuses(unsigned int tool)
{
	json_t *names = json_array();

	for (int i = 0; i < OUTCOME_STATUS_COUNT; i++)
		json_array_append_new(names,
				      json_string(outcome_status_name((enum outcome_status)i)));
	for (size_t i = 0; i < sizeof(not_run) / sizeof(*not_run); i++)
		if (not_run[i].tools & tool)
			json_array_append_new(names, json_string(not_run[i].status));
	return names;
}

/* The members that run_calls_write() writes. */
static const char *const of_calls[] = { "tool_calls", "tool_calls_left_out" };
#define N_OF_CALLS (sizeof(of_calls) / sizeof(of_calls[0]))

void
run_script_add_calls(json_t *schema, const struct config *config)
{
	json_auto_t *own = schema_load(run_output_schema);
	const json_t *properties = json_object_get(own, "properties");

	for (size_t i = 0; config->n_tools > 0 && i < N_OF_CALLS; i++)
		json_object_set(json_object_get(schema, "properties"), of_calls[i],
				json_object_get(properties, of_calls[i]));
}

char *
run_script_output_schema(enum run_for tool, const struct config *config)
{
	static const char *const of_sessions[] = { "session", "expires", "state", "state_text",
						   "exited", "background_stdout",
						   "background_stderr", "not_carried",
						   "checkpoints", NULL };
	json_t *schema = schema_load(run_output_schema);

	schema_set(schema, "status", "enum", answer_statuses(1u << tool));
	for (const char *const *name = of_sessions; tool == RUN_FOR_SCRIPT && *name; name++)
		schema_drop(schema, *name);
	for (size_t i = 0; config->n_tools == 0 && i < N_OF_CALLS; i++)
		schema_drop(schema, of_calls[i]);
	return schema_take(schema);
}

/* ---- the text ---- */

/* Writes a text within its share of the tokens, one n-th. name: the name under which it is kept;
 * NULL: it is not kept. */
static void
say_part(FILE *to, const struct report *report, const struct shown *text, const char *name,
	 unsigned int n)
{
	const struct readable readable = { text->at, text->len, name, text->unsaid,
					   text->has_frames, text != &report->repr,
					   text->dropped };

	readable_say(to, &readable, reader_share(&report->reader, n), &report->reader);
}

static void
script_answer_say_block(FILE *to, const struct report *report, const char *title,
			const struct shown *text, const char *name, unsigned int n)
{
	if (!text->len)
		return;
	fprintf(to, "%s:\n", title);
	say_part(to, report, text, name, n);
	if (text->at[text->len - 1] != '\n')
		fputc('\n', to);
	if (text->note) {
		const struct shown note = { .at = text->note, .len = text->note_len };

		say_part(to, report, &note, NULL, 8);
		fputc('\n', to);
	}
}

/* The bytes of the error's type and message at the end of the text, as a traceback has them: of a
 * syntax error without the place, "(FILE, line N)". 0: they are not there. */
static size_t
ends_with_message(const struct report *report, const char *text, size_t len)
{
	const struct shown *type = &report->error_type, *message = &report->error_message;
	const char *place = message->len ? memrchr(message->at, '(', message->len) : NULL;
	size_t plain = place && place > message->at ? (size_t)(place - message->at) - 1 : 0;

	for (size_t n = message->len; n > 0; n = n > plain ? plain : 0) {
		size_t all = type->len + 2 + n;

		if (len > all && text[len - all - 1] == '\n' &&
		    memcmp(text + len - n, message->at, n) == 0 &&
		    memcmp(text + len - all, type->at, type->len) == 0)
			return all;
	}
	return 0;
}

/* The text without the message at the end of its traceback, if that says the same as the first line
 * of the answer. A note of worker/lacks.py may follow it: it is left out too if the advice repeats
 * it. */
static struct shown
without_message(const struct report *report, struct shown text)
{
	static const char repeated[] = "\nthis needs the module ";
	const struct shown *message = &report->error_message;
	const char *note;
	size_t end = text.len, len, said;

	if (report->outcome->status != OUTCOME_ERROR || message->cut)
		return text;
	while (end > 0 && text.at[end - 1] == '\n')
		end--;
	for (len = end; !(said = ends_with_message(report, text.at, len));
	     len = (size_t)(note - text.at))
		if (len < end || !(note = memrchr(text.at, '\n', len)))
			return text;
	if (len < end && !(*report->advice && end - len > strlen(repeated) &&
			   memcmp(text.at + len, repeated, strlen(repeated)) == 0))
		text.note_len = end - len - 1;
	len -= said;
	text.unsaid = text.len - len;
	text.len = len;
	text.note = text.note_len ? text.at + end - text.note_len : NULL;
	return text;
}

/* What was printed to both streams, with the displayed objects between, because their order tells
 * what happened. both: is empty if nothing is known about the order. False: nothing was displayed.
 */
static bool
say_displayed(FILE *to, const struct report *report, const char *title, const struct shown *both)
{
	own_mem char *text = NULL;
	const struct shown new = without_message(report, *both);	/* figures may follow it */
	struct shown shown = { .has_frames = true, .unsaid = new.unsaid,
			       .note = new.note, .note_len = new.note_len };
	FILE *merged;
	bool any;

	if (report->outcome->n_displays == 0)
		return false;
	merged = xalloc_check(open_memstream(&text, &shown.len));
	any = run_results_say_output(report->results, new.at, new.len, true, merged);
	xalloc_check(fclose(merged) == 0 ? text : NULL);
	shown.at = text;
	if (any && both->len)
		script_answer_say_block(to, report, title, &shown, "output", 2);
	else if (any)
		say_part(to, report, &shown, "output", 2);
	return any;
}

/* Writes both streams together if both were used; separately if they were shortened for this
 * answer. */
static void
script_answer_say_streams(FILE *to, const struct report *report)
{
	const struct shown *out = &report->stream[STREAM_STDOUT];
	const struct shown *err = &report->stream[STREAM_STDERR], none = answer_shown("");
	const struct shown errors = without_message(report, *err);
	const char *title = !err->len ? "stdout" : out->len ? "stdout and stderr" : "stderr";
	bool whole = !out->cut && !err->cut && report->both.len == out->len + err->len;

	if (whole && say_displayed(to, report, title, &report->both))
		return;
	if (out->len && err->len && report->both.len && !out->cut && !err->cut) {
		const struct shown both = without_message(report, report->both);

		script_answer_say_block(to, report, title, &both, "output", 2);
	} else {
		script_answer_say_block(to, report, "stdout", out, "stdout", err->len ? 4 : 2);
		script_answer_say_block(to, report, "stderr", &errors, "stderr",
					out->len ? 4 : 2);
	}
	if (!whole)
		say_displayed(to, report, "", &none);
}

static void
say_error(FILE *to, const struct report *report)
{
	const struct shown *err = &report->stream[STREAM_STDERR], *message = &report->error_message;

	if (!report->error_type.at) {
		if (*report->advice)	/* about a program that it has started */
			fprintf(to, "advice: %s\n", report->advice);
		return;
	}
	if (!report->outcome || report->outcome->status != OUTCOME_ERROR) {
		/* The message is a sentence of the service, and names the event. */
		fprintf(to, "%.*s\n", (int)message->len, message->at);
	} else {
		char line[32];
		int n = snprintf(line, sizeof(line), ", line %u)", report->error_line);

		fprintf(to, "%.*s%s", (int)report->error_type.len, report->error_type.at,
			message->len ? ": " : "");
		say_part(to, report, message, NULL, 8);
		/* A syntax error has its line in the message. */
		if (report->error_line && !memmem(message->at, message->len, line, (size_t)n))
			fprintf(to, " (line %u)", report->error_line);
		fputc('\n', to);
	}
	if (*report->advice)
		fprintf(to, "advice: %s\n", report->advice);
	/* Usually the script's stderr shows it already. */
	if (report->traceback.len &&
	    !(err->len && memmem(err->at, err->len, report->traceback.at,
				 report->traceback.len))) {
		const struct shown traceback = without_message(report, report->traceback);

		script_answer_say_block(to, report, "traceback", &traceback, "traceback", 8);
	}
}

static void
say_result(FILE *to, const struct report *report)
{
	if (!report->repr.at)
		return;
	/* The columns of a table stand below each other. */
	fputs(memchr(report->repr.at, '\n', report->repr.len) ? "result:\n" : "result: ", to);
	say_part(to, report, &report->repr, "result", 4);
	fputc('\n', to);
	if (!value_is_cut(report))
		return;
	if (report->json.at)
		fprintf(to, "result as JSON: %.*s\n", (int)report->json.len,
			report->json.at);
	else
		fputs("(the result was shortened)\n", to);
}

/* Writes the texts of a list; of a long list the first ones, and the number of the others. */
static void
say_list(FILE *to, const json_t *list)
{
	size_t n = json_array_size(list), shown = n > FOUND_SAID ? FOUND_SAID : n;

	for (size_t i = 0; i < shown; i++)
		fprintf(to, "%s%s", i ? ", " : "", json_string_value(json_array_get(list, i)));
	if (n > shown)
		fprintf(to, " and %zu more", n - shown);
}

static void
say_found(FILE *to, const struct report *report)
{
	if (!report->found)
		return;
	fputs("found: ", to);
	say_list(to, json_object_get(report->found, "modules"));
	fputs(" in packages that were installed before: ", to);
	say_list(to, json_object_get(report->found, "packages"));
	fprintf(to, " (set %.12s)\n", json_string_value(json_object_get(report->found, "set")));
}

/* The last line: the status and the time. Of the other numbers those that a model acts on; all are
 * in the structured answer. */
static void
say_summary(FILE *to, const struct report *report)
{
	static const char *const names[] = { "stdout", "stderr" };
	const struct outcome *outcome = report->outcome;
	/* An exception has exit code 1, which the status says already. */
	int usual = outcome->status == OUTCOME_ERROR && outcome->error_type ? 1 : 0;

	for (size_t i = 0; outcome->n_parts == 0 && i < STREAM_COUNT; i++)
		if (answer_dropped(report, (enum stream)i))
			fprintf(to, "(%llu bytes of %s were dropped%s)\n",
				(unsigned long long)answer_dropped(report, (enum stream)i),
				names[i], report->stream[i].cut ? "" : ": spill: true keeps them");
	if (outcome->status == OUTCOME_OVERLOADED)
		fprintf(to, "Try again in %u ms.\n", outcome->retry_after_ms);
	fprintf(to, "[%s", report->status);
	if (outcome->exit_code >= 0 && outcome->exit_code != usual)
		fprintf(to, ", exit code %d", outcome->exit_code);
	fprintf(to, ", %llu ms", (unsigned long long)outcome->duration_ms);
	if (outcome->cpu_ms > 1000 && outcome->cpu_ms / 2 > outcome->duration_ms)
		fprintf(to, ", cpu %llu ms", (unsigned long long)outcome->cpu_ms);
	if (run_results_links(report->results) > 0)
		fprintf(to, ", %zu file%s", run_results_links(report->results),
			run_results_links(report->results) > 1 ? "s" : "");
	if (outcome->limits && outcome->peak_memory_bytes > outcome->limits->memory_bytes / 2)
		fprintf(to, ", peak memory %llu of %llu MiB",
			(unsigned long long)outcome->peak_memory_bytes >> 20,
			(unsigned long long)outcome->limits->memory_bytes >> 20);
	fputs("]\n", to);
}

static void
script_answer_say(FILE *to, const struct report *report, struct tool_answer *answer)
{
	bool said = report->repr.at || report->stream[STREAM_STDOUT].len ||
		    report->stream[STREAM_STDERR].len ||
		    (report->outcome && report->outcome->n_files + report->outcome->n_displays);

	say_error(to, report);
	if (report->waits)
		fprintf(to, "The call %s. Tell your user, and do not make the call again: it goes on as "
			"job %s, which the tool job follows.\n", report->waits, report->job);
	else if (report->job)
		fprintf(to, "Running in the background as job %s: follow it with the tool job. It may "
			"run for %.10g s.\n", report->job, report->job_seconds);
	if (report->supplement && !report->outcome)
		report->supplement->say(report->supplement->arg, to);
	if (!report->outcome)
		return;
	answer->output_at = (size_t)ftello(to);
	script_answer_say_streams(to, report);
	answer->output_len = (size_t)ftello(to) - answer->output_at;
	say_result(to, report);
	run_results_say(report->results, to);
	say_found(to, report);
	run_calls_say(report->outcome, to);
	if (!said && !report->error_type.at)
		fputs("(no output)\n", to);
	if (report->supplement)
		report->supplement->say(report->supplement->arg, to);
	say_summary(to, report);
}

static void
script_answer_give(const struct report *report, const struct tool_host *host)
{
	const struct outcome *outcome = report->outcome;
	struct tool_writer w;

	tool_write(&w, host);
	w.answer.is_error = report->error_type.at != NULL;
	w.answer.not_run = outcome ? !outcome_ran(outcome->status) : !report->job;
	script_answer_say(w.text, report, &w.answer);
	if (w.for_programs)
		script_answer_write_structured(&w.structured, report);
	w.answer.content = run_results_blocks(report->results, &w.answer.n_content);
	tool_give(&w);
	run_results_free(report->results);
}

/* What helps a call that its time or its memory did not suffice for. */
static void
advise_more(const struct tool_host *host, const struct outcome *outcome,
	    char advice_r[MISSING_ADVICE])
{
	const struct limits *cap = &host->config->limits.cap;
	const uint32_t most_ms = cap->wall_ms;

	if (outcome->status == OUTCOME_MEMORY_LIMIT && outcome->limits &&
	    outcome->limits->memory_bytes < cap->memory_bytes &&
	    outcome->peak_memory_bytes >= outcome->limits->memory_bytes / 2)
		snprintf(advice_r, MISSING_ADVICE, "give memory_mb up to %llu",
			 (unsigned long long)cap->memory_bytes >> 20);
	if (outcome->status != OUTCOME_TIMEOUT || !outcome->limits)
		return;
	if (outcome->limits->wall_ms < most_ms)
		snprintf(advice_r, MISSING_ADVICE, "give timeout_seconds up to %.10g; with "
			 "background: true the call is a job, and nobody waits", most_ms / 1000.0);
	else
		snprintf(advice_r, MISSING_ADVICE, "this is the most that the operator allows: do "
			 "the work in several calls");
}

void
run_script_answer(const struct outcome *outcome, uint32_t tokens,
		  const struct run_supplement *supplement, const struct tool_host *host)
{
	struct report report;

	read_outcome(outcome, supplement, host, &report);
	/* A cell's answer has a supplement, a script's has none. */
	missing_advise(host, outcome, supplement != NULL, report.advice);
	advise_more(host, outcome, report.advice);
	report.found = found_describe(host, outcome);
	/* With spill the whole is kept already. */
	report.reader = (struct reader){ host, outcome->n_parts ? NULL : outcome->id,
					 tokens ? tokens : host->config->mcp.text_tokens,
					 outcome->n_parts > 0 };
	script_answer_give(&report, host);
	json_decref(report.found);
}

void
run_script_refuse_as(const char *reason, const char *text,
		     const struct run_supplement *supplement, const struct tool_host *host)
{
	struct report report = {
		.status = reason,
		.error_type = answer_shown(reason),
		.error_message = answer_shown(text),
		.supplement = supplement,
	};

	report.results = run_results_new(NULL, host, &report.results_cost);
	script_answer_give(&report, host);
}

void
run_script_answer_job(const char *job, const char *waits, bool begun,
		      const struct run_supplement *supplement, const struct tool_host *host)
{
	struct report report = { .status = begun ? RUN_RUNNING : TOOL_APPROVAL_PENDING, .job = job,
				 .waits = waits, .supplement = supplement };
	struct job_view view;

	background_view(background_find(host->tenant, job), &view);
	report.job_seconds = view.most_seconds;
	report.results = run_results_new(NULL, host, &report.results_cost);
	script_answer_give(&report, host);
}
