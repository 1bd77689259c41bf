/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python run and repl, while a call waits.   Owns: the open prompt.
 * Reads:   prompts, whose text may be a script's, and lines from the terminal, which has its own
 * line editing.
 * The service quotes a script's text; nothing here depends on that. */
#include "client/prompt.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <termios.h>
#include <unistd.h>

#include "base/quote.h"
#include "base/xalloc.h"
#include "client/reply.h"
#include "client/say.h"
#include "client/show.h"
#include "client/text.h"

#define MESSAGE_MAX 16384	/* bytes; a user who could not see all of it is not asked */
#define PROMPT_LINES 100	/* of a script's prompt */
#define TITLE_BYTES 256		/* of a form's field */
#define MARK "script>"		/* before each line of a script's own text */
#define INDENT " "		/* before each line of the service's text */
#define CONSENT_COLUMNS 76	/* including the marks of the service's quotations */

bool
prompt_has_terminal(void)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

void
prompt_watch(struct prompt *q, const struct shown *out)
{
	q->out = isatty(STDOUT_FILENO) ? out : NULL;
	q->out_seen = 0;
}

/* ---- answers ---- */

/* Takes ownership of content; NULL: none. */
static json_t *
prompt_make_answer(const json_t *id, const char *action, json_t *content)
{
	json_t *answer = json_pack("{s:s, s:O, s:{s:s, s:o*}}", "jsonrpc", "2.0", "id", id,
					  "result", "action", action, "content", content);

	if (!answer)
		xalloc_fail(0);
	return answer;
}

void
prompt_forget(struct prompt *q)
{
	if (!q->id)
		return;
	json_decref(q->id);
	free(q->label);
	q->id = NULL;
	q->label = NULL;
	q->len = 0;
	q->out_seen = q->out ? q->out->len : 0;
}

static json_t *
prompt_answer(struct prompt *q, const char *action, json_t *content)
{
	json_t *message = prompt_make_answer(q->id, action, content);

	prompt_forget(q);
	return message;
}

/* ---- showing ---- */

static void
print(const char *text)
{
	(void)show_bytes(STDERR_FILENO, text, strlen(text));
}

/* As quote_block(); malloc'd. */
static char *
make_block(const struct quote_block *block, const char *text)
{
	size_t len;
	char *shown = NULL;
	FILE *to = open_memstream(&shown, &len);

	if (!to)
		xalloc_fail(0);
	quote_block(to, block, text, strlen(text));
	xassert(fclose(to) == 0);
	return shown;
}

/* The script's own text: it is quoted below the service's words. This function removes the marks
 * and joins folded lines. Malloc'd. */
static char *
unquote(const char *message)
{
	const char *quoted = strstr(message, "\n\n");
	char *text = xstrdup(quoted ? quoted + 2 : message), *to = text;

	for (const char *at = text; *at;) {
		size_t len;

		if (strncmp(at, ">+", 2) == 0 && to > text)
			to--;		/* the line break of the fold */
		if (strncmp(at, "> ", 2) == 0 || strncmp(at, ">+", 2) == 0)
			at += 2;
		len = strcspn(at, "\n");
		len += at[len] == '\n';
		memmove(to, at, len);
		to += len;
		at += len;
	}
	*to = '\0';
	return text;
}

/* The text on standard output since the last answer. */
static const char *
fresh_output(const struct prompt *q, size_t *len_r)
{
	*len_r = q->out ? q->out->len - q->out_seen : 0;
	return *len_r > 0 ? q->out->bytes + q->out_seen : NULL;
}

/* Does the cursor stand behind exactly this text? input() writes its prompt to standard output,
 * too. */
static bool
prompt_is_shown(const struct prompt *q, const char *text)
{
	size_t len = strlen(text), fresh_len;
	const char *fresh = fresh_output(q, &fresh_len);

	return len > 0 && len <= fresh_len &&
	       memcmp(fresh + fresh_len - len, text, len) == 0 &&
	       (len == fresh_len || fresh[fresh_len - len - 1] == '\n');
}

static void
begin_line(const struct prompt *q)
{
	size_t len;
	const char *fresh = fresh_output(q, &len);

	if (len > 0 && fresh[len - 1] != '\n')
		print("\n");
}

/* Fills q->label, and shows all of it. */
static void
show_script_prompt(struct prompt *q, const char *message)
{
	static const struct quote_block block = { MARK, QUOTE_COLUMNS, PROMPT_LINES, SIZE_MAX };
	char *text = unquote(message), *all = make_block(&block, text), *last;

	last = strrchr(all, '\n');
	q->label = xstrdup(last ? last + 1 : all);
	if (prompt_is_shown(q, text)) {
		print("\r");	/* the marked line is longer */
		print(q->label);
	} else {
		begin_line(q);
		print(all);
	}
	free(all);
	free(text);
}

