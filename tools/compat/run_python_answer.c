/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   outcomes, whose texts a script wrote. */
#include "tools/compat/run_python.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include <jansson.h>

#include "base/jsonout.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "policy/config.h"
#include "tools/script/run_script.h"
#include "tools/shared/readable.h"

#define LOG_LINES_MAX 200	/* of one stream; the rest goes out as one */
#define INDENT_MAX 16		/* levels */

/* An answer escapes its text, and JSON within the text a second time. */
#define TEXT_COST_MAX (RUN_ANSWER_MAX / 8)

/* ---- texts ---- */

static void
break_line(FILE *to, size_t depth)
{
	fprintf(to, "\n%*s", (int)(2 * (depth < INDENT_MAX ? depth : INDENT_MAX)), "");
}

/* Writes a string, and returns the position after it. */
static const char *
copy_string(FILE *to, const char *at)
{
	const char *end = at + 1;

	while (*end && *end != '"')
		end += *end == '\\' && end[1] ? 2 : 1;
	end += *end == '"';
	fwrite(at, 1, (size_t)(end - at), to);
	return end;
}

void
run_python_indent(FILE *to, const char *json)
{
	size_t depth = 0;

	while (*json) {
		char c = *json++;

		if (isspace((unsigned char)c))
			continue;
		if (c == '"') {
			json = copy_string(to, json - 1);
		} else if (c == '[' || c == '{') {
			json += strspn(json, " \t\r\n");
			fputc(c, to);
			if (*json == ']' || *json == '}')
				fputc(*json++, to);
			else
				break_line(to, ++depth);
		} else if (c == ']' || c == '}') {
			break_line(to, depth > 0 ? --depth : 0);
			fputc(c, to);
		} else {
			fputc(c, to);
			if (c == ',')
				break_line(to, depth);
			else if (c == ':')
				fputc(' ', to);
		}
	}
}

/* The length of the tag that begins at text with '<'. It ends after the next '>' in the line, or,
 * if there is none, after the tag's name. 0: it is another tag, or no tag. */
static size_t
tag_at(const char *text, size_t len, const char *tag)
{
	const char *at = text + 1, *end = text + len, *line, *close;

	at += at < end && *at == '/';
	while (at < end && isspace((unsigned char)*at))
		at++;
	if ((size_t)(end - at) < strlen(tag) || strncasecmp(at, tag, strlen(tag)) != 0)
		return 0;
	at += strlen(tag);
	line = memchr(at, '\n', (size_t)(end - at));
	close = memchr(at, '>', (size_t)((line ? line : end) - at));
	return (size_t)((close ? close + 1 : at) - text);
}

void
run_python_escape(FILE *to, const char *text, size_t len, const char *tag)
{
	const char *end = text + len, *open;

	while ((open = memchr(text, '<', (size_t)(end - text)))) {
		size_t n = tag_at(open, (size_t)(end - open), tag);

		fwrite(text, 1, (size_t)(open - text), to);
		text = open + (n > 0 ? n : 1);
		for (; open < text; open++)
			if (n > 0 && (*open == '<' || *open == '>'))
				fputs(*open == '<' ? "&lt;" : "&gt;", to);
			else
				fputc(*open, to);
	}
	fwrite(text, 1, (size_t)(end - text), to);
}

/* ---- the parts of an outcome ---- */

/* Both streams, without the line break at their ends; text NULL: nothing was written. */
struct python_output {
	const char *text[STREAM_COUNT];
	size_t len[STREAM_COUNT];
	char *made[STREAM_COUNT];	/* what of it is a copy */
};

/* The length of what the script wrote to stderr, without the traceback that followed. */
static size_t
errors_len(const struct outcome *outcome)
{
	const struct outcome_stream *stream = &outcome->stream[STREAM_STDERR];
	const char *traceback = outcome->error_traceback ? outcome->error_traceback : "";
	size_t len = strlen(traceback);

	return len <= stream->len && memcmp(stream->text + stream->len - len, traceback, len) == 0
		? stream->len - len : stream->len;
}

static void
output_is_done(struct python_output *output)
{
	for (int i = 0; i < STREAM_COUNT; i++)
		free(output->made[i]);
}

