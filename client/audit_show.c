/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python audit show.   Owns: the last records, while --last needs them.
 * Reads:   records, whose texts may be hostile to a terminal: admin_print quotes them. */
#include "client/audit_show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/own.h"
#include "base/quote.h"
#include "base/xalloc.h"
#include "client/audit_files.h"
#include "client/say.h"

#define HASH_BEGINS 8		/* so many digits of a hash are no word */
#define WIDTH 1000		/* of a row, where there is no terminal */
#define EVENT_COLUMNS 19
#define WORD_MAX 1024		/* of a value in quotes */
#define TIME "\"time\":\""

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			    "_.,:/@+-";

struct audit_shown {
	const struct audit_asked *asked;
	json_t **last;		/* a ring of asked->last; NULL: records are printed at once */
	size_t n_last;		/* how many were put there */
	size_t seen, printed;
	size_t width;		/* of a row */
	bool failed;		/* standard output takes no more */
};

/* ---- selecting ---- */

static bool
is_hash(const char *key)
{
	const char *sha256 = strstr(key, "sha256");

	return strcmp(key, "hash") == 0 || strcmp(key, "prev") == 0 || (sha256 && !sha256[6]);
}

/* A hash has many short words in it by chance: only its beginning counts. */
static bool
text_has(const char *key, const char *value, const char *text)
{
	if (key && is_hash(key))
		return strlen(text) >= HASH_BEGINS && strncmp(value, text, strlen(text)) == 0;
	return strcasestr(value, text);
}

static bool
has_text(const char *key, json_t *value, const char *text)
{
	const char *name;
	json_t *one;
	size_t i;

	json_object_foreach(value, name, one)
		if (has_text(name, one, text))
			return true;
	json_array_foreach(value, i, one)
		if (has_text(NULL, one, text))
			return true;
	return json_is_string(value) && text_has(key, json_string_value(value), text);
}

static bool
audit_is(const json_t *record, const char *key, const char *wanted)
{
	return !wanted || strcmp(admin_text(record, key), wanted) == 0;
}

static bool
is_wanted(const struct audit_asked *asked, json_t *record)
{
	const char *time = admin_text(record, "time");

	return audit_is(record, "tenant", asked->tenant) && audit_is(record, "event", asked->event) &&
	       audit_is(record, "status", asked->status) &&
	       audit_is(record, "execution", asked->execution) &&
	       (!asked->record || admin_count(record, "n") == asked->record) &&
	       (!*asked->since || (*time && strcmp(time, asked->since) >= 0)) &&
	       (!*asked->until || (*time && strcmp(time, asked->until) < 0)) &&
	       (!asked->text || has_text(NULL, record, asked->text));
}

/* ---- before a line is parsed ---- */

/* Is the word in the line, in any case? Known only of a word that JSON writes as it is; any other
 * word may be in it. */
static bool
line_may_have(const char *text, size_t len, const char *word)
{
	const size_t word_len = word ? strlen(word) : 0;

	if (word_len == 0)
		return true;
	for (const char *c = word; *c; c++)
		if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\' || *c == '/')
			return true;
	for (size_t i = 0; i + word_len <= len; i++)
		if ((text[i] | 0x20) == (*word | 0x20) &&
		    strncasecmp(text + i, word, word_len) == 0)
			return true;
	return false;
}

/* May the record be one of those that are asked for? Most lines need not be parsed to know that
 * they are not. */
static bool
is_possible(const struct audit_asked *asked, const char *text, size_t len)
{
	char number[32];

	snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, asked->record);
	return line_may_have(text, len, asked->execution) &&
	       line_may_have(text, len, asked->event) && line_may_have(text, len, asked->status) &&
	       line_may_have(text, len, asked->tenant) && line_may_have(text, len, asked->text) &&
	       line_may_have(text, len, asked->record ? number : NULL);
}

/* The record of a line, if it is one of those that are asked for; else NULL. */
static json_t *
wanted_record(const struct audit_asked *asked, const char *text, size_t len)
{
	json_t *record = is_possible(asked, text, len) ? json_loadb(text, len, 0, NULL) : NULL;

	if (record && is_wanted(asked, record))
		return record;
	json_decref(record);
	return NULL;
}

static bool
audit_show_wants(void *arg, const char *text, size_t len)
{
	const struct audit_shown *shown = arg;
	json_auto_t *record = wanted_record(shown->asked, text, len);

	return record;
}

/* A line of the service has its time near its beginning. In a string of JSON there is no such
 * text, because the quotes would be escaped. */
static bool
audit_show_is_early(void *arg, const char *text, size_t len)
{
	const struct audit_shown *shown = arg;
	const char *early = shown->asked->early, *time = memmem(text, len, TIME, strlen(TIME));

	time = time ? time + strlen(TIME) : NULL;
	return time && (size_t)(text + len - time) >= strlen(early) &&
	       strncmp(time, early, strlen(early)) < 0;
}

/* ---- one row ---- */

