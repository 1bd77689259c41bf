/* SPDX-License-Identifier: Apache-2.0 */
/* Seals data that a client carries from one request to the next and must not change: HMAC-SHA256
 * with a key of this host. The data is not secret. A seal is valid only for the tenant and the call
 * that it was made for.
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

/* A digest of the call that a seal is valid for. */
struct seal_binding {
	unsigned char digest[SEAL_DIGEST_BYTES];
};

/* Reads the key from a file. If the file is missing, it is made with a new key (mode 0600). 0, or
 * -errno with why_r. */
int mcp_seal_new(const char *path, struct mcp_seal **seal_r, struct why *why_r);

/* Makes a key for this process only. */
struct mcp_seal *mcp_seal_new_random(void);
void mcp_seal_free(struct mcp_seal *seal);	/* NULL is fine */

/* Makes the binding of a call: of the principal, the method, and all params that determine the
 * work. params may be NULL. */
void seal_bind(const char *principal, const char *method, const json_t *params,
	       struct seal_binding *binding_r);

/* The sealed data. */
struct sealed {
	char id[ID_CHARACTERS + 1];
	int64_t expires;		/* seconds since the epoch */
	bool nothing_done;		/* the call that it was made for has done nothing so far */
	bool is_ours;			/* after opening: this process has sealed it */
};

/* Makes a sealed text, malloc'd. The part between its first two dots is the name of this host, for
 * proxies (base/handle.h). */
char *mcp_seal_close(const struct mcp_seal *seal, const struct sealed *sealed,
		     const struct seal_binding *binding);

/* Was text sealed with this key for this binding, and is it not expired? If so, *sealed_r has its
 * data. now: seconds since the epoch. Another process may have sealed it, even on another host with
 * the same key. */
bool mcp_seal_open(const struct mcp_seal *seal, const char *text, int64_t now,
		   const struct seal_binding *binding, struct sealed *sealed_r);

#endif
