/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the processes of a session that hold its states.
 * Owns:    records of their descriptors: offsets of files, connections and listening sockets. */
#include "worker/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/own.h"

#define LISTENERS_MAX 64
#define BACKLOG 128
#define PIPEFS 0x50495045		/* PIPEFS_MAGIC in linux/magic.h */

static struct offset {
	int fd;
	off_t at;
} offset[DESCRIPTORS_MAX];
static size_t n_offsets;

static struct connection {
	int fd;
	bool is_pipe;
	dev_t device;
	ino_t inode;
	int mode;			/* of a pipe: O_RDONLY, O_WRONLY or O_RDWR */
} connection[DESCRIPTORS_MAX];
static size_t n_connections;

static struct listener {
	int fd, domain;
	socklen_t len;
	struct sockaddr_storage at;
} listener[LISTENERS_MAX];
static size_t n_listeners;

/* ---- open descriptors ---- */

static bool
is_one_of(const struct stat *st, const int *own, size_t n_own)
{
	struct stat theirs;

	for (size_t i = 0; i < n_own; i++)
		if (own[i] >= 0 && fstat(own[i], &theirs) == 0 && theirs.st_dev == st->st_dev &&
		    theirs.st_ino == st->st_ino)
			return true;
	return false;
}

static bool
is_anonymous(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS;
}

static void
look_at(int fd, const int *own, size_t n_own, bool offsets)
{
	struct stat st;
	off_t where;

	if (fstat(fd, &st) < 0)
		return;
	if (offsets && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) &&
	    n_offsets < DESCRIPTORS_MAX) {
		where = lseek(fd, 0, SEEK_CUR);
		if (where >= 0)
			offset[n_offsets++] = (struct offset){ fd, where };
	}
	if ((S_ISSOCK(st.st_mode) || (S_ISFIFO(st.st_mode) && is_anonymous(fd))) &&
	    n_connections < DESCRIPTORS_MAX && !is_one_of(&st, own, n_own))
		connection[n_connections++] = (struct connection){
			fd, S_ISFIFO(st.st_mode), st.st_dev, st.st_ino,
			fcntl(fd, F_GETFL) & O_ACCMODE };
}

static void
look_at_all(const int *own, size_t n_own, bool offsets)
{
	struct entry {
		uint64_t ino, off;
		unsigned short len;
		unsigned char type;
		char name[];
	};
	own_fd int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_Alignas(struct entry) char list[4096];
	long n;

	while (dir >= 0 && (n = syscall(SYS_getdents64, dir, list, sizeof(list))) > 0)
		for (char *at = list; at < list + n;
		     at += ((struct entry *)(void *)at)->len) {
			int fd = atoi(((struct entry *)(void *)at)->name);

			if (fd != dir)
				look_at(fd, own, n_own, offsets);
		}
}

bool
descriptors_look(const int *own, size_t n_own)
{
	n_offsets = n_connections = n_listeners = 0;
	look_at_all(own, n_own, true);
	return n_connections > 0;
}

void
descriptors_keep(void)
{
	n_offsets = n_connections = n_listeners = 0;
}

void
descriptors_rewind(void)
{
	for (size_t i = 0; i < n_offsets; i++)
		lseek(offset[i].fd, offset[i].at, SEEK_SET);
	n_offsets = 0;
}

/* ---- connections ---- */

