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

/* The part of a line that a terminal would still show, roughly: the text after its last carriage
 * return, not counting those at its end. Returns its beginning, and *len_r. */
static const char *
last_state(const char *line, size_t len, size_t *len_r)
{
	const char *from;

	while (len > 0 && line[len - 1] == '\r')
		len--;
	from = memrchr(line, '\r', len);
	from = from ? from + 1 : line;
	*len_r = len - (size_t)(from - line);
	return from;
}

/* Returns a copy, malloc'd, and *len_r. */
static char *
without_overwritten(const char *text, size_t len, size_t *len_r)
{
	char *made = xalloc_check(malloc(len + 1)), *to = made;
	const char *end = text + len;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t line_len = (size_t)((newline ? newline : end) - text), kept;
		const char *line = last_state(text, line_len, &kept);

		memcpy(to, line, kept);
		to += kept;
		if (newline)
			*to++ = '\n';
		text += line_len + (newline != NULL);
	}
	*len_r = (size_t)(to - made);
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

	if (len > 0 && memchr(at, '\r', len))
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
