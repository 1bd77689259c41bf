/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-egress, mcp-python-tools.   Owns: nothing.
 * Reads:   answers of other servers, hostile. */
#include "base/mask.h"

#include <string.h>

/* The result of a comparison of the text at one place with the secrets. */
struct look {
	size_t found;		/* bytes of the longest secret that is there; 0: none */
	bool more;		/* the text ends in what may be the beginning of one */
};

static void
look_as_is(const char *text, size_t len, const char *secret, struct look *look)
{
	size_t n = strlen(secret), there = n < len ? n : len;

	if (memcmp(text, secret, there) != 0)
		return;
	if (there < n)
		look->more = true;
	else if (n > look->found)
		look->found = n;
}

/* Is there "\uXXXX" for c at this place? Returns its number of bytes; 0: no. *more_r: the text ends
 * before that is known. */
static size_t
mask_take_number(const char *text, size_t len, char c, bool *more_r)
{
	static const char digits[] = "0123456789abcdef";
	const char want[] = { '\\', 'u', '0', '0', digits[c >> 4 & 15], digits[c & 15] };

	for (size_t i = 0; i < sizeof(want); i++) {
		if (i == len) {
			*more_r = true;
			return 0;
		}
		if (text[i] != want[i] && (i < 4 || (text[i] | 0x20) != want[i]))
			return 0;
	}
	return sizeof(want);
}

/* The same for any form that c has in a string of JSON. */
static size_t
take_character(const char *text, size_t len, char c, bool *more_r)
{
	if (len == 0) {
		*more_r = true;
		return 0;
	}
	if (*text != '\\')
		return *text == c;
	if (len > 1 && text[1] == c && strchr("\"\\/", c))
		return 2;
	return mask_take_number(text, len, c, more_r);
}

static void
look_as_json(const char *text, size_t len, const char *secret, struct look *look)
{
	size_t at = 0;

	for (const char *c = secret; *c; c++) {
		size_t n = take_character(text + at, len - at, *c, &look->more);

		if (n == 0)
			return;
		at += n;
	}
	if (at > look->found)
		look->found = at;
}

size_t
mask_secrets(char *text, size_t len, const char *const *secrets, size_t n, bool is_end)
{
	size_t at = 0;

	while (at < len) {
		struct look look = { 0 };

		for (size_t i = 0; i < n; i++) {
			if (!*secrets[i] || (text[at] != *secrets[i] && text[at] != '\\'))
				continue;
			look_as_is(text + at, len - at, secrets[i], &look);
			look_as_json(text + at, len - at, secrets[i], &look);
		}
		if (look.more && !is_end)
			break;
		if (look.more && len - at >= MASK_PART && len - at > look.found)
			look.found = len - at;
		memset(text + at, '*', look.found);
		at += look.found > 0 ? look.found : 1;
	}
	return at;
}
