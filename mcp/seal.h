/* SPDX-License-Identifier: Apache-2.0 */
/* Seals what a client carries for us and must not change: HMAC-SHA256 under a key of this
 * host. Nothing in it is secret; it is bound to who got it and what for.
 */
#ifndef MCP_SEAL_H
#define MCP_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/id.h"

#define SEAL_KEY_BYTES 32
#define SEAL_DIGEST_BYTES 32

struct mcp_seal;
struct why;

/* What a seal is good for; compared as a whole. */
struct seal_binding {
	unsigned char digest[SEAL_DIGEST_BYTES];
};

/* The key comes from a file, which is made if it is missing (mode 0600). 0, or -errno
 * with why_r filled. */
int mcp_seal_new(const char *path, struct mcp_seal **seal_r, struct why *why_r);

/* A key for this process alone. */
struct mcp_seal *mcp_seal_new_random(void);
void mcp_seal_free(struct mcp_seal *seal);	/* NULL is fine */

/* Of the method and all of its params that say what is to be done. params may be NULL. */
void seal_bind(const char *principal, const char *method, const json_t *params,
	       struct seal_binding *binding_r);

/* What is sealed. */
struct sealed {
	char id[ID_CHARACTERS + 1];
	int64_t expires;		/* seconds since the epoch */
	bool nothing_done;		/* by the call that it was made for, so far */
	bool is_ours;			/* of this process; when opened */
};

/* Its text, malloc'd. What stands between its first two dots is this host's name, for proxies
 * (base/handle.h). */
char *mcp_seal_close(const struct mcp_seal *seal, const struct sealed *sealed,
		     const struct seal_binding *binding);

/* Was it sealed with this key, for this binding, and is it not too old? The process that
 * did may have been another one, on another host that has the same key. */
bool mcp_seal_open(const struct mcp_seal *seal, const char *text, int64_t now,
		   const struct seal_binding *binding, struct sealed *sealed_r);

#endif
