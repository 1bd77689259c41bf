/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, before privilege is dropped.   Owns: the lock of a socket. */
#include "base/socketfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/own.h"
#include "base/ownerfile.h"
#include "base/why.h"
#include "base/xalloc.h"

#define ROOT_DIRECTORY "/run/mcp-pythond"
#define UNFINISHED ".new"
#define SPARE ".spare"
#define PATH_BYTES_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - sizeof(UNFINISHED))

struct socketfile {
	char *path, *lock_path, *spare;
	int lock_fd;		/* -1: systemd has made it */
	struct stat is;
};

/* May the file be used as the lock? Its owner is changed later, so it must not be another name of a
 * valuable file: it must be a regular file with a single link, of this process's user or of
 * owner. */
static bool
is_lock_file(int fd, uid_t owner)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink <= 1 &&
	       (st.st_uid == geteuid() || st.st_uid == owner);
}

/* Takes the lock. Returns its descriptor; -EADDRINUSE: another process holds it. The holder removes
 * the file when it ends, so the lock may belong to a removed file: then the function tries
 * again. */
static int
take_lock(const char *lock_path, uid_t owner)
{
	for (;;) {
		own_fd int fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
				     0600);

		if (fd < 0)
			return -errno;
		if (!is_lock_file(fd, owner))
			return -EPERM;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			return errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
		if (samefile(fd, lock_path))
			return give_fd(fd);
	}
}

static int
new_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

/* Removes the socket at address, if no program serves it. -EADDRINUSE: a program that does not hold
 * the lock, such as systemd, serves it. */
