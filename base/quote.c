/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: every program that shows text to a person.   Owns: nothing.
 * Reads:   text of strangers, with any bytes. */
#include "base/quote.h"

#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

#define MARKS_MAX 4	/* combining marks in a row; more would cover the lines around them */
#define TAB 8		/* columns; at most QUOTE_PIECE */
#define CUT "..."
#define CUT_BLOCK "[...]"
#define N(array) (sizeof(array) / sizeof((array)[0]))

struct range {
	uint32_t first, last;
};

/* Unicode's control and format characters, line and paragraph separators, and all characters
 * that are default ignorable: Cc, Cf, Zl, Zp, Default_Ignorable_Code_Point of version 15. */
static const struct range unseen[] = {
	{ 0x00, 0x1f }, { 0x7f, 0x9f }, { 0xad, 0xad }, { 0x34f, 0x34f }, { 0x600, 0x605 },
	{ 0x61c, 0x61c }, { 0x6dd, 0x6dd }, { 0x70f, 0x70f }, { 0x890, 0x891 }, { 0x8e2, 0x8e2 },
	{ 0x115f, 0x1160 }, { 0x17b4, 0x17b5 }, { 0x180b, 0x180f }, { 0x200b, 0x200f },
	{ 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0x3164, 0x3164 }, { 0xfe00, 0xfe0f },
	{ 0xfeff, 0xfeff }, { 0xffa0, 0xffa0 }, { 0xfff0, 0xfffb }, { 0x110bd, 0x110bd },
	{ 0x110cd, 0x110cd }, { 0x13430, 0x1343f }, { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a },
	{ 0xe0000, 0xe0fff },
};

/* The blocks of combining marks that are used with any script. */
static const struct range combining[] = {
	{ 0x300, 0x36f },   { 0x483, 0x489 },   { 0x1ab0, 0x1aff },
	{ 0x1dc0, 0x1dff }, { 0x20d0, 0x20ff }, { 0xfe20, 0xfe2f },
};

static bool
quote_is_in(const struct range *range, size_t n, uint32_t code)
{
	for (size_t i = 0; i < n && range[i].first <= code; i++)
		if (code <= range[i].last)
			return true;
	return false;
}

/* ---- one character ---- */

struct piece {
	char text[QUOTE_PIECE];
	size_t len;
	size_t columns;		/* an upper bound */
	size_t taken;		/* bytes of the source text */
	bool blank;
};

static void
put_escape(struct piece *piece, const char *start, uint32_t code, unsigned int digits)
{
	static const char digit[] = "0123456789abcdef";

	memcpy(piece->text, start, 2);
	piece->len = 2;
	while (digits-- > 0)
		piece->text[piece->len++] = digit[code >> (4 * digits) & 0xf];
	piece->columns = piece->len;
}

/* marks: the number of combining marks before this character; NULL: they are not counted. */
static struct piece
next_piece(const char *text, size_t len, unsigned int *marks)
{
	size_t bad, n = utf8_character(text, len, &bad);
	uint32_t code = n > 0 ? utf8_code(text) : (unsigned char)*text;
	struct piece piece = { .taken = n > 0 ? n : 1, .blank = code == ' ' };
	bool is_mark = n > 0 && quote_is_in(combining, N(combining), code);

	if (marks)
		*marks = is_mark ? *marks + 1 : 0;
	if (n == 0 || code < ' ' || code == 0x7f) {
		put_escape(&piece, "\\x", code, 2);
	} else if (quote_is_in(unseen, N(unseen), code) || (marks && *marks > MARKS_MAX)) {
		if (code < 0x10000)
			put_escape(&piece, "\\u", code, 4);
		else
			put_escape(&piece, "\\U", code, 8);
	} else {
		memcpy(piece.text, text, n);
		piece.len = n;
		piece.columns = code < 0x1100 ? 1 : 2;
	}
	return piece;
}

size_t
quote_next(const char *text, size_t len, char piece_r[QUOTE_PIECE], size_t *piece_len_r)
{
	struct piece piece = next_piece(text, len, NULL);

	memcpy(piece_r, piece.text, piece.len);
	*piece_len_r = piece.len;
	return piece.taken;
}

