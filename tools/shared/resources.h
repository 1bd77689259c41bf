/* SPDX-License-Identifier: Apache-2.0 */
/* The resources of mcp-pythond: files of calls, which are kept for a while.
 *
 * The content of small files is kept in memory, and only its tenant can list and read it: a file
 * that a script left, at mcp-python://<execution id>/<path>; the parts of a stream with spill, at
 * mcp-python://<execution id>#stdout-<offset>; a text of which an answer shows only the ends, at
 * mcp-python://<execution id>#stdout; pictures and markup, at mcp-python://<execution
 * id>#display-0.png. It is dropped after [results] keep_seconds, or earlier, oldest first, to make
 * room for newer contents. Memory of expired contents is freed when the store is next used; it is
 * bounded in any case.
 *
 * Larger files are on disk (host/filestore.h), at uris of the same form; they are listed and read
 * together with the others. If there are signed links, mcp-python://upload/NAME reads as a link by
 * which a file is uploaded. A uri may end in a range: tools/shared/file_read.h.
 */
#ifndef TOOLS_SHARED_RESOURCES_H
#define TOOLS_SHARED_RESOURCES_H

#include "engine/file_uri.h"
#include "mcp/catalog.h"

#define RESOURCES_TENANT_MAX 1000		/* files of one tenant */

extern const struct resource_provider own_resources;

/* The address of a part of a stream with spill; malloc'd. */
char *resources_part_uri(const char *execution_id, const struct outcome_part *part);

/* The address of a displayed picture or markup; malloc'd. NULL: it is neither. */
char *resources_display_uri(const char *execution_id, const struct outcome_display *display);

/* Keeps the outcome's files, displayed objects, and parts of streams. */
void resources_keep(const struct config *config, const struct tenant *tenant,
		    const struct outcome *outcome);

/* Keeps a text of an execution of which an answer shows only a part, at mcp-python://<execution
 * id>#<name>. Returns the address, malloc'd; NULL: it is longer than half of a tenant's bound. */
char *resources_keep_text(const struct config *config, const struct tenant *tenant,
			  const char *execution_id, const char *name, const char *text,
			  size_t len);

/* The content of a file that the tenant may read; borrowed until the store is used again. */
bool resources_find(const struct tenant *tenant, const char *uri, const void **data_r,
		    size_t *len_r);

/* Has the tenant a file at this address that is on disk, and not in memory? */
bool resources_is_on_disk(const struct tenant *tenant, const char *uri);

/* Forgets everything. */
void resources_forget(void);

/* For tests: the clock, in ms. */
void resources_set_clock(uint64_t (*now_ms)(void));

#endif
