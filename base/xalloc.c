/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: every program.   Owns: nothing. */
#include "base/xalloc.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define PROGRAM program_invocation_short_name

/* dprintf(3) would allocate. */
static _Noreturn void
write_and_abort(const char *line, int len)
{
	if (len > 0)
		(void)!write(STDERR_FILENO, line, (size_t)len);
	abort();
}

void
xalloc_fail(size_t size)
{
	char line[128];
	int n = size > 0 ? snprintf(line, sizeof(line), "%s: out of memory: %zu bytes\n", PROGRAM, size)
			 : snprintf(line, sizeof(line), "%s: out of memory\n", PROGRAM);

	write_and_abort(line, n);
}

void
xassert_fail(const char *condition, const char *file, int line)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "%s: %.100s:%d: failed: %.200s: %s\n", PROGRAM, file, line,
			 condition, strerrordesc_np(errno));

	write_and_abort(text, n);
}

void *
xmalloc(size_t size)
{
	void *mem = malloc(size ? size : 1);

	return mem ? mem : (xalloc_fail(size), NULL);
}

void *
xcalloc(size_t n, size_t size)
{
	void *mem = calloc(n ? n : 1, size ? size : 1);

	return mem ? mem : (xalloc_fail(n * size), NULL);
}

void *
xrealloc(void *mem, size_t size)
{
	void *grown = realloc(mem, size ? size : 1);

	return grown ? grown : (xalloc_fail(size), NULL);
}

char *
xmemdup0(const char *text, size_t len)
{
	char *copy = xmalloc(len + 1);

	if (len)
		memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

char *
xstrdup(const char *text)
{
	return xmemdup0(text, strlen(text));
}

char *
xvasprintf(const char *format, va_list args)
{
	char most[1024], *text;		/* as long as most texts are: those are formatted once */
	va_list again;
	int len;

	va_copy(again, args);
	len = vsnprintf(most, sizeof(most), format, again);
	va_end(again);
	if (len < 0)
		xalloc_fail(0);
	if ((size_t)len < sizeof(most))
		return xmemdup0(most, (size_t)len);
	text = xmalloc((size_t)len + 1);
	vsnprintf(text, (size_t)len + 1, format, args);
	return text;
}

char *
xasprintf(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = xvasprintf(format, args);
	va_end(args);
	return text;
}
