/* Runs in: the supervisor.   Owns: a copy of a text while it is written.
 * Reads:   output of a script. */
#include "tools/script/readable.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

/* What a terminal shows of a line in the end, about: the text after its last carriage return, but
 * for those that end it. Returns its beginning, and *len_r. */
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

static void
say_ends(FILE *to, const char *text, size_t len, size_t budget)
{
	size_t head = budget / 2, tail = len - budget / 2;

	while (head > 0 && continues_character(text[head]))
		head--;
	while (tail < len && continues_character(text[tail]))
		tail++;
	fwrite(text, 1, head, to);
	fprintf(to, "\n... [%zu bytes are left out here. Print less, or write to a file in "
		"/workspace and print parts of it] ...\n", tail - head);
	fwrite(text + tail, 1, len - tail, to);
}

void
readable_say(FILE *to, const char *text, size_t len, size_t budget)
{
	char *made = NULL;

	if (len > 0 && memchr(text, '\r', len))
		text = made = without_overwritten(text, len, &len);
	if (budget == 0 || len <= budget)
		fwrite(text, 1, len, to);
	else
		say_ends(to, text, len, budget);
	free(made);
}
