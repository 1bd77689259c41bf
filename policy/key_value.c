/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, before it drops privilege.   Owns: strings in a config.
 * Reads:   values that an administrator wrote: trusted, but perhaps mistaken. */
#include "policy/keys.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/why.h"
#include "base/xalloc.h"
#include "policy/config.h"
#include "policy/words.h"

#define KiB UINT64_C(1024)
#define MiB (1024 * KiB)
#define GiB (1024 * MiB)

/* The type of a key's slot. */
enum shape {
	SHAPE_LIST,		/* of words */
	SHAPE_U32,
	SHAPE_U64,
	SHAPE_BOOL,
	SHAPE_CHOICE,
	SHAPE_STRING,
};

static enum shape
shape_of(const struct key *key)
{
	static const enum shape shapes[KEY_KIND_COUNT] = {
#define KIND(kind, shape) [KEY_##kind] = SHAPE_##shape,
#include "policy/keys.def"
	};

	return shapes[key->kind];
}

bool
key_is_list(const struct key *key)
{
	return shape_of(key) == SHAPE_LIST;
}

static bool
key_owns(const struct key *key)
{
	return shape_of(key) == SHAPE_LIST || shape_of(key) == SHAPE_STRING;
}

size_t
key_size(const struct key *key)
{
	static const size_t size[] = {
		[SHAPE_U32] = sizeof(uint32_t),
		[SHAPE_U64] = sizeof(uint64_t),
		[SHAPE_BOOL] = sizeof(bool),
		[SHAPE_CHOICE] = sizeof(uint32_t),
		[SHAPE_STRING] = sizeof(char *),
		[SHAPE_LIST] = sizeof(struct config_list),
	};

	return size[shape_of(key)];
}

/* ---- reading ---- */

static char *
copy_of(const char *text, size_t len)
{
	return xalloc_check(strndup(text, len));
}

/* Digits, then one letter if suffixes are allowed. UINT64_MAX also stands for every larger
 * number: it is above every row's range. */
static int
key_value_parse_number(const char *value, bool suffixes, uint64_t *number_r)
{
	uint64_t number, factor = 1;
	char *end;

	if (!isdigit((unsigned char)value[0]))
		return -EINVAL;
	errno = 0;
	number = strtoull(value, &end, 10);
	if (errno == ERANGE)
		number = UINT64_MAX;
	if (suffixes && *end) {
		const char *letter = strchr("KMG", *end);

		if (!letter)
			return -EINVAL;
		factor = *letter == 'K' ? KiB : *letter == 'M' ? MiB : GiB;
		end++;
	}
	if (*end)
		return -EINVAL;
	if (__builtin_mul_overflow(number, factor, number_r))
		*number_r = UINT64_MAX;
	return 0;
}

static int
set_number(const struct key *key, void *base, const char *value, struct why *why_r)
{
	void *slot = (char *)base + key->offset;
	bool suffixes = key->kind == KEY_BYTES;
	uint64_t number;

	if (key_value_parse_number(value, suffixes, &number) < 0 ||
	    number < key->least || number > key->most)
		return why_say(why_r, -EINVAL, key->name,
			       "\"%.40s\" is not a %s from %" PRIu64 " to %" PRIu64, value,
			       suffixes ? "number of bytes (K, M or G may follow)"
					: "whole number",
			       key->least, key->most);
	if (key->kind == KEY_U32)
		*(uint32_t *)slot = (uint32_t)(number * key->unit);
	else
		*(uint64_t *)slot = number * key->unit;
	return 0;
}

static bool
is_string(const struct key *key, const char *value, size_t len)
{
	/* An empty value is right where the standard value is empty. */
	return len ? word_kind(key->kind)->fits(value, len) : *key->standard == '\0';
}

static int
set_string(const struct key *key, void *base, const char *value, struct why *why_r)
{
	char **slot = (char **)((char *)base + key->offset);
	size_t len = strlen(value);

	if (len > key->most || !is_string(key, value, len))
		return why_say(why_r, -EINVAL, key->name,
			       "\"%.40s\" is not %s of at most %" PRIu64 " bytes", value,
			       word_kind(key->kind)->what, key->most);
	free(*slot);
	*slot = len ? copy_of(value, len) : NULL;
	return 0;
}

static void
clear_list(struct config_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->item[i]);
	free(list->item);
	memset(list, 0, sizeof(*list));
}

static void
key_value_append(struct config_list *list, char *word)
{
	char **item = xrealloc(list->item, (list->n + 2) * sizeof(*item));

	item[list->n++] = word;
	item[list->n] = NULL;
	list->item = item;
}

static int
key_value_add_word(const struct key *key, struct config_list *list, const char *word, size_t len,
		   struct why *why_r)
{
	if (!word_kind(key->kind)->fits(word, len))
		return why_say(why_r, -EINVAL, key->name, "\"%.*s\" is not %s",
			       len > 40 ? 40 : (int)len, word, word_kind(key->kind)->what);
	if (list->n >= key->most)
		return why_say(why_r, -EINVAL, key->name, "more than %" PRIu64 " words",
			       key->most);
	key_value_append(list, copy_of(word, len));
	return 0;
}

/* "+ numpy pandas": in addition to the modules that the list has. */
static bool
adds_modules(const struct key *key, const char **value)
{
	const char *at = *value + strspn(*value, " \t");

	if (key->kind != KEY_MODULES || *at != '+' || (at[1] && !strchr(" \t,", at[1])))
		return false;
	*value = at + 1;
	return true;
}