bool
quote_is_plain(const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		struct piece piece = next_piece(text + at, len - at, NULL);

		if (piece.len != piece.taken || memcmp(piece.text, text + at, piece.len) != 0)
			return false;
		at += piece.taken;
	}
	return true;
}

/* ---- one line ---- */

/* Writes text as one line, as quote_line does, but with a backslash before each character that is
 * in escaped. */
static size_t
quote_put_line(char *to, size_t size, const char *text, size_t len, const char *escaped)
{
	unsigned int marks = 0;
	size_t n = 0, fits = 0, at = 0;	/* fits: the largest n that leaves room for CUT */

	while (at < len) {
		struct piece piece = next_piece(text + at, len - at, &marks);
		size_t more = piece.len + (piece.len == 1 && strchr(escaped, *piece.text) != NULL);

		if (n + more >= size) {
			memcpy(to + fits, CUT, strlen(CUT));
			n = fits + strlen(CUT);
			break;
		}
		if (more > piece.len)
			to[n++] = '\\';
		memcpy(to + n, piece.text, piece.len);
		n += piece.len;
		at += piece.taken;
		if (n + strlen(CUT) < size)
			fits = n;
	}
	to[n] = '\0';
	return n;
}

size_t
quote_line(char *to, size_t size, const char *text, size_t len)
{
	return quote_put_line(to, size, text, len, "");
}

size_t
quote_word(char *to, size_t size, const char *text, size_t len)
{
	size_t n;

	to[0] = '"';
	n = 1 + quote_put_line(to + 1, size - 2, text, len, "\"\\");
	to[n++] = '"';
	to[n] = '\0';
	return n;
}

/* ---- lines ---- */

/* A tab counts with its greatest width, at any column. */
static struct piece
next_of_line(const char *text, size_t len, unsigned int *marks)
{
	struct piece piece = next_piece(text, len, marks);

	if (*text == '\t') {
		piece.len = piece.columns = TAB;
		memset(piece.text, ' ', TAB);
		piece.blank = true;
	}
	return piece;
}

/* The length of the line break at text: 0, 1 or 2 bytes. */
static size_t
line_end(const char *text, size_t len)
{
	if (*text == '\n')
		return 1;
	return len > 1 && text[0] == '\r' && text[1] == '\n' ? 2 : 0;
}

/* The length of the next line: up to the line break, if that fits into columns. Otherwise the line
 * ends behind its last blank, if that is in the second half of the columns, or else where the
 * columns end. *bytes_r: the number of bytes in which the line is shown. */
static size_t
fit_line(const char *text, size_t len, size_t columns, size_t *bytes_r)
{
	size_t at = 0, used = 0, bytes = 0, behind_blank = 0;
	unsigned int marks = 0;

	*bytes_r = 0;
	while (at < len && line_end(text + at, len - at) == 0) {
		struct piece piece = next_of_line(text + at, len - at, &marks);

		used += piece.columns;
		if (used > columns && behind_blank > 0)
			return behind_blank;
		if (used > columns)
			break;
		bytes += piece.len;
		at += piece.taken;
		if (piece.blank && used > columns / 2) {
			behind_blank = at;
			*bytes_r = bytes;
		}
	}
	*bytes_r = bytes;
	return at;
}

static void
put_pieces(FILE *to, const char *text, size_t len)
{
	unsigned int marks = 0;

	for (size_t at = 0; at < len;) {
		struct piece piece = next_of_line(text + at, len - at, &marks);

		fwrite(piece.text, 1, piece.len, to);
		at += piece.taken;
	}
}

bool
quote_block(FILE *to, const struct quote_block *block, const char *text, size_t len)
{
	size_t at = 0, lines = 0, bytes = 0;
	bool folded = false;

	for (;;) {
		size_t more, n = fit_line(text + at, len - at, block->columns, &more);
		size_t end = at + n < len ? line_end(text + at + n, len - at - n) : 0;

		bytes += strlen(block->mark) + 1 + more + 1;
		fprintf(to, "%s%s", lines > 0 ? "\n" : "", block->mark);
		if (++lines > block->lines || bytes > block->bytes) {
			fputs(" " CUT_BLOCK, to);
			return false;
		}
		fputc(folded ? '+' : ' ', to);
		put_pieces(to, text + at, n);
		at += n + end;
		folded = end == 0;
		if (folded && at == len)
			return true;
	}
}