/* The output of an outcome, each stream shortened to its share. output_is_done releases it. */
static struct python_output
output_of(const struct outcome *outcome, const struct reader *reader)
{
	static const char *const names[STREAM_COUNT] = { "stdout", "stderr" };
	const size_t share = reader_share(reader, 4);
	struct python_output output = { 0 };

	for (int i = 0; i < STREAM_COUNT; i++) {
		const struct outcome_stream *stream = &outcome->stream[i];
		size_t len = i == STREAM_STDERR ? errors_len(outcome) : stream->len;

		if (len == 0)
			continue;
		output.text[i] = stream->text;
		if (share > 0 && len > share) {
			const struct readable text = { .text = stream->text, .len = len,
							   .name = names[i] };

			output.text[i] = output.made[i] = readable_make(&text, share, reader, &len);
		}
		len = jsonout_fit(output.text[i], len, TEXT_COST_MAX);
		output.len[i] = len - (len > 0 && output.text[i][len - 1] == '\n');
	}
	return output;
}

/* The value as JSON. NULL: the value is None, or has no valid JSON. */
static const char *
python_answer_value_of(const struct outcome *outcome)
{
	const char *json = outcome->value_json;

	return json && run_script_is_json(json, strlen(json)) ? json : NULL;
}

/* Takes text, malloc'd. Returns it; or, if it is longer than one n-th of the reader's tokens, a
 * shorter form, malloc'd. *len_r: the length of the result. */
static char *
take_share(char *text, const char *name, unsigned int n, const struct reader *reader, size_t *len_r)
{
	const struct readable readable = { .text = text, .len = strlen(text), .name = name };
	size_t share = reader_share(reader, n);
	char *made;

	*len_r = readable.len;
	if (share == 0 || readable.len <= share)
		return text;
	made = readable_make(&readable, share, reader, len_r);
	free(text);
	return made;
}

/* Why it failed; malloc'd. */
static char *
error_of(const struct outcome *outcome, const struct reader *reader)
{
	char *text = NULL;
	size_t len;
	FILE *to = xalloc_check(open_memstream(&text, &len));

	if (outcome->error_traceback && *outcome->error_traceback)
		fputs(outcome->error_traceback, to);
	else if (outcome->error_type)
		fprintf(to, "%s: %s", outcome->error_type,
			outcome->error_message ? outcome->error_message : "");
	if (outcome->status != OUTCOME_ERROR)
		fprintf(to, "%s: %s\n", outcome_status_name(outcome->status),
			outcome->message ? outcome->message : "");
	else if (!outcome->error_traceback && !outcome->error_type)
		fprintf(to, "SystemExit: %d\n", outcome->exit_code);
	xalloc_check(fclose(to) == 0 ? text : NULL);
	return take_share(text, "error", 4, reader, &len);
}

/* ---- as XML ---- */

static void
say_element(FILE *to, const char *tag, const char *text, size_t len)
{
	fprintf(to, "\n<%s>\n", tag);
	run_python_escape(to, text, len, tag);
	fprintf(to, "\n</%s>", tag);
}

static void
say_output(FILE *to, const struct python_output *output)
{
	if (!output->text[STREAM_STDOUT] && !output->text[STREAM_STDERR])
		return;
	fputs("\n<output>\n", to);
	for (int i = 0; i < STREAM_COUNT; i++) {
		if (!output->text[i])
			continue;
		run_python_escape(to, output->text[i], output->len[i], "output");
		fputc('\n', to);
	}
	fputs("</output>", to);
}

/* A string as it is, all else as JSON. */
static void
say_value(FILE *to, const struct outcome *outcome, const struct reader *reader)
{
	const char *json = python_answer_value_of(outcome);
	json_auto_t *string = json && *json == '"' ? json_loads(json, JSON_ALLOW_NUL | JSON_DECODE_ANY,
								NULL) : NULL;
	own_mem char *text = NULL;
	size_t len;
	FILE *value = xalloc_check(open_memstream(&text, &len));

	if (json_is_string(string))
		fwrite(json_string_value(string), 1, json_string_length(string), value);
	else if (json)
		run_python_indent(value, json);
	else if (outcome->value_repr)
		fputs(outcome->value_repr, value);
	xalloc_check(fclose(value) == 0 ? text : NULL);
	text = take_share(text, "result", 4, reader, &len);
	if (len > 0)
		say_element(to, "return_value", text, jsonout_fit(text, len, 2 * TEXT_COST_MAX));
}

static void
say_xml(FILE *to, const struct outcome *outcome, const struct reader *reader)
{
	struct python_output output = output_of(outcome, reader);
	bool success = outcome->status == OUTCOME_OK;

	fprintf(to, "<status>%s</status>", success ? "success" : "run-error");
	say_output(to, &output);
	if (success) {
		say_value(to, outcome, reader);
	} else {
		char *error = error_of(outcome, reader);

		say_element(to, "error", error, strlen(error));
		free(error);
	}
	output_is_done(&output);
}

/* ---- as JSON ---- */

static void
python_answer_write_lines(struct jsonout *out, const char *text, size_t len)
{
	const char *end = text + len, *line;

	for (; (line = memchr(text, '\n', (size_t)(end - text))); text = line + 1)
		jsonout_text(out, text, (size_t)(line - text));
	jsonout_text(out, text, (size_t)(end - text));
}

