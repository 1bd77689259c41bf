/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256, by libcrypto. */
#ifndef KEEPER_DIGEST_H
#define KEEPER_DIGEST_H

#include <stddef.h>

#define DIGEST_BYTES 32
#define DIGEST_HEX 64		/* characters */
#define DIGEST_BASE64 43

struct evp_md_ctx_st;

/* A digest that is being computed. Zeroed: empty. digest_begin may be called when it is empty, and
 * again after digest_end. */
struct digest {
	struct evp_md_ctx_st *context;
};

/* To be called once in a process, before it loses the right to open files. 0 or -ENOTSUP. */
int digest_prepare(void);

void digest_begin(struct digest *digest);
void digest_add(struct digest *digest, const void *bytes, size_t len);
void digest_end(struct digest *digest, unsigned char sum_r[DIGEST_BYTES]);
void digest_free(struct digest *digest);

/* Write a digest as text: in hexadecimal, lower case; and in base64 as RECORD has it, with the
 * alphabet for URLs and without padding. */
void digest_hex(const unsigned char sum[DIGEST_BYTES], char text_r[DIGEST_HEX + 1]);
void digest_base64(const unsigned char sum[DIGEST_BYTES], char text_r[DIGEST_BASE64 + 1]);

#endif
