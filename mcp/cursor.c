/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   texts of a client. */
#include "mcp/cursor.h"

#include <stdint.h>
#include <string.h>

#include "base/xalloc.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

char *
base64url_write(const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	char *text = xrealloc(NULL, (len + 2) / 3 * 4 + 1), *to = text;
	uint32_t bits = 0;
	unsigned int n = 0;

	for (size_t i = 0; i < len; i++) {
		bits = bits << 8 | at[i];
		for (n += 8; n >= 6; n -= 6)
			*to++ = digits[bits >> (n - 6) & 63];
	}
	if (n)
		*to++ = digits[bits << (6 - n) & 63];
	*to = '\0';
	return text;
}

char *
base64url_read(const char *text, size_t len, size_t *len_r)
{
	char *bytes = xrealloc(NULL, len + 1);
	uint32_t bits = 0;
	unsigned int n = 0;
	size_t to = 0;

	for (size_t i = 0; i < len; i++) {
		const char *digit = text[i] ? strchr(digits, text[i]) : NULL;

		if (!digit)
			goto bad;
		bits = bits << 6 | (uint32_t)(digit - digits);
		n += 6;
		if (n >= 8) {
			n -= 8;
			bytes[to++] = (char)(bits >> n);
		}
	}
	if (n == 6 || (bits & ((1u << n) - 1)))
		goto bad;
	bytes[to] = '\0';
	*len_r = to;
	return bytes;
bad:
	free(bytes);
	return NULL;
}

char *
cursor_write(const char *place)
{
	return base64url_write(place, strlen(place));
}

char *
cursor_read(const char *cursor, size_t len)
{
	char *place;
	size_t n;

	if (len > CURSOR_PLACE_MAX * 2)
		return NULL;
	place = base64url_read(cursor, len, &n);
	if (place && strlen(place) != n) {
		free(place);
		place = NULL;
	}
	return place;
}
