/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that allocate memory, and abort if there is none, because the program cannot continue.
 * A size that a peer chooses must be bounded before they are called.
 */
#ifndef BASE_XALLOC_H
#define BASE_XALLOC_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static inline void *
xalloc_check(void *mem)
{
	if (!mem)
		abort();
	return mem;
}

static inline void *
xcalloc(size_t n, size_t size)
{
	return xalloc_check(calloc(n ? n : 1, size ? size : 1));
}

static inline void *
xrealloc(void *mem, size_t size)
{
	return xalloc_check(realloc(mem, size ? size : 1));
}

static inline char *
xstrdup(const char *text)
{
	return xalloc_check(strdup(text));
}

/* A copy of len bytes with NUL after it. */
static inline char *
xmemdup0(const char *text, size_t len)
{
	char *copy = xalloc_check(malloc(len + 1));

	if (len)
		memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

#endif
