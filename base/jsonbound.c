/* SPDX-License-Identifier: Apache-2.0 */
#include "base/jsonbound.h"

#include <stdint.h>

const char *
jsonbound_string_end(const char *at, const char *end)
{
	for (; at < end && *at != '"'; at++)
		if (*at == '\\' && end - at > 1)
			at++;
	return at;
}

size_t
jsonbound_values(const char *text, size_t len)
{
	const char *end = text + len;
	size_t values = 0, depth = 0;

	for (const char *at = text; at < end; at++) {
		if (*at == '"') {
			at = jsonbound_string_end(at + 1, end);
		} else if (*at == '[' || *at == '{') {
			values++;
			if (++depth > JSON_DEPTH_MAX)
				return SIZE_MAX;
		} else if (*at == ']' || *at == '}') {
			depth -= depth > 0;
		} else if (*at == ',') {
			values++;
		}
	}
	return values;
}
