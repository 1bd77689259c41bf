/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of stored files: files that executions left, and uploads. */
#ifndef ENGINE_FILE_URI_H
#define ENGINE_FILE_URI_H

#include <stddef.h>

#define FILE_URI_SCHEME "mcp-python://"

/* mcp-python://ID/PATH, malloc'd. Characters of the path that are not plain in a URI are escaped.
 * id: of the execution, or of an upload. */
char *file_uri(const char *id, const char *path, size_t path_len);

#endif
