/* Runs in: mcp-python, on files and arguments before they are sent. A script is refused
 * here with its position instead of being sent and refused there without a file name.
 */
#include "client/utf8.h"

#include <string.h>

/* The length of the well-formed sequence at p, 0 when there is none (RFC 3629, section
 * 4). */
static size_t
sequence_length(const unsigned char *p, size_t left)
{
	unsigned char least = 0x80, most = 0xbf;
	size_t n;

	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		n = 2;
	else if (p[0] >= 0xe0 && p[0] <= 0xef)
		n = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (n > left)
		return 0;
	/* The second byte's range is narrower where an overlong form, a surrogate or a
	 * number that is too large would begin. */
	if (p[0] == 0xe0)
		least = 0xa0;
	else if (p[0] == 0xed)
		most = 0x9f;
	else if (p[0] == 0xf0)
		least = 0x90;
	else if (p[0] == 0xf4)
		most = 0x8f;
	if (p[1] < least || p[1] > most)
		return 0;
	for (size_t i = 2; i < n; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return n;
}

size_t
utf8_valid_prefix(const char *bytes, size_t len)
{
	const unsigned char *p = (const unsigned char *)bytes;
	size_t at = 0;

	while (at < len) {
		size_t n = sequence_length(p + at, len - at);

		if (n == 0)
			break;
		at += n;
	}
	return at;
}

bool
utf8_check(const char *bytes, size_t len, bool nul_too, struct text_position *where_r)
{
	const char *nul = nul_too && len > 0 ? memchr(bytes, 0, len) : NULL;
	size_t end = nul ? (size_t)(nul - bytes) : len;
	size_t at = utf8_valid_prefix(bytes, end);

	if (at == len)
		return true;
	*where_r = (struct text_position){.offset = at, .line = 1, .column = 1};
	for (size_t i = 0; i < at; i++) {
		where_r->column++;
		if (bytes[i] == '\n') {
			where_r->line++;
			where_r->column = 1;
		}
	}
	return false;
}
