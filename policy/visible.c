/* Runs in: the supervisor and mcp-python.   Owns: nothing.
 * Reads:   texts of scripts, hostile, that were checked to be UTF-8. */
#include "policy/visible.h"

uint32_t
visible_code(const char *at, size_t *bytes_r)
{
	const unsigned char *byte = (const unsigned char *)at;
	size_t n = *byte < 0x80 ? 1 : *byte < 0xe0 ? 2 : *byte < 0xf0 ? 3 : 4;
	uint32_t code = n == 1 ? *byte : *byte & (0xffU >> (n + 1));

	for (size_t i = 1; i < n; i++)
		code = code << 6 | (byte[i] & 0x3fU);
	*bytes_r = n;
	return code;
}

bool
visible_deceives(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xad || code == 0x61c ||
	       (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2060 && code <= 0x206f) || code == 0xfeff ||
	       (code >= 0xe0000 && code <= 0xe007f);
}
