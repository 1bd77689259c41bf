/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 (RFC 3629). All modules use this definition of a character.
 *
 * Overlong forms, surrogates and numbers above U+10FFFF are ill-formed. NUL is a character like any
 * other; a caller that refuses NUL has to look for it.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UTF8_MAX 4	/* bytes of one character */

/* The length of the well-formed character at text, 1 to 4. 0: there is none. *bad_r is then the
 * number of bytes that one U+FFFD replaces: as many as can be the beginning of a character, but at
 * least one (Unicode, "maximal subpart"). len: at least 1. */
size_t utf8_character(const void *text, size_t len, size_t *bad_r);

/* The code point of the well-formed character at text. */
uint32_t utf8_code(const void *text);

/* The length of the longest head of text that is well-formed; len if the whole text is. */
size_t utf8_prefix(const void *text, size_t len);

/* How many characters a well-formed text has. */
size_t utf8_count(const void *text, size_t len);

/* The number of bytes at the end of text, 0 to 3, that begin a character which further bytes could
 * complete. */
size_t utf8_begun(const void *text, size_t len);

#endif