static void
say_json(FILE *to, const struct outcome *outcome, const struct reader *reader)
{
	struct python_output output = output_of(outcome, reader);
	const size_t share = reader_share(reader, 4);
	bool success = outcome->status == OUTCOME_OK;
	const char *json = python_answer_value_of(outcome);
	struct jsonout out;

	jsonout_init(&out);
	jsonout_open(&out, '{');
	jsonout_member_text(&out, "status", success ? "success" : "run-error");
	jsonout_member_open(&out, "output", '[');
	for (int i = 0; i < STREAM_COUNT; i++)
		if (output.text[i])
			python_answer_write_lines(&out, output.text[i], output.len[i]);
	jsonout_close(&out, ']');
	if (!success) {
		char *error = error_of(outcome, reader);

		jsonout_member_text(&out, "error", error);
		free(error);
	} else if (json && (share == 0 || strlen(json) <= share)) {
		jsonout_member_raw(&out, "return_value", json);
	} else if (json || outcome->value_repr) {
		size_t len;
		char *text = take_share(xstrdup(json ? json : outcome->value_repr), "result", 4,
					reader, &len);

		jsonout_member_text(&out, "return_value", text);
		free(text);
	} else {
		jsonout_member_raw(&out, "return_value", "null");
	}
	jsonout_close(&out, '}');
	fwrite(out.at, 1, out.len, to);
	jsonout_done(&out);
	output_is_done(&output);
}

/* ---- log lines ---- */

static void
log_text(const struct tool_host *host, enum log_level level, const char *text, size_t len)
{
	struct tool_log log = { .level = level };
	struct jsonout out;
	own_mem char *data = NULL;

	jsonout_init(&out);
	jsonout_text(&out, text, len);
	data = xmemdup0(out.at, out.len);
	log.data = data;
	host->on_log(host->arg, &log);
	jsonout_done(&out);
}

/* ---- answers ---- */

/* As in that server, code that fails is a normal answer: not isError. */
void
run_python_answer(const struct outcome *outcome, unsigned int, const struct tool_host *host)
{
	const struct reader reader = { .host = host, .execution_id = outcome->id,
				       .tokens = host->config->run_python.text_tokens };
	bool ran = outcome_ran(outcome->status);
	struct tool_writer w;

	static const enum log_level levels[STREAM_COUNT] = {
		[STREAM_STDOUT] = LEVEL_INFO, [STREAM_STDERR] = LEVEL_WARNING,
	};
	const struct reader all = { .host = host };
	const struct python_output output = output_of(outcome, &all);

	for (int i = 0; i < STREAM_COUNT; i++) {
		const char *text = output.text[i], *line;
		size_t len = output.len[i];

		for (int n = 1; text && n < LOG_LINES_MAX; n++) {
			line = memchr(text, '\n', len);
			if (!line)
				break;
			log_text(host, levels[i], text, (size_t)(line - text));
			len -= (size_t)(line + 1 - text);
			text = line + 1;
		}
		if (text)
			log_text(host, levels[i], text, len);
	}
	tool_write(&w, host);
	w.answer.is_error = w.answer.not_run = !ran;
	if (host->config->run_python.return_mode == RETURN_JSON)
		say_json(w.text, outcome, &reader);
	else
		say_xml(w.text, outcome, &reader);
	tool_give(&w);
}

static bool
is_missing(const char *reason)
{
	return strcmp(reason, RUN_DEPENDENCY_UNAVAILABLE) == 0 ||
	       strcmp(reason, RUN_PYTHON_UNAVAILABLE) == 0 ||
	       strcmp(reason, TOOL_APPROVAL_PENDING) == 0;
}

/* If a package or a Python is missing, or an approval is pending, the answer has the status
 * install-error. Every other reason makes the answer an error. */
void
run_python_refuse(const char *reason, const char *reason_text, const struct tool_host *host)
{
	struct tool_writer w;

	tool_write(&w, host);
	w.answer.not_run = true;
	w.answer.is_error = !is_missing(reason);
	if (w.answer.is_error) {
		fputs(reason_text, w.text);
	} else if (host->config->run_python.return_mode == RETURN_JSON) {
		json_auto_t *said = json_pack("{s:s,s:[],s:s}", "status", "install-error",
					      "output", "error", reason_text);

		json_dumpf(xalloc_check(said), w.text, JSON_COMPACT);
	} else {
		fputs("<status>install-error</status>", w.text);
		say_element(w.text, "error", reason_text, strlen(reason_text));
	}
	tool_give(&w);
}
