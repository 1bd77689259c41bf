/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that allocate memory. If there is none, they write one line to standard error, such as
 * "mcp-pythond: out of memory: 4096 bytes", and abort: the program cannot continue. A size that a
 * peer chooses must be bounded before they are called.
 *
 * The first thing that a program does is to make its libraries allocate by them, too: otherwise a
 * library reports a failed allocation as it reports bad input.
 */
#ifndef BASE_XALLOC_H
#define BASE_XALLOC_H

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Writes the line and aborts. size: of the allocation; 0: unknown. */
_Noreturn void xalloc_fail(size_t size);

void *xmalloc(size_t size);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *mem, size_t size);
char *xstrdup(const char *text);

/* A formatted text. A format that cannot be written counts as missing memory. */
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *xvasprintf(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

/* A copy of len bytes with NUL after it. */
char *xmemdup0(const char *text, size_t len);

/* To be called before any function of OpenSSL. */
void xalloc_for_openssl(void);

/* Unless the condition is true, aborts with a line that names it, its place and errno: for what
 * fails by lack of memory or by an error of this program. It is in every build: it may act. */
#define xassert(condition) \
	((condition) ? (void)0 : xassert_fail(#condition, __FILE__, __LINE__))
_Noreturn void xassert_fail(const char *condition, const char *file, int line);

/* For functions that return NULL if there is no memory. */
static inline void *
xalloc_check(void *mem)
{
	if (!mem)
		xalloc_fail(0);
	return mem;
}

#endif
