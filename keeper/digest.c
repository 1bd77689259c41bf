/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the keeper and its children.   Owns: contexts of libcrypto. */
#include "keeper/digest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/base64.h"
#include "base/hex.h"
#include "base/xalloc.h"

static EVP_MD *sha256;

int
digest_prepare(void)
{
	/* The host's configuration of OpenSSL is not read. */
	if (!sha256 && OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) == 1)
		sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	return sha256 ? 0 : -ENOTSUP;
}

void
digest_begin(struct digest *digest)
{
	if (!digest->context)
		digest->context = EVP_MD_CTX_new();
	xassert(digest->context && EVP_DigestInit_ex(digest->context, sha256, NULL) == 1);
}

void
digest_add(struct digest *digest, const void *bytes, size_t len)
{
	xassert(EVP_DigestUpdate(digest->context, bytes, len) == 1);
}

void
digest_end(struct digest *digest, unsigned char sum_r[DIGEST_BYTES])
{
	xassert(EVP_DigestFinal_ex(digest->context, sum_r, NULL) == 1);
}

void
digest_free(struct digest *digest)
{
	EVP_MD_CTX_free(digest->context);
	digest->context = NULL;
}

void
digest_hex(const unsigned char sum[DIGEST_BYTES], char text_r[DIGEST_HEX + 1])
{
	hex_write(sum, DIGEST_BYTES, text_r);
}

void
digest_base64(const unsigned char sum[DIGEST_BYTES], char text_r[DIGEST_BASE64 + 1])
{
	char padded[BASE64_LEN(DIGEST_BYTES) + 1];

	base64url_encode(sum, DIGEST_BYTES, padded);
	memcpy(text_r, padded, DIGEST_BASE64 + 1);
}
