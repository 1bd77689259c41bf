/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: a copy of a text while it is written.
 * Reads:   output of a script. */
#include "tools/shared/readable.h"

#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/xalloc.h"
#include "tools/shared/resources.h"

#define TOKEN_BYTES 4			/* of a model's token, about */
#define TRACEBACK "Traceback (most recent call last):"
#define FRAME "  File \""		/* how the frame of a traceback begins */
#define WARNINGS_MIN 3			/* that are told as a number */
#define PIECE 16000			/* bytes that a reader is advised to read at once */

size_t
reader_share(const struct reader *reader, unsigned int n)
{
	return reader->tokens ? (size_t)reader->tokens * TOKEN_BYTES / n + 1 : 0;
}

static bool
continues_character(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* The lines that a terminal would still show, roughly: text after a carriage return, or after the
 * cursor was moved up, takes the place of what the line had. A cleared screen has no lines. */
struct screen {
	struct {
		const char *at;
		size_t len;
	} *line;
	size_t n, row;		/* lines so far; the cursor's */
};

#define ALL_ROWS SIZE_MAX	/* the screen is cleared: "ESC [ 2 J", "ESC [ 3 J" */

/* The rows by which a sequence "ESC [ rows A" moves the cursor up, and *len_r, its length. 0: there
 * is none here. */
static size_t
moves_up(const char *at, const char *end, size_t *len_r)
{
	const char *digit = at + 2;
	size_t rows = 0;

	if (end - at < 3 || at[0] != '\033' || at[1] != '[')
		return 0;
	while (digit < end && *digit >= '0' && *digit <= '9' && rows < 1000)
		rows = rows * 10 + (size_t)(*digit++ - '0');
	*len_r = (size_t)(digit + 1 - at);
	if (digit < end && *digit == 'J' && rows > 1)
		return ALL_ROWS;
	return digit < end && *digit == 'A' ? rows ? rows : 1 : 0;
}

/* The length of a sequence "ESC [ ... letter", of a color for example; 0: there is none here. */
static size_t
sequence_len(const char *at, const char *end)
{
	const char *last = at + 2;

	if (end - at < 3 || at[0] != '\033' || at[1] != '[')
		return 0;
	while (last < end && *last >= 0x20 && *last < 0x40)
		last++;
	return last < end && *last >= 0x40 && *last < 0x7f ? (size_t)(last + 1 - at) : 0;
}

/* Copies a line without sequences, and without what a backspace has taken back. */
static char *
copy_line(char *to, const char *at, size_t len)
{
	const char *const start = to, *end = at + len;

	while (at < end) {
		size_t skip = *at == '\b' ? 1 : sequence_len(at, end);

		if (skip == 0)
			*to++ = *at++;
		else if (*at == '\b' && to > start)
			while (--to > start && continues_character(*to))
				;
		at += skip;
	}
	return to;
}

/* Returns a copy, malloc'd, and *len_r. */
static char *
screen_text(const struct screen *screen, size_t most, size_t *len_r)
{
	char *made = xalloc_check(malloc(most + 1)), *to = made;

	for (size_t i = 0; i < screen->n; i++) {
		to = copy_line(to, screen->line[i].at, screen->line[i].len);
		if (i + 1 < screen->n)
			*to++ = '\n';
	}
	*len_r = (size_t)(to - made);
	return made;
}

/* Returns a copy, malloc'd, and *len_r. */
static char *
without_overwritten(const char *text, size_t len, size_t *len_r)
{
	struct screen screen = { .n = 1 };
	const char *end = text + len, *from = text;
	size_t lines = 1;
	char *made;

	for (const char *at = text; (at = memchr(at, '\n', (size_t)(end - at))); at++)
		lines++;
	screen.line = xcalloc(lines, sizeof(*screen.line));
	screen.line[0].at = text;
	for (const char *at = text;; at++) {
		size_t control = 1, up = at < end ? moves_up(at, end, &control) : 0;

		if (at < end && !up && *at != '\n' && *at != '\r')
			continue;
		if (at > from) {
			screen.line[screen.row].at = from;
			screen.line[screen.row].len = (size_t)(at - from);
		}
		if (at == end)
			break;
		if (up == ALL_ROWS)
			screen.n = 1, screen.line[0].len = 0;
		if (up)
			screen.row -= up < screen.row ? up : screen.row;
		else if (*at == '\n' && ++screen.row == screen.n)
			screen.line[screen.n].at = at, screen.line[screen.n++].len = 0;
		at += up ? control - 1 : 0;
		from = at + 1;
	}
	made = screen_text(&screen, len, len_r);
	free(screen.line);
	return made;
}

/* ---- tracebacks ---- */

/* One line of a text; end: behind its newline, or the end of the text. */
struct line {
	const char *at, *end;
};

static struct line
line_at(const char *at, const char *end)
{
	const char *newline = memchr(at, '\n', (size_t)(end - at));

	return (struct line){ at, newline ? newline + 1 : end };
}

static bool
line_starts(const struct line *line, const char *with)
{
	return (size_t)(line->end - line->at) >= strlen(with) &&
	       memcmp(line->at, with, strlen(with)) == 0;
}

/* Is it the first line of a frame that is not in the caller's own code? */
static bool
is_of_library(const struct line *line)
{
	static const char *const own[] = { "/workspace/", "/tmp/", "/volume/", "/folder/", "/home/" };
	struct line path = { line->at + strlen(FRAME), line->end };

	if (*path.at != '/')
		return line_starts(&path, "<frozen ") ||
		       memmem(path.at, (size_t)(path.end - path.at), ".pyx\"", 5) ||
		       memmem(path.at, (size_t)(path.end - path.at), ".pxi\"", 5);
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (line_starts(&path, own[i]))
			return false;
	return true;
}

/* The end of the frame that begins here: its further lines are indented by four blanks, and may be
 * many; and the line that says how often it comes. */
static const char *
frame_end(const struct line *first, const char *end)
{
	const char *at = first->end;

	while (at < end) {
		const struct line line = line_at(at, end);

		if (!line_starts(&line, "    ") && !line_starts(&line, "  [Previous line "))
			break;
		at = line.end;
	}
	return at;
}

/* Writes the frames of a library that follow each other as one line: where the last one is. */
static const char *
write_library_frames(FILE *to, const char *at, const char *end)
{
	struct line last = line_at(at, end);
	unsigned int n = 0;

	while (at < end) {
		const struct line line = line_at(at, end);

		if (!line_starts(&line, FRAME) || !is_of_library(&line))
			break;
		last = line;
		at = frame_end(&line, end);
		n++;
	}
	if (n > 1 && last.end[-1] == '\n')
		fprintf(to, "%.*s (the last of %u frames of libraries)\n",
			(int)(last.end - 1 - last.at), last.at, n);
	else
		fwrite(last.at, 1, (size_t)(last.end - last.at), to);
	return at;
}

/* The end of an exception that a library has raised and another one has taken the place of, if its
 * traceback begins here and has no frame of the caller's code; NULL: it is another one. The message
 * is its first line. */
static const char *
cause_end(const char *at, const char *end, struct line *message_r)
{
	static const char *const links[] = {
		"\nDuring handling of the above exception, another exception occurred:\n\n",
		"\nThe above exception was the direct cause of the following exception:\n\n",
	};
	struct line line = line_at(at, end);

	if (!line_starts(&line, TRACEBACK))
		return NULL;
	for (line = line_at(line.end, end); line_starts(&line, "  "); line = line_at(line.end, end))
		if (line_starts(&line, FRAME) && !is_of_library(&line))
			return NULL;
	*message_r = line;
	for (; line.at < end && !line_starts(&line, TRACEBACK); line = line_at(line.end, end))
		for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++)
			if ((size_t)(end - line.end) > strlen(links[i]) &&
			    memcmp(line.end, links[i], strlen(links[i])) == 0)
				return line.end + strlen(links[i]);
	return NULL;
}

