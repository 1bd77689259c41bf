/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of kept files as the answers of resources/read: a uri may end in ?bytes=FIRST-LAST or
 * ?bytes=FIRST-, as in HTTP's Range. Files on disk are read by the store's helper.
 */
#ifndef TOOLS_SHARED_FILE_READ_H
#define TOOLS_SHARED_FILE_READ_H

#include "mcp/tool.h"

#define FILE_READ_MAX OUTCOME_PART_MAX	/* bytes of a file on disk in one answer */

struct filestore_file;

/* The part of a file that a client asks for. */
struct file_range {
	char *uri;			/* without the range; malloc'd */
	bool is_part, is_open;		/* it has a range; the range has no end */
	uint64_t first, last;
};

/* Reads a uri with or without a range. False: the text after '?' is not a range, and nothing has to
 * be freed. */
bool file_range_read(const char *uri, struct file_range *range_r);

/* Computes the bytes that a range selects in a file of this size. most: the largest part that can
 * be read; a range without an end is cut to it. 0; -ERANGE: the range begins after the end of the
 * file; -EFBIG: it is longer than most. */
int file_range_fit(const struct file_range *range, uint64_t size, uint64_t most,
		   uint64_t *offset_r, size_t *len_r);

/* Answers with these bytes: as text if they are UTF-8, else as a blob. */
void file_read_answer(const struct tool_host *host, const char *uri, const char *mime_type,
		      const void *data, size_t len);

/* Answers later with a part of a file in the tenant's store. uri: as the client wrote it. */
struct tool_run *file_read_start(const struct tool_host *host, const char *uri,
				 const struct filestore_file *file, uint64_t offset, size_t len);
void file_read_cancel(struct tool_run *run);

#endif
