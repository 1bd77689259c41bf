/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the programs that use OpenSSL.   Owns: nothing. */
#include "base/xalloc.h"

#include <openssl/crypto.h>

static void *
openssl_malloc(size_t size, const char *, int)
{
	return xmalloc(size);
}

static void *
openssl_realloc(void *mem, size_t size, const char *, int)
{
	if (size > 0)
		return xrealloc(mem, size);
	free(mem);
	return NULL;
}

static void
openssl_free(void *mem, const char *, int)
{
	free(mem);
}

void
xalloc_for_openssl(void)
{
	/* It fails if it is called too late. */
	xassert(CRYPTO_set_mem_functions(openssl_malloc, openssl_realloc, openssl_free));
}
