/* SPDX-License-Identifier: Apache-2.0 */
/* The store of files on disk: files of scripts that are too large for the memory of the service,
 * and files of clients. It survives a restart.
 *
 * Disks are slow, so the event loop makes no call that waits for one. A helper process is forked at
 * start-up, without privilege and with one socket. It forks a child for each file that is kept or
 * fetched. The child has a pipe: a worker writes the file into it, and the supervisor sees none of
 * the bytes. A pipe carries no descriptors, so a script can pass none. A child ends when the
 * announced number of bytes has passed, or is killed at its time limit.
 *
 * The supervisor has the index: who owns which file, how large it is and until when it is kept. It
 * decides whether there is room for a file. On disk each tenant has a directory, named by a hash of
 * the tenant, and each file a random name. The script's name of the file is data in a second file
 * beside it, which is written last. A file without a second file is incomplete, after a crash, and
 * is removed at the next start.
 */
#ifndef HOST_FILESTORE_H
#define HOST_FILESTORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct event_base;
struct filestore;
struct filestore_hold;
struct filestore_job;

#define FILESTORE_SHA256 32

/* Bounds on the files, in bytes, and how many seconds they are kept. */
struct filestore_bounds {
	uint64_t file_bytes;		/* of one file; 0: nothing is kept */
	uint64_t tenant_bytes;		/* of one tenant's files */
	uint64_t bytes_max;		/* of all files */
	uint32_t tenant_files;		/* files of one tenant */
	uint32_t keep_seconds;
	uint32_t place_seconds;		/* how long a job may wait until it begins */
	bool passing;			/* filestore_free removes all files */
	bool roots;			/* the helper may open files of its user */
};

/* A file that is kept. Borrowed until the store is used again. */
struct filestore_file {
	const char *uri;		/* the tenant's name for it, unique among its files */
	const char *path;		/* a script's or a client's name for it; UTF-8 */
	uint64_t size;
	unsigned char sha256[FILESTORE_SHA256];
	uint64_t until_s;		/* since the epoch, by the clock of the service's start */
};

/* A file of the helper's user, outside of the store. Both borrowed. */
struct filestore_local {
	const char *root;		/* an absolute path */
	const char *path;		/* below root; no symbolic link and no other file system may
					 * be on the way */
};

/* To be called before the fork servers are forked (forker.h). directory is borrowed. roots: as in
 * filestore_bounds. */
void filestore_plan(const char *directory, bool roots);

/* Plans and forks the helper, and reads the index. To be called before a client's first byte is
 * read. directory: an absolute path, borrowed; the directory is made if only the last part is
 * missing. It must belong to this user, other users must not be able to write to it, and only one
 * supervisor may use it at a time. 0 or -errno. */
int filestore_new(const char *directory, const struct filestore_bounds *bounds,
		  struct filestore **store_r);

/* Ends the helper; jobs are dropped. Waits some seconds at most for files to be removed
 * (bounds.passing). NULL is fine. */
void filestore_free(struct filestore *store);

/* To be called before the first job. From then on files that expire are removed. If the helper
 * ends, it is made again: active jobs fail with -EPIPE, others wait, and the index stays. */
void filestore_watch(struct filestore *store, struct event_base *base);

/* The helper's process; 0 for NULL. */
pid_t filestore_pid(const struct filestore *store);

/* ---- jobs: a file comes in, or goes out ---- */

/* The callbacks of a job. Each is called at most once. begin is called before end. end is always
 * called, from the loop, unless the job is cancelled. */
struct filestore_calls {
	/* fd: the end of the pipe for the worker that writes, or for the reader; it belongs to the
	 * callee. May be called from within the function that makes the job. */
	void (*begin)(void *arg, int fd);
	/* The answer to filestore_look, before end. NULL for other jobs. */
	void (*size)(void *arg, uint64_t size);
	/* error: 0, or
	 * -EFBIG     larger than a file may be
	 * -EDQUOT    there is no room for it among the tenant's files
	 * -ENOSPC    there is no room in the store, or on the disk
	 * -ESTALE    fewer bytes came than were announced, or the file is gone
	 * -ETIMEDOUT it took too long
	 * -EBUSY     other jobs used all places for place_seconds, so it has not begun
	 * -EPIPE     the helper was lost, or is away
	 * or another -errno. The job is freed. */
	void (*end)(void *arg, int error);
	void *arg;
	bool is_slow;	/* a client writes the bytes, at its own pace: such jobs may not use all
			 * places */
};

