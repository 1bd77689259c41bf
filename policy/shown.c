/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor and mcp-python.   Owns: nothing.
 * Reads:   arguments of a call, in any shape, hostile. */
#include "policy/shown.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/quote.h"
#include "base/xalloc.h"
#include "policy/chain.h"

#define DEPTH_MAX 8	/* levels of names; a deeper value is shown as one text */
#define KEY_MAX 64	/* bytes; an object with longer names is shown as one text */
#define SHORT_MAX 60	/* bytes of a string that is shown behind its name */

const struct shown_bounds shown_in_form = { 16, 48, 4000, 100, 6000 };
const struct shown_bounds shown_whole = { SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX };

/* A text that is shown on lines of its own. */
struct text {
	const char *at;
	size_t len;
	char *made;		/* the text at, malloc'd; NULL: at belongs to the value */
	char *block;		/* the text as it is shown, malloc'd */
	bool whole;
};

struct arguments {
	FILE *list;		/* lines "name: value" */
	struct text *text;
	size_t n_texts, room;
};

/* One step of the path to a value. */
struct step {
	const struct step *up;	/* NULL: the first step */
	const char *key;	/* NULL: an element of an array */
	size_t index;
	unsigned int depth;
};

static char *
shown_dump(const json_t *value, size_t flags)
{
	return xalloc_check(json_dumps(value, flags | JSON_ENCODE_ANY));
}

static void
close_text(FILE *stream)
{
	xassert(fclose(stream) == 0);
}

/* ---- the list of arguments ---- */

static bool
is_identifier(const char *key)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_-";

	return *key && !key[strspn(key, letters)];
}

static void
put_name(FILE *to, const struct step *step)
{
	char word[KEY_MAX * QUOTE_PIECE + 8];

	if (step->up)
		put_name(to, step->up);
	if (!step->key) {
		fprintf(to, "[%zu]", step->index);
		return;
	}
	if (step->up)
		fputc('.', to);
	if (!is_identifier(step->key))
		quote_word(word, sizeof(word), step->key, strlen(step->key));
	fputs(is_identifier(step->key) ? step->key : word, to);
}

static void
put_text(struct arguments *arguments, const char *at, size_t len, char *made)
{
	if (arguments->n_texts == arguments->room) {
		arguments->room = arguments->room ? 2 * arguments->room : 16;
		arguments->text = xrealloc(arguments->text,
					   arguments->room * sizeof(*arguments->text));
	}
	arguments->text[arguments->n_texts++] = (struct text){ .at = at, .len = len,
							       .made = made };
	fprintf(arguments->list, "text %zu", arguments->n_texts);
}

static bool
is_short(const char *text, size_t len)
{
	return len <= SHORT_MAX && quote_is_plain(text, len);
}

static void
put_value(struct arguments *arguments, const json_t *value)
{
	const char *string = json_string_value(value);
	size_t len = json_string_length(value);
	char word[2 * SHORT_MAX + 8], *text;

	if (string && is_short(string, len)) {
		quote_word(word, sizeof(word), string, len);
		fputs(word, arguments->list);
	} else if (string) {
		put_text(arguments, string, len, NULL);
	} else {
		text = shown_dump(value, JSON_COMPACT);
		if (is_short(text, strlen(text))) {
			fputs(text, arguments->list);
			free(text);
		} else {
			put_text(arguments, text, strlen(text), text);
		}
	}
}

/* Can the members be listed by their names? */
static bool
is_walked(const json_t *value, unsigned int depth)
{
	json_t *object = (json_t *)value, *member;
	const char *key;

	if (depth >= DEPTH_MAX || (json_object_size(value) == 0 && json_array_size(value) == 0))
		return false;
	json_object_foreach(object, key, member)
		if (strlen(key) > KEY_MAX)
			return false;
	return true;
}

