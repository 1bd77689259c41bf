/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   texts of a client. */
#include "mcp/cursor.h"

#include <string.h>

#include "base/base64.h"
#include "base/xalloc.h"

char *
cursor_write(const char *place)
{
	size_t len = strlen(place);
	char *cursor = xrealloc(NULL, BASE64_LEN(len) + 1);

	base64url_encode(place, len, cursor);
	return cursor;
}

char *
cursor_read(const char *cursor, size_t len)
{
	char *place;
	size_t n;

	if (len > CURSOR_PLACE_MAX * 2)
		return NULL;
	place = base64url_decode(cursor, len, &n);
	if (place && strlen(place) != n) {
		free(place);
		place = NULL;
	}
	return place;
}
