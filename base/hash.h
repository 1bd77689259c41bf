/* SPDX-License-Identifier: Apache-2.0 */
/* A hash of texts (FNV-1a), for buckets and for noticing changes. It is easy to find different
 * texts with the same hash, so a table must stay correct with such texts. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdint.h>

#define HASH_BEGIN UINT64_C(14695981039346656037)

/* Adds text and a separator to a hash; NULL counts as "". */
static inline uint64_t
hash_text(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
	return (hash ^ 0xff) * UINT64_C(1099511628211);
}

#endif
