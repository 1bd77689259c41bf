/* SPDX-License-Identifier: Apache-2.0 */
/* Whether bytes are text that the service takes, and where they stop being it. */
#ifndef CLIENT_TEXT_H
#define CLIENT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text_position {
	size_t offset; /* of the first byte at fault, from 0 */
	size_t line;   /* its line, from 1 */
	size_t column; /* its byte in that line, from 1 */
};

/* True when bytes are well-formed UTF-8 and, with nul_too, hold no NUL. Else *where_r is the
 * first byte at fault. */
bool text_check(const char *bytes, size_t len, bool nul_too,
		struct text_position *where_r);

#endif
