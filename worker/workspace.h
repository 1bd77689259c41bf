/* SPDX-License-Identifier: Apache-2.0 */
/* Files in /workspace: input files before the script runs, and the files that it leaves.
 *
 * The worker handles both inside the jail, with the script's uid. So a link or a name can lead only
 * to files that the script could reach itself, reading and hashing count for the run's own time and
 * memory, and the supervisor never opens a file of a script. A script can falsify the report, but
 * only its own caller gets it.
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
	uint32_t file_bytes, bytes;	/* of a file whose content is sent; of all of them */
	uint64_t offer_bytes;		/* of a file that is offered instead; 0: none is offered */
};

extern struct workspace_bounds workspace_bounds;

/* Makes the script's own file, which is reported only if it was changed. It is made before the
 * script is known, so that a run does not spend time on that, with one byte in it. Returns a
 * descriptor for writing, or -errno. */
int workspace_script_new(void);

/* Writes the script to fd, and closes it; *st_r gets the state of the file. 0 or -errno. */
int workspace_script_write(int fd, const struct msg_bin *script, struct stat *st_r);

/* Removes the script's file, for a session, which has none. */
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

/* Sends LEFT for each regular file below root, and LEFT_MORE if there are more than the bound. With
 * since (CLOCK_REALTIME_COARSE) it reports only files made or changed since then. The script's own
 * file (NULL: none) is left out if it has not changed. Follows no links; a file that cannot be read
 * is reported without its sum. 0 or -errno of the socket.
 *
 * With may_offer a file that is too large for LEFT is offered (OFFER), and written to the pipe that
 * comes back. This waits until it is kept; meanwhile no other code may read from control. */
int workspace_tell(const char *root, int control, const struct timespec *since,
		   const struct stat *script, bool may_offer);

#endif
