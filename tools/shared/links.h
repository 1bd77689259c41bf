/* SPDX-License-Identifier: Apache-2.0 */
/* Signed links ([http] links). Every client that has such an address can read a kept file over
 * HTTP, or upload a file, without a token, until the link expires. Links of a tenant end earlier
 * when a token of the tenant is revoked, or an operator suspends the tenant.
 *
 *   BASE/files/TENANT-EXPIRES-SIGNATURE/REST-OF-URI
 *
 * TENANT is a number that stands for the tenant's name in this process. The key for signatures
 * belongs to this process, so links become invalid when the process ends.
 */
#ifndef TOOLS_SHARED_LINKS_H
#define TOOLS_SHARED_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#define LINKS_PATH "/files/"
#define UPLOAD_LINKS "upload/"		/* before the file's name in a link for an upload */

struct config;
struct tenant;

/* The link to the tenant's file at uri, malloc'd. NULL: links are not configured. */
char *link_new(const struct config *config, const struct tenant *tenant, const char *uri);

struct link {
	const char *principal;		/* borrowed until links_end */
	uint64_t tenant;		/* for link_holds */
	char *uri;			/* malloc'd */
};

/* Reads the unchanged path of a request. False: it is not a link of this service, or has expired
 * or was ended. */
bool link_read(const char *path, struct link *link_r);

/* Were the links with this number not ended? */
bool link_holds(uint64_t tenant);

/* Ends all links that the tenant has. */
void links_end(const char *principal);

/* Sets the real-time clock, in seconds; for tests. */
void links_set_clock(uint64_t (*now_s)(void));

#endif
