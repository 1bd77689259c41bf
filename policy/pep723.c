/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: a block's content, once found.
 * Reads:   scripts, of any bytes.
 *
 * The reference expression is greedy: a block ends at the last closing line in a run of comment
 * lines, which ends at the first line that is not a comment. So a run has at most one block, which
 * begins at its first opening line, and one pass over the lines finds all blocks. */
#include "policy/pep723.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct line {
	const char *at;
	size_t len;		/* without the line break */
	bool ended;		/* by a line break, not by the end of the text */
};

/* A run of comment lines, as far as it has been read. */
struct run {
	const char *opening, *closing;	/* the block's first and last line; NULL: not seen yet */
	unsigned int opening_line;
	bool is_script;
};

/* Takes the line at *at, and moves *at behind its line break. */
static struct line
take_line(const char **at, const char *end)
{
	struct line line = { .at = *at };
	const char *stop = *at;

	while (stop < end && *stop != '\n' && *stop != '\r')
		stop++;
	line.len = (size_t)(stop - *at);
	line.ended = stop < end;
	if (stop < end && *stop == '\r' && stop + 1 < end && stop[1] == '\n')
		stop++;
	*at = line.ended ? stop + 1 : stop;
	return line;
}

static bool
line_is(const struct line *line, const char *text)
{
	return line->len == strlen(text) && memcmp(line->at, text, line->len) == 0;
}

static bool
is_comment(const struct line *line)
{
	return line->len > 0 && line->at[0] == '#' &&
	       (line->len == 1 || line->at[1] == ' ');
}

/* "# /// TYPE" */
static bool
is_opening(const struct line *line)
{
	if (line->len < 7 || memcmp(line->at, "# /// ", 6) != 0)
		return false;
	for (size_t i = 6; i < line->len; i++)
		if (!(isascii((unsigned char)line->at[i]) &&
		      (isalnum((unsigned char)line->at[i]) || line->at[i] == '-')))
			return false;
	return true;
}

static void
pep723_read_line(struct run *run, const struct line *line, unsigned int number)
{
	if (!run->opening) {
		if (line->ended && is_opening(line)) {
			run->opening = line->at;
			run->opening_line = number;
			run->is_script = line_is(line, "# /// script");
		}
	} else if (number >= run->opening_line + 2 && line_is(line, "# ///")) {
		run->closing = line->at;
	}
}

/* Copies the content without the comment marks. */
static int
copy_content(const struct run *run, struct pep723 *found)
{
	const char *at = run->opening;
	char *to = malloc((size_t)(run->closing - run->opening) + 1);

	if (!to)
		return -ENOMEM;
	found->toml = to;
	(void)take_line(&at, run->closing);
	while (at < run->closing) {
		struct line line = take_line(&at, run->closing);
		size_t skip = line.len > 1 ? 2 : 1;

		memcpy(to, line.at + skip, line.len - skip);
		to += line.len - skip;
		*to++ = '\n';
	}
	*to = '\0';
	found->toml_len = (size_t)(to - found->toml);
	return 0;
}

static int
end_run(struct run *run, struct pep723 *found)
{
	int r = 0;

	if (run->closing && run->is_script) {
		if (found->n == 0) {
			found->line = run->opening_line;
			r = copy_content(run, found);
		} else if (found->n == 1) {
			found->second_line = run->opening_line;
		}
		found->n++;
	}
	*run = (struct run){ .opening = NULL };
	return r;
}

int
pep723_find(const char *script, size_t len, struct pep723 *found_r)
{
	const char *at = script, *end = script + len;
	struct pep723 found = { .n = 0 };
	struct run run = { .opening = NULL };
	int r = 0;

	*found_r = found;
	/* Most scripts have no block: they need not be read line by line. */
	if (!memmem(script, len, "# /// script", 12))
		return 0;
	if (len >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
		at += 3;
	for (unsigned int number = 1; at < end && r == 0; number++) {
		struct line line = take_line(&at, end);

		if (is_comment(&line))
			pep723_read_line(&run, &line, number);
		else
			r = end_run(&run, &found);
	}
	if (r == 0)
		r = end_run(&run, &found);
	if (r < 0)
		pep723_done(&found);
	else
		*found_r = found;
	return r;
}

void
pep723_done(struct pep723 *found)
{
	free(found->toml);
	*found = (struct pep723){ .n = 0 };
}

static bool
pep723_says(const struct line *line, const char *text, size_t len)
{
	const char *at = line->at, *end = line->at + line->len;

	if (len == 0)
		return memmem(at, line->len, "\"\"", 2) || memmem(at, line->len, "''", 2);
	while ((at = memmem(at, (size_t)(end - at), text, len)) != NULL) {
		if (at > line->at && (at[-1] == '"' || at[-1] == '\'') &&
		    at + len < end && at[len] == at[-1])
			return true;
		at++;
	}
	return false;
}

static bool
has_key(const struct line *line, const char *key)
{
	size_t len = strlen(key), at = strspn(line->at, " \t\"'");

	return at < line->len && line->len - at > len &&
	       memcmp(line->at + at, key, len) == 0 && strchr(" \t\"'=.", line->at[at + len]);
}

unsigned int
pep723_line_of(const struct pep723 *found, const char *text, size_t len, const char *key)
{
	const char *at = found->toml, *end = at + found->toml_len;
	unsigned int number = found->line, of_key = 0;

	while (at < end) {
		struct line line = take_line(&at, end);

		number++;
		if (text && pep723_says(&line, text, len))
			return number;
		if (key && of_key == 0 && has_key(&line, key))
			of_key = number;
	}
	return of_key ? of_key : found->line;
}
