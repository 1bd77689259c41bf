/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python, on files and arguments before they are sent.
 * A wrong script is refused here with its file name and position; the service does not know the
 * file name.
 */
#include "client/text.h"

#include <string.h>

#include "base/utf8.h"

bool
text_check(const char *bytes, size_t len, bool nul_too, struct text_position *where_r)
{
	const char *nul = nul_too && len > 0 ? memchr(bytes, 0, len) : NULL;
	size_t end = nul ? (size_t)(nul - bytes) : len;
	size_t at = utf8_prefix(bytes, end);

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
