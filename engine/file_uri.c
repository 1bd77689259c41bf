/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   names that scripts and clients have given to files. */
#include "engine/file_uri.h"

#include <string.h>

#include "base/xalloc.h"

char *
file_uri(const char *id, const char *path, size_t path_len)
{
	static const char hex[] = "0123456789ABCDEF";
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~/";
	size_t head = strlen(FILE_URI_SCHEME) + strlen(id) + 1;
	char *uri = xalloc_check(malloc(head + 3 * path_len + 1)), *at = uri + head;

	memcpy(uri, FILE_URI_SCHEME, strlen(FILE_URI_SCHEME));
	memcpy(uri + strlen(FILE_URI_SCHEME), id, strlen(id));
	uri[head - 1] = '/';
	for (size_t i = 0; i < path_len; i++) {
		unsigned char c = (unsigned char)path[i];

		if (c && strchr(plain, c)) {
			*at++ = (char)c;
		} else {
			*at++ = '%';
			*at++ = hex[c >> 4];
			*at++ = hex[c & 15];
		}
	}
	*at = '\0';
	return uri;
}
