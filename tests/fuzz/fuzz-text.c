/* SPDX-License-Identifier: Apache-2.0 */
/* A stranger's text as people see it, and as JSON has it. The first two bytes are the space that
 * is available. The target asserts:
 *
 * - A line fits its space and has only characters that are visible as themselves. A word ends at
 *   its closing quote.
 * - Each line of a block begins with the mark and is within its width. The numbers of lines and
 *   bytes are within their limits.
 * - JSON text is read back as the same text, and has the announced length. */
#include "fuzz.h"

#include <jansson.h>

#include "base/jsonout.h"
#include "base/quote.h"
#include "base/utf8.h"

static void
check_line(size_t size, const char *text, size_t len)
{
	char *to = malloc(size);
	size_t n = quote_line(to, size, text, len);

	MUST(n < size && strlen(to) == n && quote_is_plain(to, n));
	/* Too many combining marks become escapes. */
	if (n == len && quote_is_plain(text, len) && !strchr(to, '\\'))
		MUST(memcmp(to, text, n) == 0);
	free(to);
}

static void
check_word(size_t size, const char *text, size_t len)
{
	char *to = malloc(size);
	size_t n = quote_word(to, size, text, len);

	MUST(n < size && n >= 2 && strlen(to) == n && quote_is_plain(to, n));
	MUST(to[0] == '"' && to[n - 1] == '"');
	for (size_t i = 1; i < n - 1; i++) {
		MUST(to[i] != '"');
		i += to[i] == '\\';
	}
	free(to);
}

/* A character has at least one column; a combining mark counts as one. */
static size_t
characters(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += (text[i] & 0xc0) != 0x80;
	return n;
}

static void
check_block(const struct quote_block *block, const char *text, size_t len)
{
	size_t shown_len, lines = 0;
	char *shown = NULL;
	FILE *to = open_memstream(&shown, &shown_len);
	bool all;

	MUST(to != NULL);
	all = quote_block(to, block, text, len);
	MUST(fclose(to) == 0);
	MUST(utf8_prefix(shown, shown_len) == shown_len);
	for (const char *at = shown, *end; at; at = end ? end + 1 : NULL, lines++) {
		size_t n;

		end = strchr(at, '\n');
		n = end ? (size_t)(end - at) : strlen(at);
		MUST(n >= 2 && at[0] == *block->mark && (at[1] == ' ' || at[1] == '+'));
		MUST(quote_is_plain(at, n));
		MUST(characters(at + 2, n - 2) <= block->columns);
	}
	MUST(lines <= block->lines + !all);
	MUST(shown_len <= block->bytes + (all ? 0 : 8));
	free(shown);
}

static void
check_json(const char *text, size_t len, size_t budget)
{
	size_t fits = jsonout_fit(text, len, budget);
	struct jsonout out;
	json_t *back;

	jsonout_init(&out);
	jsonout_text(&out, text, len);
	MUST(out.len == jsonout_cost(text, len));
	back = json_loadb(out.at, out.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	MUST(json_is_string(back));
	MUST(json_string_length(back) == jsonout_repaired(text, len));
	if (utf8_prefix(text, len) == len)
		MUST(json_string_length(back) == len &&
		     memcmp(json_string_value(back), text, len) == 0);
	MUST(fits <= len && (fits == 0 || jsonout_cost(text, fits) <= budget + 2));
	MUST(fits == len || (unsigned char)text[fits] < 0x80 || (unsigned char)text[fits] >= 0xc0 ||
	     utf8_prefix(text, len) < len);
	json_decref(back);
	jsonout_done(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rest rest = { data, size };
	uint8_t room = rest_byte(&rest), lines = rest_byte(&rest);
	const struct quote_block block = { .mark = ">", .columns = 2 * QUOTE_PIECE + room % 64U,
					   .lines = 1U + lines % 16, .bytes = 16U * room + 8 };
	char *text = malloc(rest.len ? rest.len : 1);

	memcpy(text, rest.at, rest.len);
	check_line(4U + room, text, rest.len);
	check_word(6U + room, text, rest.len);
	check_block(&block, text, rest.len);
	check_json(text, rest.len, room);
	free(text);
	return 0;
}