/* Makes fd a duplicate of the descriptor "one". The flags of fd stay as they are. */
static void
put_over(int fd, int one)
{
	int status = fcntl(fd, F_GETFL), flags = fcntl(fd, F_GETFD);

	if (one < 0 || status < 0 || flags < 0)
		return;
	if (status & O_NONBLOCK)
		fcntl(one, F_SETFL, O_NONBLOCK);
	dup3(one, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
}

/* As put_over, and closes "one". */
static void
descriptors_replace(int fd, int one)
{
	put_over(fd, one);
	if (one >= 0)
		close(one);
}

/* A descriptor whose other side has closed: reading gives the end, writing EPIPE. */
static int
make_closed(bool is_pipe, int mode)
{
	int pair[2];
	bool keeps_second = is_pipe && mode == O_WRONLY;

	if ((is_pipe ? pipe2(pair, O_CLOEXEC)
		     : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) < 0)
		return -1;
	close(pair[keeps_second ? 0 : 1]);
	return pair[keeps_second ? 1 : 0];
}

/* Replaces a connection by a socket whose other end is closed. All blocking connections share one
 * such socket, and all others share another: where the memory of sockets is estimated, one socket
 * for each connection could use up the session's memory. */
static void
put_closed(int fd, int closed[2])
{
	int *one = &closed[(fcntl(fd, F_GETFL) & O_NONBLOCK) != 0];

	if (*one < 0)
		*one = make_closed(false, O_RDWR);
	put_over(fd, *one);
}

/* Makes a listening socket whose name no program knows. It gets no connection, so an event loop
 * that waits for one sleeps. */
static int
make_deaf(void)
{
	struct sockaddr_un none = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* The kernel chooses a name. */
	if (fd >= 0 && (bind(fd, (struct sockaddr *)&none, sizeof(sa_family_t)) < 0 ||
			listen(fd, 1) < 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int
option(int fd, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) < 0 ? -1 : value;
}

static void
disconnect_socket(int fd, int closed[2])
{
	int domain = option(fd, SO_DOMAIN), type = option(fd, SO_TYPE);
	struct listener *l = &listener[n_listeners];
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);

	if (option(fd, SO_ACCEPTCONN) == 1) {
		l->len = sizeof(l->at);
		if (n_listeners < LISTENERS_MAX &&
		    getsockname(fd, (struct sockaddr *)&l->at, &l->len) == 0 &&
		    l->len <= sizeof(l->at)) {
			l->fd = fd;
			l->domain = domain;
			n_listeners++;
		}
		descriptors_replace(fd, make_deaf());
	} else if (type == SOCK_DGRAM) {
		descriptors_replace(fd, socket(domain, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	} else if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0) {
		put_closed(fd, closed);
	}
}

/* Whether the process holds the other end, too. */
static bool
has_both_ends(const struct connection *one)
{
	for (size_t i = 0; i < n_connections; i++)
		if (connection[i].is_pipe && connection[i].inode == one->inode &&
		    connection[i].device == one->device && connection[i].mode != one->mode)
			return true;
	return one->mode == O_RDWR;
}

/* Does the descriptor still refer to the file that was listed? It does not if copy_pipe() has
 * replaced it, together with the other descriptors of its pipe. */
static bool
is_still_open(const struct connection *one)
{
	struct stat st;

	return fstat(one->fd, &st) == 0 && st.st_dev == one->device && st.st_ino == one->inode;
}

static bool
is_same_pipe(const struct connection *a, const struct connection *b)
{
	return b->is_pipe && a->inode == b->inode && a->device == b->device;
}

/* Replaces a pipe of which the process has both ends by a new pipe with the same unread bytes.
 * Otherwise the copy would keep ends open that the state's process closes. Without a free
 * descriptor the pipe stays. */
static void
copy_pipe(size_t first)
{
	const struct connection one = connection[first];
	int pair[2], from = -1;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return;
	for (size_t i = first; i < n_connections; i++)
		if (is_same_pipe(&one, &connection[i]) && connection[i].mode == O_RDONLY &&
		    is_still_open(&connection[i]))
			from = connection[i].fd;
	if (from >= 0) {
		fcntl(pair[1], F_SETPIPE_SZ, fcntl(from, F_GETPIPE_SZ));
		(void)tee(from, pair[1], INT_MAX, SPLICE_F_NONBLOCK);
	}
	for (size_t i = first; i < n_connections; i++) {
		if (!is_same_pipe(&one, &connection[i]) || !is_still_open(&connection[i]))
			continue;
		descriptors_replace(connection[i].fd, fcntl(pair[connection[i].mode != O_RDONLY],
							    F_DUPFD_CLOEXEC, 0));
	}
	close(pair[0]);
	close(pair[1]);
}

void
descriptors_disconnect(const int *own, size_t n_own)
{
	int closed[2] = { -1, -1 };

	n_connections = 0;
	look_at_all(own, n_own, false);
	for (size_t i = 0; i < n_connections; i++)
		if (!is_still_open(&connection[i]))
			continue;
		else if (!connection[i].is_pipe)
			disconnect_socket(connection[i].fd, closed);
		else if (!has_both_ends(&connection[i]))
			descriptors_replace(connection[i].fd,
					    make_closed(true, connection[i].mode));
		else if (connection[i].mode != O_RDWR)
			copy_pipe(i);
	for (size_t i = 0; i < 2; i++)
		if (closed[i] >= 0)
			close(closed[i]);
	n_connections = 0;
}

void
descriptors_listen(void)
{
	for (size_t i = 0; i < n_listeners; i++) {
		const struct listener *l = &listener[i];
		int on = 1, fd = socket(l->domain, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd >= 0 &&
		    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
		    bind(fd, (const struct sockaddr *)&l->at, l->len) == 0 &&
		    listen(fd, BACKLOG) == 0)
			descriptors_replace(l->fd, fd);
		else if (fd >= 0)
			close(fd);
	}
	n_listeners = 0;
}
