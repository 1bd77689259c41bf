/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as hexadecimal digits, in lower case. */
#ifndef BASE_HEX_H
#define BASE_HEX_H

#include <stddef.h>

/* Writes 2 * len digits and NUL. */
static inline void
hex_write(const unsigned char *bytes, size_t len, char *text_r)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		*text_r++ = digits[bytes[i] >> 4];
		*text_r++ = digits[bytes[i] & 15];
	}
	*text_r = '\0';
}

#endif
