/* SPDX-License-Identifier: Apache-2.0 */
/* A listening unix socket that the service makes itself, and a lock file that shows which process
 * serves it.
 *
 * A second name, PATH.spare, is a hard link of the socket. If somebody removes or replaces PATH,
 * the same socket gets its name again from there, without the right to make a socket.
 *
 * A process that serves the socket PATH holds PATH.lock by flock(2) as long as it lives. So two
 * supervisors that start at the same time cannot both take PATH, and the lock is free when the
 * process has ended.
 */
#ifndef BASE_SOCKETFILE_H
#define BASE_SOCKETFILE_H

#include <stdbool.h>
#include <sys/types.h>

struct socketfile;
struct why;

/* Makes a socket at path, with mode 0600 and this owner, and listens on it. A socket at path that
 * no process serves is replaced; any other file at path is an error. 0, and the caller owns
 * *listen_fd_r; -EADDRINUSE: another supervisor serves the socket; or another -errno. After an
 * error why_r is filled in.
 */
int socketfile_open(const char *path, uid_t owner, struct socketfile **file_r,
		    int *listen_fd_r, struct why *why_r);

/* A socket that systemd has made: socketfile_look says whether it is still at its path. NULL: it
 * has none that this process sees. */
struct socketfile *socketfile_of(int fd);

/* Is the socket still at its path? If not, gives it its name again. 0: it is there, or cannot be
 * seen; 1: again; or -errno; -EEXIST: systemd has made it, and has to do so again; -EADDRINUSE:
 * another process serves the path. */
int socketfile_look(const struct socketfile *file);

/* The default path, malloc'd: $XDG_RUNTIME_DIR/mcp-pythond.sock. If the variable is not set, it is
 * /run/mcp-pythond/mcp.sock for root, and there is none for other users. If the directory of root's
 * socket is missing, it is made, and belongs to owner. NULL with why_r: there is no path, or the
 * directory cannot be made. */
char *socketfile_default(uid_t owner, struct why *why_r);

/* The path of the socket; NULL if file is NULL. */
const char *socketfile_path(const struct socketfile *file);

/* Has this process made it? file: not NULL. */
bool socketfile_is_own(const struct socketfile *file);

/* Removes the socket and the lock, if this process may do so. After it has dropped root it may not:
 * then the socket stays, and the next start replaces it. NULL is fine. */
void socketfile_close(struct socketfile *file);

#endif