static int
clear_path(const struct sockaddr_un *address)
{
	own_fd int probe = -1;
	struct stat st;

	if (lstat(address->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	probe = new_socket();
	if (probe < 0)
		return probe;
	if (connect(probe, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
	    errno == EAGAIN)
		return -EADDRINUSE;
	if (errno != ECONNREFUSED)
		return -errno;
	return unlink(address->sun_path) < 0 ? -errno : 0;
}

/* Changes the owner through a descriptor: another process may have replaced the file at path. */
static int
give_socket(const char *path, uid_t owner)
{
	own_fd int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	return fchownat(fd, "", owner, (gid_t)-1, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

/* Under a temporary name first: a socket must accept connections as soon as its final name
 * exists. */
static int
bind_and_listen(const char *path, uid_t owner, int *listen_fd_r)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	own_fd int fd = new_socket();
	mode_t before;
	int r;

	if (fd < 0)
		return fd;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s" UNFINISHED, path);
	if (unlink(address.sun_path) < 0 && errno != ENOENT)
		return -errno;
	before = umask(0177);
	r = bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	umask(before);
	if (r < 0)
		return r;
	if (owner != geteuid())
		r = give_socket(address.sun_path, owner);
	if (r == 0 && (listen(fd, SOMAXCONN) < 0 || rename(address.sun_path, path) < 0))
		r = -errno;
	if (r < 0) {
		(void)unlink(address.sun_path);
		return r;
	}
	*listen_fd_r = give_fd(fd);
	return 0;
}

static int
say_failure(struct why *why_r, int r, const char *path)
{
	if (r == -EADDRINUSE)
		return why_say(why_r, r, "socket", "%s is served by another process", path);
	if (r == -EEXIST)
		return why_say(why_r, r, "socket", "%s exists and is not a socket", path);
	return why_say(why_r, r, "socket", "%s: %s", path, strerror(-r));
}

static bool
is_at(const struct socketfile *file, const char *path)
{
	struct stat there;

	return lstat(path, &there) == 0 && there.st_dev == file->is.st_dev &&
	       there.st_ino == file->is.st_ino;
}

static void
make_spare(const struct socketfile *file)
{
	(void)unlink(file->spare);
	(void)!link(file->path, file->spare);
}

int
socketfile_look(const struct socketfile *file)
{
	own_mem char *half = NULL;
	struct stat there;

	if (lstat(file->path, &there) < 0 && errno == EACCES)
		return 0;	/* the directory is hidden from this user */
	if (is_at(file, file->path)) {
		if (file->lock_fd >= 0 && !is_at(file, file->spare))
			make_spare(file);
		return 0;
	}
	if (file->lock_fd < 0)
		return -EEXIST;
	if (access(file->lock_path, F_OK) == 0 && !samefile(file->lock_fd, file->lock_path))
		return -EADDRINUSE;
	half = xasprintf("%s" UNFINISHED, file->path);
	(void)unlink(half);
	return !is_at(file, file->spare) ? -ENOENT
	       : link(file->spare, half) < 0 || rename(half, file->path) < 0 ? -errno : 1;
}

struct socketfile *
socketfile_of(int fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNSPEC };
	socklen_t len = sizeof(address) - 1;
	struct socketfile *file;
	struct stat is;

	if (fd < 0 || getsockname(fd, (struct sockaddr *)&address, &len) < 0 ||
	    address.sun_family != AF_UNIX || lstat(address.sun_path, &is) < 0)
		return NULL;
	file = xcalloc(1, sizeof(*file));
	*file = (struct socketfile){ .path = xstrdup(address.sun_path), .lock_fd = -1, .is = is };
	return file;
}

int
socketfile_open(const char *path, uid_t owner, struct socketfile **file_r,
		int *listen_fd_r, struct why *why_r)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	own_mem char *lock_path = NULL;
	own_fd int lock_fd = -1;
	struct socketfile *file;
	int r;

	if (strlen(path) > PATH_BYTES_MAX)
		return why_say(why_r, -ENAMETOOLONG, "socket",
			       "the path of the socket has %zu bytes; at most %zu are possible",
			       strlen(path), PATH_BYTES_MAX);
	strcpy(address.sun_path, path);
	lock_path = xasprintf("%s.lock", path);
	lock_fd = take_lock(lock_path, owner);
	r = lock_fd < 0 ? lock_fd : clear_path(&address);
	if (r == 0)
		r = bind_and_listen(path, owner, listen_fd_r);
	if (r == 0 && owner != geteuid() && fchown(lock_fd, owner, (gid_t)-1) < 0)
		r = -errno;
	if (r < 0)
		return say_failure(why_r, r, path);
	file = xcalloc(1, sizeof(*file));
	file->path = xstrdup(path);
	file->lock_path = give_ptr(lock_path);
	file->lock_fd = give_fd(lock_fd);
	file->spare = xasprintf("%s" SPARE, path);
	if (lstat(path, &file->is) == 0)
		make_spare(file);
	*file_r = file;
	return 0;
}

char *
socketfile_default(uid_t owner, struct why *why_r)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char *path = NULL;

	if (runtime && *runtime == '/') {
		path = xasprintf("%s/mcp-pythond.sock", runtime);
		return path;
	}
	if (geteuid() != 0) {
		why_say(why_r, -ENOENT, "socket",
			"XDG_RUNTIME_DIR is not set: say where with --socket PATH");
		return NULL;
	}
	/* A directory that exists already has an owner, and stays unchanged. */
	if (mkdir(ROOT_DIRECTORY, 0755) == 0) {
		if (chown(ROOT_DIRECTORY, owner, (gid_t)-1) < 0) {
			why_say(why_r, -errno, "socket", "%s: %s", ROOT_DIRECTORY,
				strerror(errno));
			return NULL;
		}
	} else if (errno != EEXIST) {
		why_say(why_r, -errno, "socket", "%s: %s", ROOT_DIRECTORY, strerror(errno));
		return NULL;
	}
	return xstrdup(ROOT_DIRECTORY "/mcp.sock");
}

const char *
socketfile_path(const struct socketfile *file)
{
	return file ? file->path : NULL;
}

bool
socketfile_is_own(const struct socketfile *file)
{
	return file->lock_fd >= 0;
}

void
socketfile_close(struct socketfile *file)
{
	if (!file)
		return;
	/* No other process may take these names while the lock is held. */
	if (file->lock_fd >= 0) {
		(void)unlink(file->path);
		(void)unlink(file->spare);
		(void)unlink(file->lock_path);
		close(file->lock_fd);
	}
	free(file->path);
	free(file->spare);
	free(file->lock_path);
	free(file);
}
