/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of kept files as the answers of resources/read: a uri may end in ?bytes=FIRST-LAST or
 * ?bytes=FIRST-, as in HTTP's Range. Files on disk are read by the store's helper.
 */
#ifndef TOOLS_SHARED_FILE_READ_H
#define TOOLS_SHARED_FILE_READ_H

#include "mcp/tool.h"

#define FILE_READ_MAX OUTCOME_PART_MAX	/* bytes of a file on disk in one answer */

struct filestore_file;

/* What a client asks for. */
struct file_range {
	char *uri;			/* without the range; malloc'd */
	bool is_part, is_open;		/* it has a range; without an end */
	uint64_t first, last;
};

/* False: what follows '?' is no range. Then there is nothing to free. */
bool file_range_read(const char *uri, struct file_range *range_r);

/* The bytes that it means in a file of size: 0; -ERANGE: it begins behind the end; -EFBIG: they are
 * more than most. Without an end it means as many as most lets it. */
int file_range_fit(const struct file_range *range, uint64_t size, uint64_t most,
		   uint64_t *offset_r, size_t *len_r);

/* Answers with these bytes: as text if they are UTF-8, else as a blob. */
void file_read_answer(const struct tool_host *host, const char *uri, const char *mime_type,
		      const void *data, size_t len);

/* Answers with a part of a file in the tenant's store, later. uri: as the client said it. */
struct tool_run *file_read_start(const struct tool_host *host, const char *uri,
				 const struct filestore_file *file, uint64_t offset, size_t len);
void file_read_cancel(struct tool_run *run);

#endif
