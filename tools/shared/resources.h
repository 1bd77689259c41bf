/* SPDX-License-Identifier: Apache-2.0 */
/* The resources of mcp-pythond: files that calls left behind, for a while.
 *
 * What a run's end tells of a small file's content is kept here for its tenant, who alone can
 * list and read it, at mcp-python://<execution id>/<path>; a stream that was spilled, in parts, at
 * mcp-python://<execution id>#stdout-<offset>; and a text that an answer shows by its ends, at
 * mcp-python://<execution id>#stdout; and pictures and markup that were shown, at
 * mcp-python://<execution id>#display-0.png. It is given up after
 * [results] keep_seconds, and before that, oldest first, for what is newer; memory of what has
 * expired is given back at the next look at the store, and bounded in any case.
 *
 * Files that are too large for that are on disk (host/filestore.h), at uris of the same form; they
 * are listed and read together with the others. Where there are signed links,
 * mcp-python://upload/NAME reads as a link by which a file is uploaded. A uri may end in a range:
 * tools/shared/file_read.h.
 */
#ifndef TOOLS_SHARED_RESOURCES_H
#define TOOLS_SHARED_RESOURCES_H

#include "engine/file_uri.h"
#include "mcp/catalog.h"

#define RESOURCES_TENANT_MAX 1000		/* files of one tenant */

extern const struct resource_provider own_resources;

/* The address of a part of a stream that was spilled; malloc'd. */
char *resources_part_uri(const char *execution_id, const struct outcome_part *part);

/* The address of a picture or of markup that was shown; malloc'd. NULL: it is neither. */
char *resources_display_uri(const char *execution_id, const struct outcome_display *display);

/* Keeps what came with the outcome of its files, what it has shown, and what was spilled. */
void resources_keep(const struct config *config, const struct tenant *tenant,
		    const struct outcome *outcome);

/* Keeps a text of an execution that an answer shows in part, at mcp-python://<execution id>#<name>.
 * Returns the address, malloc'd; NULL: it is longer than half of what a tenant may
 * keep. */
char *resources_keep_text(const struct config *config, const struct tenant *tenant,
			  const char *execution_id, const char *name, const char *text,
			  size_t len);

/* The content of one that the tenant may read; borrowed until the store is used again. */
bool resources_find(const struct tenant *tenant, const char *uri, const void **data_r,
		    size_t *len_r);

/* Has the tenant a file at this address that is on disk, and not in memory? */
bool resources_is_on_disk(const struct tenant *tenant, const char *uri);

/* Forgets everything. */
void resources_forget(void);

/* For tests: the clock, in ms. */
void resources_set_clock(uint64_t (*now_ms)(void));

#endif
