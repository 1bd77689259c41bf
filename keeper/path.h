/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the paths of files in a tree of packages, which come from strangers. */
#ifndef KEEPER_PATH_H
#define KEEPER_PATH_H

#include <stdbool.h>
#include <stddef.h>

#define PATH_BYTES_MAX 1024	/* of one path */
#define PATH_DEPTH_MAX 40	/* directories above a file */
#define SET_DEPTH_MAX (PATH_DEPTH_MAX + 3)	/* directories below each other in the store */

/* Is this a relative path that stays below its directory, of characters that are shown unchanged
 * (base/quote.h)? No part may be empty, "." or "..". A backslash is not allowed, because some
 * programs treat it as a separator. */
bool path_is_safe(const char *path, size_t len);

#endif
