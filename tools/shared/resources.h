/* SPDX-License-Identifier: Apache-2.0 */
/* The resources of mcp-pythond: files of calls, which are kept for a while.
 *
 * The contents of small files are kept in memory. Only the tenant that they belong to can list and
 * read them:
 *
 *   mcp-python://<execution id>/<path>            a file that a script left
 *   mcp-python://<execution id>#stdout-<offset>   a part of a stream, with spill
 *   mcp-python://<execution id>#stdout            a text of which an answer shows only the ends
 *   mcp-python://<execution id>#display-0.png     a picture or markup that was displayed
 *
 * A content is dropped after [results] keep_seconds, or earlier, oldest first, to make room for
 * newer ones. The memory of expired contents is freed when the store is next used; it is bounded in
 * any case.
 *
 * Larger files are on disk (host/filestore.h), at uris of the same form. They are listed and read
 * together with the others. If there are signed links, reading mcp-python://upload/NAME gives a
 * link by which a file can be uploaded. A uri may end in a range: tools/shared/file_read.h.
 */
#ifndef TOOLS_SHARED_RESOURCES_H
#define TOOLS_SHARED_RESOURCES_H

#include "engine/file_uri.h"
#include "mcp/catalog.h"

/* The page that shows the answers of run_script, run_repl and job in clients that can show it. Its
 * address changes with it, because clients keep it. */
#define VIEW_URI "ui://mcp-pythond/" PACKAGE_VERSION "/result.html"

#define RESOURCES_TENANT_MAX 1000		/* files of one tenant */

extern const struct resource_provider own_resources;

/* The address of a part of a stream with spill; malloc'd. */
char *resources_part_uri(const char *execution_id, const struct outcome_part *part);

/* The address of a displayed picture or markup; malloc'd. NULL: the object is neither. */
char *resources_display_uri(const char *execution_id, const struct outcome_display *display);

/* Keeps the outcome's files, displayed objects, and parts of streams. */
void resources_keep(const struct config *config, const struct tenant *tenant,
		    const struct outcome *outcome);

/* Keeps a text of which an answer shows only a part, at mcp-python://<execution id>#<name>. Returns
 * the address, malloc'd; NULL: the text is longer than half of a tenant's bound. */
char *resources_keep_text(const struct config *config, const struct tenant *tenant,
			  const char *execution_id, const char *name, const char *text,
			  size_t len);

/* The content of the tenant's file at this address; borrowed until the store is used again. False:
 * it is not in memory. */
bool resources_find(const struct tenant *tenant, const char *uri, const void **data_r,
		    size_t *len_r);

struct resource_content {
	const void *data;		/* borrowed, as of resources_find; NULL: it is on disk */
	uint64_t size;
	char sha256[65];		/* hexadecimal */
};

/* Says what the tenant's file at this address has now. False: there is none. */
bool resources_look(const struct tenant *tenant, const char *uri,
		    struct resource_content *content_r);

/* Has the tenant a file at this address that is on disk, and not in memory? */
bool resources_is_on_disk(const struct tenant *tenant, const char *uri);

/* Forgets everything. */
void resources_forget(void);

/* Sets the clock, in milliseconds; for tests. */
void resources_set_clock(uint64_t (*now_ms)(void));

#endif
