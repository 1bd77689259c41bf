/* SPDX-License-Identifier: Apache-2.0 */
/* A file that a client puts into its tenant's store (host/filestore.h), for the files of scripts
 * and sessions. The client writes the bytes into a pipe; this process sees none of them.
 *
 * The store's bounds hold as for files of scripts: of a file, a tenant, of what comes in at once,
 * and of its time.
 */
#ifndef ENGINE_UPLOAD_H
#define ENGINE_UPLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/id.h"

struct tenant;
struct upload;

#define UPLOAD_NAME_MAX 255	/* bytes of a file's name */
#define UPLOAD_ID (2 + ID_CHARACTERS)	/* characters of "u-..." */

/* How it ended. Borrowed for the call. */
struct upload_end {
	int error;			/* 0: it is kept; else a code of filestore_calls.end */
	const char *why;		/* a clause for people; NULL with error 0 */
	const char *uri;
	const unsigned char *sha256;	/* FILESTORE_SHA256 bytes; NULL: it is not kept */
};

struct upload_calls {
	/* The writing end of the pipe, the callee's; at most once. May be called from within
	 * upload_new. */
	void (*begin)(void *arg, int fd);
	/* Once, from the loop. The upload is gone. */
	void (*end)(void *arg, const struct upload_end *end);
	void *arg;
};

/* Makes room for a file of size bytes and keeps what will be written. name: one name, UTF-8 that is
 * shown as it is (quote_is_plain). The tenant is borrowed until the end. NULL with *why_r, a
 * clause: it is refused, and nothing was called. */
struct upload *upload_new(struct tenant *tenant, const char *name, size_t name_len, uint64_t size,
			  const struct upload_calls *calls, const char **why_r);

/* An address for an upload to come, malloc'd; name: escaped as in a URI. NULL: it is none. */
char *upload_uri(const char *name);

/* As upload_new, at the address that upload_uri has made; it takes the place of an earlier one.
 * place: the address without its scheme. */
struct upload *upload_new_at(struct tenant *tenant, const char *place, uint64_t size,
			     const struct upload_calls *calls, const char **why_r);

/* The client has gone: nothing is kept, and nothing is called any more. NULL is fine. Not from
 * within a callback of the upload. */
void upload_cancel(struct upload *upload);

#endif
