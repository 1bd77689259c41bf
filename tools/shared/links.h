/* SPDX-License-Identifier: Apache-2.0 */
/* Signed links: addresses at which a kept file is read over HTTP, or a file is uploaded, without a
 * token, by anybody who has the link, until it expires ([http] links).
 *
 *   BASE/files/TENANT-EXPIRES-SIGNATURE/REST-OF-URI
 *
 * TENANT is a number that stands for the tenant's name in this process. The key is this process's
 * own, so links end with it.
 */
#ifndef TOOLS_SHARED_LINKS_H
#define TOOLS_SHARED_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#define LINKS_PATH "/files/"
#define UPLOAD_LINKS "upload/"		/* before the file of a link by which one is uploaded */

struct config;
struct tenant;

/* The link to the tenant's file at uri, malloc'd. NULL: the configuration has none. */
char *link_new(const struct config *config, const struct tenant *tenant, const char *uri);

struct link {
	const char *principal;		/* static: valid as long as the process */
	char *uri;			/* malloc'd */
};

/* Reads the path of a request, as it was sent. False: it is no link of ours, or is over. */
bool link_read(const char *path, struct link *link_r);

/* For tests: the real-time clock, in s. */
void links_set_clock(uint64_t (*now_s)(void));

#endif
