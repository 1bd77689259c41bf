/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.   Reads: a header of a client, in any form. */
#include "http/range.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#define UNIT "bytes="
#define DIGITS_MAX 18

/* False: there is no number, or it is too long for the position of a byte. */
static bool
range_read_number(const char **at, uint64_t *number_r)
{
	const char *start = *at;

	*number_r = 0;
	for (; **at >= '0' && **at <= '9' && *at - start < DIGITS_MAX; (*at)++)
		*number_r = *number_r * 10 + (uint64_t)(**at - '0');
	return *at > start;
}

static int
last_bytes(const char *at, uint64_t size, uint64_t *offset_r, uint64_t *len_r)
{
	uint64_t n;

	if (!range_read_number(&at, &n) || *at)
		return 200;
	if (n == 0 || size == 0)
		return 416;
	*len_r = n < size ? n : size;
	*offset_r = size - *len_r;
	return 206;
}

int
http_range(const char *text, uint64_t size, uint64_t *offset_r, uint64_t *len_r)
{
	uint64_t first, last = UINT64_MAX;
	const char *at;

	*offset_r = 0;
	*len_r = size;
	if (!text || strncasecmp(text, UNIT, strlen(UNIT)) != 0)
		return 200;
	at = text + strlen(UNIT);
	if (*at == '-')
		return last_bytes(at + 1, size, offset_r, len_r);
	if (!range_read_number(&at, &first) || *at++ != '-' ||
	    (*at && (!range_read_number(&at, &last) || *at || last < first)))
		return 200;
	if (first >= size)
		return 416;
	*offset_r = first;
	*len_r = (last < size ? last + 1 : size) - first;
	return 206;
}
