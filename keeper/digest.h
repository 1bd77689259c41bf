/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256, of libcrypto. */
#ifndef KEEPER_DIGEST_H
#define KEEPER_DIGEST_H

#include <stddef.h>

#define DIGEST_BYTES 32
#define DIGEST_HEX 64		/* characters */
#define DIGEST_BASE64 43

struct evp_md_ctx_st;

/* Zeroed is empty. It may be begun when it is empty, and again after its end. */
struct digest {
	struct evp_md_ctx_st *context;
};

/* Called once in a process, before it loses the right to open files. 0 or -ENOTSUP. */
int digest_prepare(void);

void digest_begin(struct digest *digest);
void digest_add(struct digest *digest, const void *bytes, size_t len);
void digest_end(struct digest *digest, unsigned char sum_r[DIGEST_BYTES]);
void digest_free(struct digest *digest);

/* The digest in hexadecimal, lower case; and in the base64 of RECORD: the alphabet for URLs,
 * without padding. */
void digest_hex(const unsigned char sum[DIGEST_BYTES], char text_r[DIGEST_HEX + 1]);
void digest_base64(const unsigned char sum[DIGEST_BYTES], char text_r[DIGEST_BASE64 + 1]);

#endif
