/* SPDX-License-Identifier: Apache-2.0 */
/* A listening unix socket that we make ourselves, and the lock that says whose it is.
 *
 * PATH.lock is held with flock(2) for as long as the process lives, so two supervisors that
 * start at the same time cannot both take PATH, and a dead one's leaves nothing in the way.
 */
#ifndef BASE_SOCKETFILE_H
#define BASE_SOCKETFILE_H

#include <sys/types.h>

struct socketfile;
struct why;

/* Makes PATH, mode 0600, belonging to owner, and listens; when PATH is there, it listens. A
 * socket there that nobody
 * serves is replaced; anything else there is refused. 0 or -errno with why_r filled:
 * -EADDRINUSE when another supervisor serves it. *listen_fd_r is the caller's. */
int socketfile_open(const char *path, uid_t owner, struct socketfile **file_r,
		    int *listen_fd_r, struct why *why_r);

/* The default path: $XDG_RUNTIME_DIR/mcp-pythond.sock, else for root
 * /run/mcp-pythond/mcp.sock, whose directory is made and given to owner. malloc'd; NULL
 * with why_r filled when there is no such place. */
char *socketfile_default(uid_t owner, struct why *why_r);

/* Where it is; NULL for none. */
const char *socketfile_path(const struct socketfile *file);

/* Removes socket and lock where the directory still lets us: a process that has dropped
 * root may not, and then leaves a dead socket that the next start replaces. NULL is fine. */
void socketfile_close(struct socketfile *file);

#endif