/* Members with a column of their own, and those that only a program needs. */
static bool
is_in_row(const char *key)
{
	static const char *const others[] = { "n", "time", "event", "tenant", "execution", "limits" };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(key, others[i]) == 0)
			return false;
	return !is_hash(key);
}

static void
print_text(FILE *row, const char *text, size_t len)
{
	char word[WORD_MAX];

	quote_word(word, sizeof(word), text, len);
	fputs(word, row);
}

/* Prints a member as key=value. Only the first line of a text is printed. */
static void
print_member(FILE *row, const char *key, json_t *value)
{
	const char *text = json_string_value(value);

	if (json_is_integer(value))
		fprintf(row, " %s=%" JSON_INTEGER_FORMAT, key, json_integer_value(value));
	if (json_is_boolean(value))
		fprintf(row, " %s=%s", key, json_is_true(value) ? "yes" : "no");
	if (!text)
		return;
	if (strcmp(key, "by") == 0)
		text = admin_name(text);
	fprintf(row, " %s=", key);
	if (*text && text[strspn(text, plain)] == '\0')
		fputs(text, row);
	else
		print_text(row, text, strcspn(text, "\r\n"));
}

/* "2026-11-22 21:30:05  ada       execution-ended      x-m6c5pu78 status=ok ..." */
static void
print_row(const struct audit_shown *shown, json_t *record)
{
	own_mem char *text = NULL, *quoted = malloc(shown->width + 1);
	const char *time = admin_text(record, "time"), *key;
	size_t len;
	FILE *row = open_memstream(&text, &len);
	json_t *value;

	xassert(row && quoted);
	fprintf(row, "%.10s %.8s  %-10s  %-*s", time, strlen(time) > 11 ? time + 11 : "",
		admin_name(admin_text(record, "tenant")), EVENT_COLUMNS, admin_text(record, "event"));
	if (*admin_text(record, "execution"))
		fprintf(row, " %s", admin_text(record, "execution"));
	json_object_foreach(record, key, value)
		if (is_in_row(key))
			print_member(row, key, value);
	json_object_foreach(json_object_get(record, "output"), key, value)
		print_member(row, key, value);
	xassert(fclose(row) == 0);
	quote_line(quoted, shown->width + 1, text, len);
	puts(quoted);
}

static void
print_headings(const struct audit_shown *shown)
{
	if (shown->asked->table && shown->printed == 0)
		printf("%-19s  %-10s  %-*s WHAT\n", "TIME (UTC)", "WHO", EVENT_COLUMNS, "EVENT");
}

static void
print_record(struct audit_shown *shown, json_t *record)
{
	print_headings(shown);
	if (shown->asked->table)
		print_row(shown, record);
	else
		admin_print_json(stdout, record);
	shown->printed++;
}

/* ---- all of them ---- */

/* Prints it, or keeps it until it is clear that it is one of the last. */
static void
on_line(void *arg, const struct audit_line *line)
{
	struct audit_shown *shown = arg;
	json_t *record = wanted_record(shown->asked, line->text, line->len), **place;

	shown->seen++;
	if (!record)
		return;
	if (!shown->last) {
		print_record(shown, record);
		json_decref(record);
	} else {
		place = &shown->last[shown->n_last++ % shown->asked->last];
		json_decref(*place);
		*place = record;
	}
}

/* Later records are printed at once. */
static void
print_last(struct audit_shown *shown)
{
	size_t most = shown->asked->last;

	if (!shown->last)
		return;
	for (size_t i = shown->n_last > most ? shown->n_last - most : 0; i < shown->n_last; i++) {
		print_record(shown, shown->last[i % most]);
		json_decref(shown->last[i % most]);
	}
	free(shown->last);
	shown->last = NULL;
}

static bool
on_end(void *arg)
{
	struct audit_shown *shown = arg;

	print_last(shown);
	shown->failed = fflush(stdout) != 0;
	return !shown->failed;
}

static size_t
screen_columns(void)
{
	struct winsize size = { .ws_col = 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return WIDTH;
	return size.ws_col;
}

int
audit_show(const struct audit_asked *asked)
{
	struct audit_shown shown = { .asked = asked, .width = screen_columns() };
	const struct audit_files files = {
		.path = asked->path, .on_line = on_line, .on_end = on_end, .arg = &shown,
		.last = asked->last, .wants = audit_show_wants,
		.is_early = *asked->early ? audit_show_is_early : NULL,
	};
	int code;

	if (asked->last) {
		shown.last = calloc(asked->last, sizeof(json_t *));
		if (!shown.last)
			xalloc_fail(0);
	}
	code = audit_files_read(&files, asked->follow);
	free(shown.last);
	if (code)
		return code;
	if (shown.printed == 0 && !shown.failed && *asked->since)
		say("no record matches");	/* most of the others were not read */
	else if (shown.printed == 0 && !shown.failed)
		say("no record matches; the log has %zu", shown.seen);
	return 0;
}