static void
shown_walk(struct arguments *arguments, const json_t *value, const struct step *step)
{
	struct step next = { .up = step, .depth = step ? step->depth + 1 : 1 };
	json_t *object = (json_t *)value, *member;

	if (is_walked(value, next.depth - 1)) {
		json_object_foreach(object, next.key, member)
			shown_walk(arguments, member, &next);
		for (next.key = NULL; next.index < json_array_size(value); next.index++)
			shown_walk(arguments, json_array_get(value, next.index), &next);
		return;
	}
	if (ftell(arguments->list) > 0)
		fputc('\n', arguments->list);
	if (step) {
		put_name(arguments->list, step);
		fputs(": ", arguments->list);
	}
	put_value(arguments, value);
}

/* ---- texts ---- */

/* Makes the blocks of all texts, within one bound: texts share the room that shorter ones do not
 * use. */
static void
make_blocks(struct arguments *arguments, const struct shown_bounds *bounds)
{
	size_t left = bounds->text_bytes, len;

	for (size_t i = 0; i < arguments->n_texts; i++) {
		struct text *text = &arguments->text[i];
		const struct quote_block block = { SHOWN_MARK, QUOTE_COLUMNS, bounds->text_lines,
						   left / (arguments->n_texts - i) };
		FILE *to = xalloc_check(open_memstream(&text->block, &len));

		text->whole = quote_block(to, &block, text->at, text->len);
		close_text(to);
		left -= len < left ? len : left;
	}
}

static void
put_texts(FILE *to, const struct arguments *arguments, const char *list)
{
	char hash[CHAIN_DIGITS + 1];

	for (size_t i = 0; i < arguments->n_texts; i++) {
		const struct text *text = &arguments->text[i];

		chain_hash(text->at, text->len, hash);
		fprintf(to, "text %zu, %zu bytes%s, SHA-256\n  %s\n", i + 1, text->len,
			text->whole ? "" : ", NOT ALL OF IT SHOWN", hash);
	}
	fprintf(to, "%sarguments:\n%s", arguments->n_texts > 0 ? "\n" : "", list);
	for (size_t i = 0; i < arguments->n_texts; i++)
		fprintf(to, "\n\ntext %zu:\n%s", i + 1, arguments->text[i].block);
}

bool
shown_write(FILE *to, const json_t *value, const struct shown_bounds *bounds)
{
	const struct quote_block block = { SHOWN_MARK, QUOTE_COLUMNS, bounds->lines,
					   bounds->bytes };
	struct arguments arguments = { .text = NULL };
	char *list = NULL, *shown = NULL;
	size_t list_len, shown_len;
	FILE *stream;
	bool fits;

	arguments.list = xalloc_check(open_memstream(&list, &list_len));
	shown_walk(&arguments, value, NULL);
	close_text(arguments.list);
	stream = xalloc_check(open_memstream(&shown, &shown_len));
	fits = quote_block(stream, &block, list, list_len) && arguments.n_texts <= bounds->texts;
	close_text(stream);
	if (fits) {
		make_blocks(&arguments, bounds);
		put_texts(to, &arguments, shown);
	}
	for (size_t i = 0; i < arguments.n_texts; i++) {
		free(arguments.text[i].made);
		free(arguments.text[i].block);
	}
	free(arguments.text);
	free(shown);
	free(list);
	return fits;
}

/* ---- as JSON ---- */

/* JSON_ENSURE_ASCII does not escape DEL, which can occur in strings only. */
char *
shown_json(const json_t *value, size_t flags)
{
	char *text = shown_dump(value, flags | JSON_ENSURE_ASCII), *with = NULL;
	size_t len;
	FILE *to;

	if (!strchr(text, 0x7f))
		return text;
	to = xalloc_check(open_memstream(&with, &len));
	for (const char *at = text; *at; at++)
		if (*at == 0x7f)
			fputs("\\u007f", to);
		else
			fputc(*at, to);
	close_text(to);
	free(text);
	return with;
}