static int
set_list(const struct key *key, void *base, const char *value, bool more, struct why *why_r)
{
	struct config_list *list = (struct config_list *)((char *)base + key->offset);
	/* "pandas>=2,<3" is one word, as is an argument with a comma */
	const char *between = key->kind == KEY_PACKAGES || key->kind == KEY_COMMAND ? " \t"
										   : " \t,";

	if (!more && !adds_modules(key, &value))
		clear_list(list);
	for (value += strspn(value, between); *value; value += strspn(value, between)) {
		size_t len = strcspn(value, between);
		int r = key_value_add_word(key, list, value, len, why_r);

		if (r < 0)
			return r;
		value += len;
	}
	return 0;
}

static int
set_bool(const struct key *key, void *base, const char *value, struct why *why_r)
{
	bool yes = strcmp(value, "yes") == 0;

	if (!yes && strcmp(value, "no") != 0)
		return why_say(why_r, -EINVAL, key->name, "\"%.40s\" is neither yes nor no",
			       value);
	*(bool *)((char *)base + key->offset) = yes;
	return 0;
}

static size_t
choice_length(const char *choices)
{
	return strcspn(choices, "|");
}

static int
set_choice(const struct key *key, void *base, const char *value, struct why *why_r)
{
	uint32_t *slot = (uint32_t *)((char *)base + key->offset), n = 1;
	size_t len;

	if (!*value && !*key->standard) {
		*slot = 0;
		return 0;
	}
	for (const char *at = key->choices;; at += len + 1, n++) {
		len = choice_length(at);
		if (strlen(value) == len && memcmp(at, value, len) == 0) {
			*slot = n;
			return 0;
		}
		if (!at[len])
			return why_say(why_r, -EINVAL, key->name, "\"%.40s\" is none of %s",
				       value, key->choices);
	}
}

int
key_set(const struct key *key, void *base, const char *value, bool more, struct why *why_r)
{
	switch (shape_of(key)) {
	case SHAPE_U32:
	case SHAPE_U64:
		return set_number(key, base, value, why_r);
	case SHAPE_BOOL:
		return set_bool(key, base, value, why_r);
	case SHAPE_CHOICE:
		return set_choice(key, base, value, why_r);
	case SHAPE_STRING:
		return set_string(key, base, value, why_r);
	case SHAPE_LIST:
		return set_list(key, base, value, more, why_r);
	}
	return -EINVAL;
}

void
key_clear(const struct key *key, void *base)
{
	void *slot = (char *)base + key->offset;

	if (key_is_list(key)) {
		clear_list(slot);
	} else if (key_owns(key)) {
		free(*(char **)slot);
		*(char **)slot = NULL;
	}
}

void
key_own(const struct key *key, void *base)
{
	void *slot = (char *)base + key->offset;

	if (key_is_list(key)) {
		struct config_list *list = slot, theirs = *list;

		memset(list, 0, sizeof(*list));
		for (size_t i = 0; i < theirs.n; i++)
			key_value_append(list, copy_of(theirs.item[i], strlen(theirs.item[i])));
	} else if (key_owns(key) && *(char **)slot) {
		*(char **)slot = copy_of(*(char **)slot, strlen(*(char **)slot));
	}
}

/* ---- printing ---- */

static void
print_bytes(uint64_t bytes, FILE *out)
{
	const char *suffix = "";

	if (bytes && bytes % GiB == 0) {
		bytes /= GiB;
		suffix = "G";
	} else if (bytes && bytes % MiB == 0) {
		bytes /= MiB;
		suffix = "M";
	} else if (bytes && bytes % KiB == 0) {
		bytes /= KiB;
		suffix = "K";
	}
	fprintf(out, "%" PRIu64 "%s", bytes, suffix);
}

/* Prints a list in several lines: people read them, and a line that is too long cannot be read
 * again. */
static void
print_list(const struct config_list *list, FILE *out)
{
	size_t column = 16;

	for (size_t i = 0; i < list->n; i++) {
		size_t len = strlen(list->item[i]);

		if (column > 8 && column + 1 + len > 80) {
			fputs("\n\t", out);
			column = 8;
		} else if (i > 0) {
			fputc(' ', out);
			column++;
		}
		fputs(list->item[i], out);
		column += len;
	}
}

static void
print_choice(const struct key *key, uint32_t n, FILE *out)
{
	const char *at = key->choices;

	if (n == 0)
		return;
	while (--n > 0)
		at += choice_length(at) + 1;
	fprintf(out, "%.*s", (int)choice_length(at), at);
}

void
key_print(const struct key *key, const void *base, FILE *out)
{
	const void *slot = (const char *)base + key->offset;
	const char *text;

	fprintf(out, "%s = ", key->name);
	switch (shape_of(key)) {
	case SHAPE_U32:
		fprintf(out, "%" PRIu64, *(const uint32_t *)slot / key->unit);
		break;
	case SHAPE_U64:
		if (key->kind == KEY_BYTES)
			print_bytes(*(const uint64_t *)slot, out);
		else
			fprintf(out, "%" PRIu64, *(const uint64_t *)slot / key->unit);
		break;
	case SHAPE_BOOL:
		fputs(*(const bool *)slot ? "yes" : "no", out);
		break;
	case SHAPE_CHOICE:
		print_choice(key, *(const uint32_t *)slot, out);
		break;
	case SHAPE_STRING:
		text = *(char *const *)slot;
		fputs(text ? text : "", out);
		break;
	case SHAPE_LIST:
		print_list(slot, out);
		break;
	}
	fputc('\n', out);
}