/* Writes the first of the exceptions that follow each other inside of libraries: the cause of the
 * others. Returns the end of the last of them. */
static const char *
write_causes(FILE *to, const char *at, const char *end)
{
	struct line message;
	const char *next = cause_end(at, end, &message);

	if (next)
		fprintf(to, "(cause: %.*s)\n", (int)(message.end - 1 - message.at), message.at);
	for (; next; next = cause_end(at, end, &message))
		at = next;
	return at;
}

/* Returns a copy, malloc'd, and *len_r. */
static char *
with_folded_frames(const char *text, size_t len, size_t *len_r)
{
	const char *at = text, *end = text + len;
	char *made = NULL;
	FILE *to = xalloc_check(open_memstream(&made, len_r));

	while (at < end) {
		const struct line line = line_at(at = write_causes(to, at, end), end);

		if (line_starts(&line, FRAME) && is_of_library(&line)) {
			at = write_library_frames(to, at, end);
			continue;
		}
		fwrite(line.at, 1, (size_t)(line.end - line.at), to);
		at = line.end;
	}
	xalloc_check(fclose(to) == 0 ? made : NULL);
	return made;
}

/* ---- equal lines ---- */

/* How many equal lines follow a whole line. */
static size_t
equal_lines(const struct line *line, const char *end)
{
	size_t len = (size_t)(line->end - line->at), n = 0;

	while (line->end[-1] == '\n' && (size_t)(end - line->end) >= (n + 1) * len &&
	       memcmp(line->end + n * len, line->at, len) == 0)
		n++;
	return n;
}

/* The bytes of warnings of Python that follow the one in this line, from the same place, and begin
 * like it, as one for each glyph that a font lacks does: "a.py:3: UserWarning: Glyph". Each may have
 * its line of code. 0: there are few. Otherwise the line's end becomes that of the first one, and
 * *n_r is set. */
