/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: every program.   Owns: nothing.
 * Reads:   bytes of unknown origin. */
#include "base/utf8.h"

#include <string.h>

/* The length in bytes of the character that begins with this byte; 0: no character begins with
 * it. */
static size_t
length_of(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first < 0xc2 || first > 0xf4)
		return 0;
	return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

size_t
utf8_character(const void *text, size_t len, size_t *bad_r)
{
	const unsigned char *at = text;
	unsigned char least = 0x80, most = 0xbf;
	size_t need = length_of(at[0]), n = 1;

	/* The range of the second byte excludes overlong forms, surrogates and everything above
	 * U+10FFFF. */
	if (at[0] == 0xe0)
		least = 0xa0;
	else if (at[0] == 0xed)
		most = 0x9f;
	else if (at[0] == 0xf0)
		least = 0x90;
	else if (at[0] == 0xf4)
		most = 0x8f;
	while (n < need && n < len && at[n] >= least && at[n] <= most) {
		least = 0x80;
		most = 0xbf;
		n++;
	}
	*bad_r = n;
	return n == need ? n : 0;
}

uint32_t
utf8_code(const void *text)
{
	const unsigned char *at = text;
	size_t n = length_of(at[0]);
	uint32_t code = n == 1 ? at[0] : at[0] & (0xffU >> (n + 1));

	for (size_t i = 1; i < n; i++)
		code = code << 6 | (at[i] & 0x3fU);
	return code;
}

size_t
utf8_prefix(const void *text, size_t len)
{
	const unsigned char *at = text;
	const uint64_t tops = UINT64_C(0x8080808080808080);
	size_t i = 0;

	while (i < len) {
		uint64_t word;
		size_t n, bad;

		/* Eight bytes of ASCII at once. */
		if (len - i >= sizeof(word)) {
			memcpy(&word, at + i, sizeof(word));
			if (!(word & tops)) {
				i += sizeof(word);
				continue;
			}
		}
		n = utf8_character(at + i, len - i, &bad);
		if (n == 0)
			break;
		i += n;
	}
	return i;
}

size_t
utf8_count(const void *text, size_t len)
{
	const unsigned char *at = text;
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += (at[i] & 0xc0) != 0x80;
	return n;
}

size_t
utf8_begun(const void *text, size_t len)
{
	const unsigned char *at = text;

	for (size_t n = 1; n < UTF8_MAX && n <= len; n++) {
		unsigned char c = at[len - n];
		size_t bad;

		if (c < 0x80)
			return 0;
		if (c < 0xc0)
			continue;
		/* A first byte. The character is unfinished if the bytes that follow fit and
		 * more are missing. */
		if (length_of(c) == 0 || utf8_character(at + len - n, n, &bad) != 0 || bad != n)
			return 0;
		return n;
	}
	return 0;
}
