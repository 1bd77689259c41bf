/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the reader of a wheel.   Owns: nothing.
 * Reads:   entry_points.txt, which a stranger wrote. A launcher made from it is Python that
 * imports a name from the wheel's own modules and calls it. */
#include "keeper/launchers.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/why.h"

#define REFERENCE_MAX 512	/* bytes of "module:attribute" */

/* A piece of the text. */
struct span {
	const char *at;
	size_t len;
};

static struct span
launchers_trim(struct span span)
{
	while (span.len && isspace((unsigned char)*span.at)) {
		span.at++;
		span.len--;
	}
	while (span.len && isspace((unsigned char)span.at[span.len - 1]))
		span.len--;
	return span;
}

static bool
is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Names with dots between them. */
static bool
is_dotted(struct span span)
{
	bool begins = true;

	for (size_t i = 0; i < span.len; i++) {
		if (span.at[i] == '.' ? begins
				      : !is_word(span.at[i]) ||
					(begins && isdigit((unsigned char)span.at[i])))
			return false;
		begins = span.at[i] == '.';
	}
	return span.len > 0 && !begins;
}

static bool
is_name(struct span span)
{
	if (span.len == 0 || span.len > LAUNCHER_NAME_MAX || *span.at == '.' ||
	    *span.at == '-')
		return false;
	for (size_t i = 0; i < span.len; i++)
		if (!is_word(span.at[i]) && span.at[i] != '-' && span.at[i] != '.' &&
		    span.at[i] != '+')
			return false;
	return true;
}

static struct span
launchers_before(struct span *span, char c)
{
	const char *found = memchr(span->at, c, span->len);
	struct span part = { span->at, found ? (size_t)(found - span->at) : span->len };

	span->at += part.len + (found != NULL);
	span->len -= part.len + (found != NULL);
	return launchers_trim(part);
}

/* "name = module:attribute [extras]" */
static int
launchers_make_one(struct span line, const char *python, launcher_found *found, void *arg,
		   struct why *why_r)
{
	struct span name = launchers_before(&line, '='), reference = launchers_before(&line, '[');
	struct span module = launchers_before(&reference, ':');
	struct span attribute = launchers_trim(reference), first;
	char text[3 * REFERENCE_MAX], plain[LAUNCHER_NAME_MAX + 1];
	int len;

	if (!is_name(name) || !is_dotted(module) || !is_dotted(attribute) ||
	    module.len + attribute.len > REFERENCE_MAX)
		return why_say(why_r, -EBADMSG, "", "entry_points.txt has an invalid script");
	first = (struct span){ attribute.at, 0 };
	while (first.len < attribute.len && first.at[first.len] != '.')
		first.len++;
	len = snprintf(text, sizeof(text), "#!%s\nimport sys\nfrom %.*s import %.*s\n"
		       "if __name__ == '__main__':\n    sys.exit(%.*s())\n", python,
		       (int)module.len, module.at, (int)first.len, first.at,
		       (int)attribute.len, attribute.at);
	if (len < 0 || len >= (int)sizeof(text))
		return why_say(why_r, -EBADMSG, "", "entry_points.txt has an invalid script");
	memcpy(plain, name.at, name.len);
	plain[name.len] = '\0';
	return found(arg, plain, text, (size_t)len, why_r);
}

static bool
launchers_is(struct span span, const char *text)
{
	return span.len == strlen(text) && memcmp(span.at, text, span.len) == 0;
}

int
launchers_make(const char *text, size_t len, const char *python, launcher_found *found,
	       void *arg, struct why *why_r)
{
	struct span rest = { text, len };
	bool wanted = false;
	int r = 0;

	while (rest.len && r == 0) {
		struct span line = launchers_before(&rest, '\n');

		if (line.len == 0 || *line.at == '#' || *line.at == ';')
			continue;
		if (*line.at == '[')
			wanted = launchers_is(line, "[console_scripts]") ||
				 launchers_is(line, "[gui_scripts]");
		else if (wanted)
			r = launchers_make_one(line, python, found, arg, why_r);
	}
	return r;
}
