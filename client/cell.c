/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python repl, on typed lines. No I/O, no memory of its own. */
#include "client/cell.h"

#include <string.h>

#define N(array) (sizeof(array) / sizeof(array)[0])

static const char *const compound[] = {"async", "class", "def", "for",
				       "if",	"try",	 "while", "with"};
static const char *const further[] = {"elif", "else", "except", "finally"};

static bool
cell_is_word(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
	       (c >= 'a' && c <= 'z') || (unsigned char)c >= 0x80;
}

static bool
begins_with_one_of(const char *line, size_t len, const char *const *words, size_t n)
{
	size_t end = 0;

	while (end < len && cell_is_word(line[end]))
		end++;
	for (size_t i = 0; i < n; i++)
		if (strlen(words[i]) == end && memcmp(words[i], line, end) == 0)
			return true;
	return false;
}

static size_t
indentation(const char *line, size_t len)
{
	size_t at = 0;

	while (at < len && (line[at] == ' ' || line[at] == '\t' || line[at] == '\f' ||
			    line[at] == '\r'))
		at++;
	return at;
}

static bool
cell_is_within(const struct cell *cell)
{
	return cell->depth > 0 || cell->quote || cell->continued;
}

/* Skips the string that line[at] is in; returns its end, or the line's. */
static size_t
skip_string(struct cell *cell, const char *line, size_t len, size_t at)
{
	while (at < len) {
		if (line[at] == '\\') {
			at += 2;
			continue;
		}
		if (line[at] == cell->quote &&
		    (!cell->triple || (len - at >= 3 && line[at + 1] == cell->quote &&
				       line[at + 2] == cell->quote))) {
			at += cell->triple ? 3 : 1;
			cell->quote = 0;
			return at;
		}
		at++;
	}
	/* Only a backslash continues a string of one quote on the next line. */
	if (!cell->triple && at == len)
		cell->quote = 0;
	return len;
}

static size_t
open_string(struct cell *cell, const char *line, size_t len, size_t at)
{
	cell->quote = line[at];
	cell->triple = len - at >= 3 && line[at + 1] == line[at] && line[at + 2] == line[at];
	return at + (cell->triple ? 3 : 1);
}

static void
begin_statement(struct cell *cell, const char *line, size_t len)
{
	cell->any = true;
	cell->decorated = line[0] == '@';
	if (cell->decorated || begins_with_one_of(line, len, compound, N(compound)))
		cell->block = true;
}

void
cell_feed(struct cell *cell, const char *line, size_t len)
{
	size_t at = indentation(line, len);
	bool colon = false; /* it was the last character that counts */

	if (!cell_is_within(cell) && at < len && line[at] != '#')
		begin_statement(cell, line + at, len - at);
	at = 0;
	cell->continued = false;
	while (at < len) {
		char c = line[at];

		if (cell->quote) {
			at = skip_string(cell, line, len, at);
			colon = false;
			continue;
		}
		if (c == '#')
			break;
		if (c == '\\' && at + 1 + indentation(line + at + 1, len - at - 1) == len) {
			cell->continued = true;
			break;
		}
		if (c == '"' || c == '\'') {
			at = open_string(cell, line, len, at);
			continue;
		}
		if (c == '(' || c == '[' || c == '{')
			cell->depth++;
		else if ((c == ')' || c == ']' || c == '}') && cell->depth > 0)
			cell->depth--;
		if (indentation(&c, 1) == 0)
			colon = c == ':';
		at++;
	}
	/* Also for match and case, which are only words. */
	if (colon && !cell_is_within(cell))
		cell->block = true;
}

enum cell_state
cell_state(const struct cell *cell)
{
	if (cell_is_within(cell))
		return CELL_OPEN;
	if (!cell->any)
		return CELL_EMPTY;
	return cell->block ? CELL_BLOCK : CELL_WHOLE;
}

bool
cell_ends_before(const struct cell *cell, const char *line, size_t len)
{
	if (cell_is_within(cell) || !cell->any || cell->decorated)
		return false;
	if (len == 0 || indentation(line, len) > 0 || line[0] == '#')
		return false;
	return !begins_with_one_of(line, len, further, N(further));
}
