/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the keeper's children.   Owns: nothing.
 * Reads:   paths that a wheel names. */
#include "keeper/path.h"

#include <string.h>

#include "base/quote.h"

#define PART_MAX 255	/* bytes of one name, of the kernel's */

static bool
is_part(const char *part, size_t len)
{
	return len > 0 && len <= PART_MAX && !(len == 1 && *part == '.') &&
	       !(len == 2 && memcmp(part, "..", 2) == 0);
}

bool
path_is_safe(const char *path, size_t len)
{
	size_t depth = 0;

	if (len > PATH_BYTES_MAX || !quote_is_plain(path, len) || memchr(path, '\\', len))
		return false;
	for (const char *part = path, *end = path + len; ; depth++) {
		const char *slash = memchr(part, '/', (size_t)(end - part));

		if (!is_part(part, (size_t)((slash ? slash : end) - part)))
			return false;
		if (!slash)
			return depth <= PATH_DEPTH_MAX;
		part = slash + 1;
	}
}
