/* SPDX-License-Identifier: Apache-2.0 */
/* A listening unix socket that the service makes itself, and the lock that says which process has
 * it.
 *
 * PATH.lock is held with flock(2) for as long as the process lives, so two supervisors that start
 * at the same time cannot both take PATH, and the lock of a process that has ended is free.
 */
#ifndef BASE_SOCKETFILE_H
#define BASE_SOCKETFILE_H

#include <sys/types.h>

struct socketfile;
struct why;

/* Makes a socket at PATH, with mode 0600 and this owner, and listens on it. A socket at PATH that
 * no process serves is replaced; any other file there is an error. 0 or -errno with why_r filled;
 * -EADDRINUSE: another supervisor serves it. *listen_fd_r is the caller's. */
int socketfile_open(const char *path, uid_t owner, struct socketfile **file_r,
		    int *listen_fd_r, struct why *why_r);

/* The default path, malloc'd: $XDG_RUNTIME_DIR/mcp-pythond.sock, or else, for root,
 * /run/mcp-pythond/mcp.sock, whose directory is made and given to owner. NULL with why_r filled:
 * there is neither. */
char *socketfile_default(uid_t owner, struct why *why_r);

/* Its path; NULL if file is NULL. */
const char *socketfile_path(const struct socketfile *file);

/* Removes socket and lock, if this process may: after it has dropped root it may not, and a dead
 * socket stays, which the next start replaces. NULL is fine. */
void socketfile_close(struct socketfile *file);

#endif