static size_t
alike_warnings(struct line *line, const char *end, size_t *n_r)
{
	const char *word = memmem(line->at, (size_t)(line->end - line->at), "Warning: ", 9), *at;
	struct line code = line_at(line->end, end), next;
	size_t n = 0, begin, code_len = line_starts(&code, "  ") ? (size_t)(code.end - code.at) : 0;

	if (!word || word == line->at || word[-1] == ' ' ||
	    !(word = memchr(word + 9, ' ', (size_t)(line->end - word - 9))))
		return 0;
	begin = (size_t)(word - line->at);
	for (at = line->end + code_len;; at = next.end + code_len, n++) {
		next = line_at(at, end);
		if ((size_t)(next.end - at) < begin || memcmp(at, line->at, begin) != 0 ||
		    (size_t)(end - next.end) < code_len ||
		    memcmp(next.end, code.at, code_len) != 0)
			break;
	}
	if (n < WARNINGS_MIN)
		return 0;
	line->end += code_len;
	*n_r = n;
	return (size_t)(at - line->end);
}

/* Writes equal lines that follow each other once, and so warnings that begin alike, with their
 * number, where that is shorter. Returns a copy, malloc'd, and *len_r; or NULL: there are none. */
static char *
with_folded_lines(const char *text, size_t len, size_t *len_r)
{
	const char *from = text, *end = text + len;
	char *made = NULL, said[64];
	FILE *to = NULL;
	struct line line;

	for (const char *at = text; at < end; at = line.end) {
		line = line_at(at, end);
		size_t n = equal_lines(&line, end), bytes = n * (size_t)(line.end - at);
		bool alike = n == 0 && (bytes = alike_warnings(&line, end, &n)) > 0;
		size_t said_len = (size_t)snprintf(said, sizeof(said), alike
			? "... (%zu more warnings like this)\n"
			: "... (the line above %zu more times)\n", n);

		if (bytes <= said_len)
			continue;
		if (!to)
			to = xalloc_check(open_memstream(&made, len_r));
		fwrite(from, 1, (size_t)(line.end - from), to);
		fwrite(said, 1, said_len, to);
		from = line.end += bytes;
	}
	if (to) {
		fwrite(from, 1, (size_t)(end - from), to);
		xalloc_check(fclose(to) == 0 ? made : NULL);
	}
	return made;
}

/* The bytes between head and tail, of the output itself: without the line that says that some were
 * dropped (engine/output.c), and with those. */
static uint64_t
left_out(const struct readable *text, const char *head, size_t len)
{
	char line[96];
	int n = snprintf(line, sizeof(line), "\n[... %llu bytes not shown ...]\n",
			 (unsigned long long)text->dropped);

	return text->dropped && memmem(head, len, line, (size_t)n)
		? len - (size_t)n + text->dropped : len;
}

/* Writes where the rest, from byte first on, can be read, as the end of a sentence. The uri that is
 * named is the one of a piece: the whole may be far more than a model can read. */
static void
say_rest(FILE *to, const struct readable *text, size_t first, const struct reader *reader)
{
	size_t last = (text->len - first > PIECE ? first + PIECE : text->len) - 1;
	own_mem char *uri = text->name && reader->execution_id
		? resources_keep_text(reader->host->config, reader->host->tenant,
				      reader->execution_id, text->name, text->text,
				      text->len + text->unsaid)
		: NULL;

	if (uri)
		fprintf(to, "To read on: the resource %s?bytes=%zu-%zu, for some minutes; to search it, "
			"pass this uri without ?bytes in files", uri, first, last);
	else if (reader->has_parts)
		fputs("All of the output is at the uris below", to);
	else
		fputs("Print less, or write to a file in /workspace and print parts of it", to);
}

void
readable_say(FILE *to, const struct readable *text, size_t budget, const struct reader *reader)
{
	size_t len = text->len, head = budget / 2, tail;
	char *made = NULL;
	const char *at = text->text;

	if (len > 0 && (memchr(at, '\r', len) || memchr(at, '\b', len) ||
			memchr(at, '\033', len)))
		at = made = without_overwritten(at, len, &len);
	if (text->has_frames && memmem(at, len, FRAME, strlen(FRAME))) {
		char *folded = with_folded_frames(at, len, &len);

		free(made);
		at = made = folded;
	}
	if (text->folds && len > 0) {
		char *folded = with_folded_lines(at, len, &len);

		if (folded) {
			free(made);
			at = made = folded;
		}
	}
	if (budget == 0 || len <= budget) {
		fwrite(at, 1, len, to);
		free(made);
		return;
	}
	tail = len - head;
	while (head > 0 && continues_character(at[head]))
		head--;
	while (tail < len && continues_character(at[tail]))
		tail++;
	fwrite(at, 1, head, to);
	fprintf(to, "\n... [%llu bytes are left out here. ",
		(unsigned long long)left_out(text, at + head, tail - head));
	say_rest(to, text, memcmp(at, text->text, head) == 0 ? head : 0, reader);
	fputs("] ...\n", to);
	fwrite(at + tail, 1, len - tail, to);
	free(made);
}

char *
readable_make(const struct readable *text, size_t budget, const struct reader *reader,
	      size_t *len_r)
{
	char *made = NULL;
	FILE *to = xalloc_check(open_memstream(&made, len_r));

	readable_say(to, text, budget, reader);
	xalloc_check(fclose(to) == 0 ? made : NULL);
	return made;
}
