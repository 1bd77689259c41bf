/* SPDX-License-Identifier: Apache-2.0 */
/* Files in /workspace: input files before the script runs, and the files that it leaves.
 *
 * The worker handles both, in the jail and as the script's uid: a link or a name can reach nothing
 * that the script could not reach; reading and hashing use the run's own time and memory; and the
 * supervisor never opens a file that a script made. A script can falsify the report, which only its
 * own caller gets.
 */
#ifndef WORKER_WORKSPACE_H
#define WORKER_WORKSPACE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

#include "proto/message.h"

#define WORKSPACE "/workspace"
#define WORKSPACE_SCRIPT WORKSPACE "/script.py"	/* where __main__ is found as a file */

/* Bounds for the report of left files; set by the zygote, before any worker is made. */
struct workspace_bounds {
	uint32_t files;
	uint32_t file_bytes, bytes;	/* of one whose content is told; of all of them */
	uint64_t offer_bytes;		/* of one that is offered instead; 0: none is */
};

extern struct workspace_bounds workspace_bounds;

/* The script's own file, which is not told of unless it was changed. It exists before the script
 * is known, so that making it costs the run nothing: first one byte, open for writing by the
 * caller; a descriptor or -errno. */
int workspace_script_new(void);

/* Writes the script to fd, which is closed, and says in *st_r how the file looks then. 0 or
 * -errno. */
int workspace_script_write(int fd, const struct msg_bin *script, struct stat *st_r);

/* Sessions have none. */
void workspace_script_remove(void);

/* Writes an input file, and makes the directories above it. It replaces another file only if
 * replace is set, or if that is the script's own. 0 or -errno. */
int workspace_put(const struct msg_input *input, bool replace);

/* The same, with a symbolic link to the place of a stored file. */
int workspace_link(const struct msg_link *link, bool replace);

/* 0: a volume is mounted and answers; or -errno. */
int workspace_has_volume(void);

/* Notes the state of an empty root in a tmpfs, so that workspace_tell need not read a directory
 * that was not changed. */
void workspace_note(const char *root);

/* Sends LEFT for each regular file below root, and LEFT_MORE when there are more than may be
 * told of; with since (CLOCK_REALTIME_COARSE) only for those made or changed since then, and
 * not for the script's own (NULL: none) when it looks as it did. Follows no links; what cannot
 * be read is told without its sum. 0 or -errno of the socket.
 *
 * With may_offer files whose content is too large for LEFT are offered (OFFER), and written to the
 * pipe that comes back; this waits until they are kept, and nothing else may read from control. */
int workspace_tell(const char *root, int control, const struct timespec *since,
		   const struct stat *script, bool may_offer);

#endif
