/* SHA-256 (FIPS 180-4), for files that scripts leave. In place of a library, for the worker
 * has as few of them as can be. */
#ifndef WORKER_SHA256_H
#define WORKER_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32

struct sha256 {
	uint32_t state[8];
	uint64_t len;			/* bytes so far */
	unsigned char block[64];	/* len % 64 of them wait */
};

void sha256_init(struct sha256 *sum);
void sha256_add(struct sha256 *sum, const void *bytes, size_t len);
void sha256_end(struct sha256 *sum, unsigned char digest_r[SHA256_BYTES]);

#endif
