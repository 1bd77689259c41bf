/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of files in a tree of packages, which strangers name. */
#ifndef KEEPER_PATH_H
#define KEEPER_PATH_H

#include <stdbool.h>
#include <stddef.h>

#define PATH_BYTES_MAX 1024	/* of one path */
#define PATH_DEPTH_MAX 40	/* directories above a file */

/* Is it a relative path that stays below where it begins, in characters that are shown as they are
 * (base/quote.h)? Each part has a name and is neither "." nor ".."; nor is there a backslash in it,
 * which separates parts for some. */
bool path_is_safe(const char *path, size_t len);

#endif
