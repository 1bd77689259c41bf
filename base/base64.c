/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: any process.   Owns: nothing.
 * Reads:   texts of clients and of scripts. */
#include "base/base64.h"

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/xalloc.h"

size_t
base64_encode(const void *bytes, size_t len, char *text_r)
{
	assert(len <= INT_MAX / 2);
	return (size_t)EVP_EncodeBlock((unsigned char *)text_r, bytes, (int)len);
}

size_t
base64url_encode(const void *bytes, size_t len, char *text_r)
{
	size_t n = base64_encode(bytes, len, text_r);

	while (n > 0 && text_r[n - 1] == '=')
		n--;
	text_r[n] = '\0';
	for (size_t i = 0; i < n; i++)
		text_r[i] = text_r[i] == '+' ? '-' : text_r[i] == '/' ? '_' : text_r[i];
	return n;
}

char *
base64_decode(const char *text, size_t len, size_t *len_r)
{
	char *bytes, *again;
	bool same = false;
	int n;

	if (len % 4 != 0 || len > INT_MAX / 2)
		return NULL;
	bytes = xrealloc(NULL, len / 4 * 3 + 1);
	again = xrealloc(NULL, len + 1);
	n = EVP_DecodeBlock((unsigned char *)bytes, (const unsigned char *)text, (int)len);
	if (n >= 0) {
		for (size_t i = 0; i < 2 && i < len && text[len - 1 - i] == '='; i++)
			n--;
		/* OpenSSL's decoder also accepts blanks, and "=" in any place. */
		same = n >= 0 && base64_encode(bytes, (size_t)n, again) == len &&
		       memcmp(again, text, len) == 0;
	}
	free(again);
	if (!same) {
		free(bytes);
		return NULL;
	}
	bytes[n] = '\0';
	*len_r = (size_t)n;
	return bytes;
}

char *
base64url_decode(const char *text, size_t len, size_t *len_r)
{
	size_t padded = (len + 3) / 4 * 4;
	char *copy, *bytes;

	if (memchr(text, '+', len) || memchr(text, '/', len) || memchr(text, '=', len))
		return NULL;
	copy = xrealloc(NULL, padded + 1);
	for (size_t i = 0; i < padded; i++)
		copy[i] = i >= len ? '=' : text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
	bytes = base64_decode(copy, padded, len_r);
	free(copy);
	return bytes;
}
