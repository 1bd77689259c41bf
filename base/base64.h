/* SPDX-License-Identifier: Apache-2.0 */
/* base64 (RFC 4648), by OpenSSL's functions; programs that use it link libcrypto.
 *
 * Only canonical text is decoded: it has no other characters, and its unused bits are zero.
 */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stddef.h>

/* The number of characters for len bytes, with padding. */
#define BASE64_LEN(len) (((len) + 2) / 3 * 4)

/* Writes the text of len bytes, at most 1 GiB, and NUL. text_r: has room for BASE64_LEN(len) + 1.
 * Returns the number of characters. */
size_t base64_encode(const void *bytes, size_t len, char *text_r);

/* As base64_encode, with the alphabet for URLs, and without padding (section 5 of the RFC). */
size_t base64url_encode(const void *bytes, size_t len, char *text_r);

/* Decode a text of len characters. The bytes are malloc'd, with NUL after them; *len_r: their
 * number. NULL: the text is not canonical base64. */
char *base64_decode(const char *text, size_t len, size_t *len_r);
char *base64url_decode(const char *text, size_t len, size_t *len_r);

#endif
