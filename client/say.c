/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python.
 * Each line is one write, so that lines of several processes do not mix. */
#include "client/say.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/quote.h"

static bool
say_has_colour(void)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

	return isatty(STDERR_FILENO) && !(no && *no) && term &&
	       strcmp(term, "dumb") != 0;
}

static void say_line(const char *start, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

static void
say_line(const char *start, const char *format, va_list args)
{
	char text[4096], shown[2048], line[2200];
	int n;

	vsnprintf(text, sizeof(text), format, args);
	quote_line(shown, sizeof(shown), text, strlen(text));
	n = snprintf(line, sizeof(line), "%s%s\n", start, shown);
	/* An error of standard error itself cannot be reported. */
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}

void
say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_line(say_has_colour() ? "\033[1;31mmcp-python:\033[0m " : "mcp-python: ",
		 format, args);
	va_end(args);
}

void
say_more(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_line("  ", format, args);
	va_end(args);
}
