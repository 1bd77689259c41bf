/* SPDX-License-Identifier: Apache-2.0 */
/* Objects by name, in a balanced tree: finding one of n takes O(log n) comparisons, whoever chooses
 * the names. The first member of an object is a pointer to its name, which is unique in the tree
 * and does not change. The tree owns nothing but its nodes; an empty tree is NULL.
 */
#ifndef BASE_NAMED_H
#define BASE_NAMED_H

#include <search.h>
#include <stddef.h>
#include <string.h>

#include "base/xalloc.h"

static inline int
named_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The object of this name; NULL: there is none. */
static inline void *
named_find(void *const *tree, const char *name)
{
	void *const *found = tfind(&name, tree, named_compare);

	return found ? *found : NULL;
}

static inline void
named_add(void **tree, void *object)
{
	xalloc_check(tsearch(object, tree, named_compare));
}

static inline void
named_remove(void **tree, const void *object)
{
	tdelete(object, tree, named_compare);
}

#endif
