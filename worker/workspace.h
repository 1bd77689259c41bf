/* SPDX-License-Identifier: Apache-2.0 */
/* Files in /workspace: input files before the script runs, and the files that it leaves.
 *
 * The worker handles both inside the jail, with the script's uid. So a link or a name can lead only
 * to files that the script could reach itself. Reading and hashing are charged to the run's time
 * and memory, and the supervisor never opens a file of a script. A script can falsify the report,
 * but only the caller of the script gets it.
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
	uint32_t file_bytes, bytes;	/* the largest file whose content is sent; all contents
					 * together */
	uint64_t offer_bytes;		/* the largest file that is offered instead; 0: none is
					 * offered */
};

extern struct workspace_bounds workspace_bounds;

/* Makes the script's own file, which is reported only if it was changed. The file is made, with one
 * byte in it, before the script is known, so that a run does not spend time on this. Returns a
 * descriptor for writing, or -errno. */
int workspace_script_new(void);

/* Writes the script to fd, and closes it; *st_r gets the state of the file. 0 or -errno. */
int workspace_script_write(int fd, const struct msg_bin *script, struct stat *st_r);

/* Removes the script's file, for a session, which has none. */
void workspace_script_remove(void);

/* Writes an input file, and makes the directories above it. It replaces an existing file only if
 * replace is set, or if that file is the script's own. 0 or -errno. */
int workspace_put(const struct msg_input *input, bool replace);

/* Forgets the input files of an earlier cell. */
void workspace_forget_inputs(void);

/* As workspace_put, but makes a symbolic link to the place of a stored file. */
int workspace_link(const struct msg_link *link, bool replace);

/* Checks that a volume or a folder is mounted at the place and answers. 0 or -errno. */
int workspace_has_mount(const char *place);

/* Notes the state of an empty root in a tmpfs. If root has not changed, workspace_tell does not
 * read the directory. */
void workspace_note(const char *root);

/* The time from which on files count as those of a cell that begins now. Files have the times of a
 * clock that ticks, so the function waits until that clock is past the last workspace_written:
 * otherwise a file of the cell before would be reported again. */
void workspace_begin(struct timespec *since_r);

/* All files that were written until now belong to what was before. */
void workspace_written(void);

/* Sends LEFT for each regular file below root, and LEFT_MORE if there are more files than the
 * bound. since (CLOCK_REALTIME_COARSE): only files made or changed since then are reported; NULL:
 * all. script: the state of the script's own file (NULL: none), which is left out if it has not
 * changed. Input files that have not changed since this process wrote them come last, and are
 * marked as given. Links are not followed. A file that cannot be read is reported without its hash.
 * What comes first is what is likely to matter: compare_found(). 0 or -errno of the socket.
 *
 * may_offer: a file that is too large for LEFT is offered (OFFER), and written to the pipe that
 * comes back. The function waits until the file is kept; meanwhile no other code may read from
 * control. */
int workspace_tell(const char *root, int control, const struct timespec *since,
		   const struct stat *script, bool may_offer);

#endif
