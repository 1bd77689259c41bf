/* SPDX-License-Identifier: Apache-2.0 */
/* A file that a client puts into its tenant's store (host/filestore.h), for the files of scripts
 * and sessions. The client writes the bytes into a pipe; this process sees none of them.
 *
 * The bounds of the store are the same as for files of scripts: the size of a file, the size of all
 * files of a tenant, the number of files that arrive at the same time, and the time.
 */
#ifndef ENGINE_UPLOAD_H
#define ENGINE_UPLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/id.h"

struct tenant;
struct upload;

#define UPLOAD_NAME_MAX 255	/* bytes of a file's name */
#define UPLOAD_ID (2 + ID_SHORT)	/* characters of an upload's id, "u-..." */

/* How an upload ended. Everything is borrowed for the call. */
struct upload_end {
	int error;			/* 0: it is kept; else a code of filestore_calls.end */
	const char *why;		/* a clause for people; NULL with error 0 */
	const char *uri;
	const unsigned char *sha256;	/* FILESTORE_SHA256 bytes; NULL: it is not kept */
};

struct upload_calls {
	/* Passes the writing end of the pipe, which belongs to the callee; called at most once. May
	 * be called from within upload_new. */
	void (*begin)(void *arg, int fd);
	/* Called once, from the loop. The upload is freed. */
	void (*end)(void *arg, const struct upload_end *end);
	void *arg;
};

/* Makes room for a file of size bytes, and keeps the bytes that will be written to the pipe. name:
 * one name without a directory, in UTF-8 that is shown unchanged (quote_is_plain). The tenant is
 * borrowed until end is called. NULL with *why_r, a clause: the upload is refused, and no callback
 * was called. */
struct upload *upload_new(struct tenant *tenant, const char *name, size_t name_len, uint64_t size,
			  const struct upload_calls *calls, const char **why_r);

/* An address for a later upload, malloc'd. name: the file's name, escaped as in a URI. NULL: the
 * name is not valid. */
char *upload_uri(const char *name);

/* As upload_new, but at an address that upload_uri has made, and that has no file yet. place: the
 * address without its scheme. */
struct upload *upload_new_at(struct tenant *tenant, const char *place, uint64_t size,
			     const struct upload_calls *calls, const char **why_r);

/* Ends an upload whose client has gone: nothing is kept, and no callback is called any more. NULL
 * is fine. Not to be called from within a callback of the upload. */
void upload_cancel(struct upload *upload);

#endif