static void
show_consent(struct prompt *q, const char *message, const char *title)
{
	static const struct quote_block block = { INDENT, CONSENT_COLUMNS, SIZE_MAX, SIZE_MAX };
	char *all = make_block(&block, message), line[TITLE_BYTES];

	quote_line(line, sizeof(line), title, strlen(title));
	if (asprintf(&q->label, "%s [y/N] ", line) < 0)
		xalloc_fail(0);
	begin_line(q);
	say("the service asks:");
	print(all);
	print("\n");
	/* Lines typed earlier do not answer this prompt. */
	tcflush(STDIN_FILENO, TCIFLUSH);
	print(q->label);
	free(all);
}

/* ---- asking ---- */

/* A string of the service without NUL, or NULL. */
static const char *
prompt_text_of(const json_t *object, const char *key)
{
	size_t len;
	const char *text = reply_string(object, key, &len);

	return text && strlen(text) == len ? text : NULL;
}

/* The only field of a form. NULL: there are several or none, or its type is neither string nor
 * boolean. */
static const json_t *
only_field(struct prompt *q, const json_t *params)
{
	json_t *fields = json_object_get(json_object_get(params, "requestedSchema"),
					 "properties");
	void *first = json_object_iter(fields);
	const char *name = first ? json_object_iter_key(first) : "", *type;
	const json_t *field = first ? json_object_iter_value(first) : NULL;

	if (json_object_size(fields) != 1 || strlen(name) > PROMPT_FIELD_MAX)
		return NULL;
	strcpy(q->field, name);
	type = prompt_text_of(field, "type");
	q->consents = type && strcmp(type, "boolean") == 0;
	return q->consents || (type && strcmp(type, "string") == 0) ? field : NULL;
}

json_t *
prompt_ask(struct prompt *q, const json_t *request)
{
	const json_t *params = json_object_get(request, "params"), *field;
	json_t *id = json_object_get(request, "id");
	const char *message = prompt_text_of(params, "message"), *title;

	if (q->id)
		return prompt_make_answer(id, "cancel", NULL);
	field = only_field(q, params);
	if (!field || !message || strlen(message) > MESSAGE_MAX) {
		say("the service asked something that cannot be shown here");
		return prompt_make_answer(id, "decline", NULL);
	}
	q->id = json_incref(id);
	title = prompt_text_of(field, "title");
	if (q->consents)
		show_consent(q, message, title ? title : "Yes?");
	else
		show_script_prompt(q, message);
	return NULL;
}

/* ---- answering ---- */

static bool
is_yes(const struct prompt *q)
{
	return (q->len == 1 && strncasecmp(q->line, "y", 1) == 0) ||
	       (q->len == 3 && strncasecmp(q->line, "yes", 3) == 0);
}

static json_t *
prompt_take_line(struct prompt *q)
{
	struct text_position where;

	if (q->consents)
		return is_yes(q) ? prompt_answer(q, "accept", json_pack("{s:b}", q->field, 1))
				 : prompt_answer(q, "decline", NULL);
	if (q->len <= sizeof(q->line) && text_check(q->line, q->len, true, &where))
		return prompt_answer(q, "accept", json_pack("{s:s%}", q->field, q->line, q->len));
	say(q->len > sizeof(q->line) ? "that line is too long" : "that is not UTF-8 text");
	q->len = 0;
	print(q->label);
	return NULL;
}

json_t *
prompt_read(struct prompt *q)
{
	/* One byte per read: bytes after the line belong to another reader. */
	char byte = '\n';
	ssize_t n = read(STDIN_FILENO, &byte, 1);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return NULL;
	if (n > 0 && byte != '\n') {
		if (q->len < sizeof(q->line))
			q->line[q->len] = byte;
		q->len += q->len <= sizeof(q->line);
		return NULL;
	}
	if (n <= 0)
		print("\n");
	return n <= 0 && q->len == 0 ? prompt_answer(q, "cancel", NULL) : prompt_take_line(q);
}

void
prompt_withdraw(struct prompt *q, const json_t *notification)
{
	const json_t *params = json_object_get(notification, "params");
	const char *reason = reply_string(params, "reason", NULL);

	if (!q->id || !json_equal(q->id, json_object_get(params, "requestId")))
		return;
	print("\n");
	say("the question was withdrawn%s%s", reason ? ": " : "", reason ? reason : "");
	prompt_forget(q);
}
