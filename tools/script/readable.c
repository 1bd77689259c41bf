/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: a copy of a text while it is written.
 * Reads:   output of a script. */
#include "tools/script/readable.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "mcp/tool.h"
#include "tools/shared/resources.h"

#define TOKEN_BYTES 4			/* of a model's token, about */

size_t
reader_share(const struct reader *reader, unsigned int n)
{
	return reader->tokens ? (size_t)reader->tokens * TOKEN_BYTES / n + 1 : 0;
}

/* The lines that a terminal would still show, roughly: text after a carriage return, or after the
 * cursor was moved up, takes the place of what the line had. */
struct screen {
	struct {
		const char *at;
		size_t len;
	} *line;
	size_t n, row;		/* lines so far; the cursor's */
};

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
	return digit < end && *digit == 'A' ? rows ? rows : 1 : 0;
}

/* Returns a copy, malloc'd, and *len_r. */
static char *
screen_text(const struct screen *screen, size_t most, size_t *len_r)
{
	char *made = xalloc_check(malloc(most + 1)), *to = made;

	for (size_t i = 0; i < screen->n; i++) {
		memcpy(to, screen->line[i].at, screen->line[i].len);
		to += screen->line[i].len;
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
		if (up)
			screen.row -= up < screen.row ? up : screen.row;
		else if (*at == '\n' && ++screen.row == screen.n)
			screen.line[screen.n++].at = at;
		at += up ? control - 1 : 0;
		from = at + 1;
	}
	made = screen_text(&screen, len, len_r);
	free(screen.line);
	return made;
}

static bool
continues_character(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Writes where the whole text can be read, as the end of a sentence. */
static void
say_rest(FILE *to, const struct readable *text, const struct reader *reader)
{
	char *uri = text->name && reader->execution_id
			    ? resources_keep_text(reader->host->config, reader->host->tenant,
						  reader->execution_id, text->name, text->text,
						  text->len)
			    : NULL;

	if (uri)
		fprintf(to, "All of it can be read as the resource %s for some minutes", uri);
	else
		fputs("Print less, or write to a file in /workspace and print parts of it", to);
	free(uri);
}

void
readable_say(FILE *to, const struct readable *text, size_t budget, const struct reader *reader)
{
	size_t len = text->len, head = budget / 2, tail;
	char *made = NULL;
	const char *at = text->text;

	if (len > 0 && (memchr(at, '\r', len) || memmem(at, len, "\033[", 2)))
		at = made = without_overwritten(at, len, &len);
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
	fprintf(to, "\n... [%zu bytes are left out here. ", tail - head);
	say_rest(to, text, reader);
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
