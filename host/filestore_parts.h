/* SPDX-License-Identifier: Apache-2.0 */
/* The two sides of the store of files: filestore.c in the supervisor; filestore_process.c and
 * filestore_disk.c in the helper. */
#ifndef HOST_FILESTORE_PARTS_H
#define HOST_FILESTORE_PARTS_H

#include "host/filestore.h"
#include "proto/message.h"

#define FILESTORE_JOBS 32	/* children that the helper has at the same time */

/* What the helper is started with. */
struct filestore_place {
	const char *directory;		/* its path */
	bool roots;			/* it may open files outside of it */
};

/* The helper: a helper_live_fn. place: a struct filestore_place. Sends the index, then serves jobs
 * on socket until the supervisor closes its end. */
_Noreturn void filestore_live(const void *place, int socket, pid_t supervisor);

/* ---- filestore_disk.c: these functions wait for the disk ---- */

/* Opens the store's directory, and locks it for this process. A descriptor, or -errno. */
int filestore_disk_open(const char *directory);

/* The name of a tenant's directory in the store. 0 or -errno. */
int filestore_disk_tenant(const struct msg_str *principal, char name_r[FILE_DIRECTORY + 1]);

/* Reads the file's bytes from in and keeps them, all or nothing. 0 or -errno, as
 * filestore_calls.end. */
int filestore_disk_keep(int root, const struct msg_store_file *file, int in,
			unsigned char sha256_r[FILESTORE_SHA256]);

/* Writes a part of the file to out. 0 or -errno; -EPIPE: the reader has closed it. */
int filestore_disk_fetch(int root, const struct msg_fetch_file *part, int out);

/* Writes a file of the store, or the bytes of in, to a new file outside. 0 or -errno, as
 * filestore_give. */
int filestore_disk_give(int root, const struct msg_give_file *file, int in,
			unsigned char sha256_r[FILESTORE_SHA256]);

/* Opens a regular file below a directory, for reading. A descriptor with *size_r, or -errno, as
 * filestore_look. */
int filestore_disk_open_local(const struct msg_str *root, const struct msg_str *path,
			      uint64_t *size_r);

/* Removes the file, or the part of it that exists. */
void filestore_disk_remove(int root, const struct msg_str *principal, const struct msg_str *file);

/* Calls on_file for each file. Removes files that have expired by now_s, and everything that is not
 * a file of the store. on_file returns 0, or -errno, which ends the listing. */
int filestore_disk_list(int root, uint64_t now_s,
			int (*on_file)(void *arg, const struct msg_stored_file *file), void *arg);

#endif
