/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that bytes are text that the service accepts, and finds the first wrong byte. */
#ifndef CLIENT_TEXT_H
#define CLIENT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text_position {
	size_t offset; /* of the first wrong byte, from 0 */
	size_t line;   /* its line, from 1 */
	size_t column; /* its byte in that line, from 1 */
};

/* Checks that bytes are well-formed UTF-8. nul_too: a NUL is a wrong byte, too. False: *where_r is
 * the position of the first wrong byte. */
bool text_check(const char *bytes, size_t len, bool nul_too,
		struct text_position *where_r);

#endif
