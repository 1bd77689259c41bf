/* Whether bytes are text that the service takes, and where they stop being it. */
#ifndef CLIENT_UTF8_H
#define CLIENT_UTF8_H

#include <stdbool.h>
#include <stddef.h>

struct text_position {
	size_t offset; /* of the first byte at fault, from 0 */
	size_t line;   /* its line, from 1 */
	size_t column; /* its byte in that line, from 1 */
};

/* How long the longest well-formed UTF-8 prefix of bytes is; len when all of it is
 * well-formed. Overlong forms, surrogates and what lies above U+10FFFF are not. */
size_t utf8_valid_prefix(const char *bytes, size_t len);

/* True when bytes are well-formed and, with nul_too, hold no NUL. Else *where_r is the
 * first byte at fault. */
bool utf8_check(const char *bytes, size_t len, bool nul_too,
		struct text_position *where_r);

#endif