/* Begins to keep a file of the tenant: size bytes, which will be written to the pipe. If there is
 * no room, older files of the tenant are removed. Names are copied. */
struct filestore_job *
filestore_keep(struct filestore *store, const char *principal, const char *uri, const char *path,
	       size_t path_len, uint64_t size, const struct filestore_calls *calls);

/* Begins to write len bytes of the tenant's file to the pipe, from offset on. seconds: the time
 * limit of the job. */
struct filestore_job *
filestore_fetch(struct filestore *store, const char *principal, const char *uri, uint64_t offset,
		uint64_t len, unsigned int seconds, const struct filestore_calls *calls);

/* Finds the size of a local file. end gets -EINVAL if it is no regular file; -ELOOP, -EXDEV: a link
 * or another file system is on the way; -EPERM: bounds.roots is not set. What begin gets has no
 * meaning. */
struct filestore_job *
filestore_look(struct filestore *store, const char *principal, const struct filestore_local *local,
	       unsigned int seconds, const struct filestore_calls *calls);

/* As filestore_keep, for a copy of a local file, which must still have this size when it is opened.
 * What begin gets has no meaning. */
struct filestore_job *
filestore_keep_local(struct filestore *store, const char *principal, const char *uri,
		     const char *path, uint64_t size, const struct filestore_local *local,
		     const struct filestore_calls *calls);

/* Begins to write a file to a new local file, all or nothing. source: a descriptor of a file in
 * memory with its size bytes, which the job takes over; -1: it is the tenant's file at uri. end
 * gets -EEXIST if the local file is there already; -EOPNOTSUPP: its file system has no unnamed
 * files; -ELOOP, -EXDEV and -EPERM: as filestore_look. What begin gets has no meaning. */
struct filestore_job *
filestore_give(struct filestore *store, const char *principal, const char *uri, int source,
	       uint64_t size, const struct filestore_local *local,
	       const struct filestore_calls *calls);

/* Ends a job: end is not called, and an incomplete file is dropped. Not to be called from within a
 * callback of the job. */
void filestore_cancel(struct filestore_job *job);

/* ---- the index ---- */

/* Finds the tenant's file at uri. False: there is none. */
bool filestore_find(struct filestore *store, const char *principal, const char *uri,
		    struct filestore_file *file_r);

/* Finds the tenant's file with the smallest uri that is greater than after. False: there is none.
 */
bool filestore_next(struct filestore *store, const char *principal, const char *after,
		    struct filestore_file *file_r);

/* Removes the tenant's file, if there is one. */
void filestore_remove(struct filestore *store, const char *principal, const char *uri);

/* ---- files in use ---- */

/* Holds a file: until filestore_release it stays on the disk, counts against its tenant, and is not
 * removed to make room for others. If it expires or is removed meanwhile, it stays as well, but
 * cannot be found any more. NULL: the tenant has no such file. All holds must be released before
 * the store is freed. */
struct filestore_hold *filestore_hold(struct filestore *store, const char *principal,
				      const char *uri);

/* NULL is fine. */
void filestore_release(struct filestore_hold *hold);

/* The place of a held file: the name of its tenant's directory, and its name in that directory.
 * Both live as long as hold. */
const char *filestore_hold_directory(const struct filestore_hold *hold);
const char *filestore_hold_name(const struct filestore_hold *hold);

/* Is the held file the one that its tenant finds at uri now? */
bool filestore_hold_is(const struct filestore_hold *hold, const char *uri);

/* Sets the clock, in seconds; for tests. NULL: its own. */
void filestore_set_clock(uint64_t (*now_s)(void));

#endif
