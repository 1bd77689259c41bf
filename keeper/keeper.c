/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the keeper, root of the outer namespace. Sets are taken in and removed by children.
 * Owns:    everything in the store.
 * Reads:   KEEP once, then ATTACH, ATTACH_FILES, VOLUME, TAKE and DISCARD, from the supervisor
 *          alone.
 *
 * How a sealed worker gets a mount: only a process inside its mount namespace, with
 * CAP_SYS_ADMIN over it, can make one. The worker has given that capability up, and its filter
 * and Landlock forbid it besides. The keeper has it, because workers' namespaces are below its
 * own: it clones the set's mount, makes it read-only, enters the worker's namespace, attaches
 * the mount there and returns. It resolves one path of the worker's tree, on a read-only file
 * system that the zygote made. */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mount_calls.h"
#include "base/nextentry.h"
#include "base/own.h"
#include "base/ownerfile.h"
#include "base/quote.h"
#include "base/remove.h"
#include "base/stall.h"
#include "base/why.h"
#include "keeper/digest.h"
#include "keeper/path.h"
#include "keeper/take.h"
#include "keeper/volumes.h"
#include "keeper/walls.h"
#include "proto/frame.h"

#define HALF_NEW ".new-"
#define HALF_OLD ".old-"

#define STORE_SHOWN 240		/* bytes of a message about the store, with its path */

/* A directory in the keeper's mount namespace. */
struct keeper_place {
	char path[PATH_MAX];
	int fd;
};

struct keeper {
	struct keeper_place store;	/* fd -1: no packages */
	struct keeper_place files;	/* fd -errno: why there is none */
	int home;		/* the keeper's mount namespace */
	struct volumes *volumes;	/* NULL: there are none, because of the -errno in */
	int no_volumes;
	struct folder *folder;		/* as above */
	int no_folder;
	uint64_t serial;	/* in the names of unfinished sets */
};

/* ---- names ---- */

/* 64 hexadecimal digits; text has room for 65. */
static int
keeper_read_name(const struct msg_str *name, char *text)
{
	for (size_t i = 0; i < ENVIRONMENT_NAME; i++)
		if (!strchr("0123456789abcdef", name->at[i]))
			return -EBADMSG;
	memcpy(text, name->at, ENVIRONMENT_NAME);
	text[ENVIRONMENT_NAME] = '\0';
	return 0;
}

static bool
is_half(const char *name)
{
	return strncmp(name, HALF_NEW, strlen(HALF_NEW)) == 0 ||
	       strncmp(name, HALF_OLD, strlen(HALF_OLD)) == 0;
}

/* ---- removing ---- */

/* Removes unfinished sets. Their number, or -errno. */
static int
keeper_sweep(const struct keeper *keeper)
{
	int removed = 0, r = 0;
	own_list DIR *list = openlist(keeper->store.fd, ".", &r);
	struct dirent *entry;

	while (r == 0 && (entry = nextentry(list, &r)))
		if (is_half(entry->d_name)) {
			r = remove_tree(keeper->store.fd, entry->d_name, SET_DEPTH_MAX);
			removed++;
		}
	return r < 0 ? r : removed;
}

/* ---- mounting ---- */

/* A clone of the mount at path, read-only and not attached yet; or -errno. */
static int
clone_tree(int dir, const char *path)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
	};
	own_fd int tree = call_open_tree(dir, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC |
					       AT_SYMLINK_NOFOLLOW);

	if (tree < 0 || call_mount_setattr(tree, "", AT_EMPTY_PATH, &attr) < 0)
		return -errno;
	return give_fd(tree);
}

/* A keeper that cannot return to its namespace is useless, and is replaced. */
static void
go_home(const struct keeper *keeper)
{
	if (setns(keeper->home, CLONE_NEWNS) < 0)
		_exit(EXIT_FAILURE);
}

static int
keeper_attach_set(const struct keeper *keeper, const char *name, int worker)
{
	char path[ENVIRONMENT_NAME + 16];
	own_fd int tree = -1;
	int r = 0;

	snprintf(path, sizeof(path), "%s/tree", name);
	tree = clone_tree(keeper->store.fd, path);
	if (tree < 0)
		return tree;
	if (setns(worker, CLONE_NEWNS) < 0)
		return -errno;
	/* An earlier mount of a session is removed, so that mounts do not pile up; usually there
	 * is none. */
	if (umount2(ENVIRONMENT_PLACE, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL)
		r = -errno;
	if (r == 0 && call_move_mount(tree, "", AT_FDCWD, ENVIRONMENT_PLACE,
				 MOVE_MOUNT_F_EMPTY_PATH) < 0)
		r = -errno;
	go_home(keeper);
	return r;
}

/* The reader may be gone. */
static void
say_attached(int gate, int r)
{
	unsigned char said = r < 0 && r > -256 ? (unsigned char)-r : r < 0 ? EIO : 0;

	if (write(gate, &said, 1) < 0)
		return;
}

static int
on_attach(const struct keeper *keeper, const struct frame *frame)
{
	char name[ENVIRONMENT_NAME + 1];
	int r = keeper_read_name(&frame->msg.attach.name, name);

	if (r < 0)
		return r;
	say_attached(frame->fds.fd[1], keeper_attach_set(keeper, name, frame->fds.fd[0]));
	return 0;
}

/* ---- mounting files ---- */

/* Can it be a name in the store of files? It has no slash or dot, so it stays in its directory. */
static bool
is_plain(const struct msg_str *name)
{
	for (size_t i = 0; i < name->len; i++)
		if (!strchr("0123456789abcdefghijklmnopqrstuvwxyz-", name->at[i]))
			return false;
	return name->len > 0;
}

/* A mount of the stored file; or -errno. */
static int
clone_file(const struct keeper *keeper, const struct msg_str *directory,
	   const struct msg_str *name)
{
	char path[FILE_DIRECTORY + 1 + FILE_NAME + 1];
	own_fd int tree = -1;
	struct stat st;

	snprintf(path, sizeof(path), "%.*s/%.*s", (int)directory->len, directory->at,
		 (int)name->len, name->at);
	tree = clone_tree(keeper->files.fd, path);
	if (tree < 0)
		return tree;
	if (fstat(tree, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? give_fd(tree) : -ESTALE;
}

static int
place_file(int tree, unsigned int place)
{
	char path[sizeof(FILE_PLACES_DIRECTORY) + 16];

	snprintf(path, sizeof(path), FILE_PLACES_DIRECTORY "/%02u", place);
	return call_move_mount(tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}

static int
attach_files(const struct keeper *keeper, const struct msg_attach_files *asked, int worker)
{
	int tree[FILE_PLACES], r = keeper->files.fd < 0 ? keeper->files.fd : 0;
	size_t n = 0;

	while (r >= 0 && n < asked->names.n) {
		r = tree[n] = clone_file(keeper, &asked->directory, &asked->names.item[n]);
		n += r >= 0;
	}
	if (r >= 0 && setns(worker, CLONE_NEWNS) < 0)
		r = -errno;
	if (r >= 0) {
		for (size_t i = 0; r >= 0 && i < n; i++)
			r = place_file(tree[i], asked->first + (unsigned int)i);
		go_home(keeper);
	}
	while (n > 0)
		close(tree[--n]);
	return r < 0 ? r : 0;
}

static int
on_attach_files(const struct keeper *keeper, const struct frame *frame)
{
	const struct msg_attach_files *asked = &frame->msg.attach_files;

	if (!is_plain(&asked->directory) || asked->first + asked->names.n > FILE_PLACES)
		return -EBADMSG;
	for (size_t i = 0; i < asked->names.n; i++)
		if (asked->names.item[i].len != FILE_NAME || !is_plain(&asked->names.item[i]))
			return -EBADMSG;
	say_attached(frame->fds.fd[1], attach_files(keeper, asked, frame->fds.fd[0]));
	return 0;
}

/* ---- children ---- */

static _Noreturn void
live_as_taker(const struct keeper *keeper, const struct frame *frame)
{
	struct msg taken = { .type = MSG_TAKEN };
	struct why why = { .text = "giving up capabilities" };
	char half[64], what[sizeof(why.text)];
	struct take asked = {
		.store = keeper->store.fd, .half = half, .asked = &frame->msg.take,
		.wheels = frame->fds.fd[0], .compiler = frame->fds.fd[1],
	};
	int r;

	stall_forget();
	prctl(PR_SET_NAME, "python-taker", 0, 0, 0);
	signal(SIGCHLD, SIG_DFL);
	close(KEEPER_CONTROL);
	close(keeper->home);
	snprintf(half, sizeof(half), HALF_NEW "%llu", (unsigned long long)keeper->serial);
	r = walls_enter(WALLS_STORE);
	if (r == 0)
		r = take_set(&asked, &why);
	taken.taken.error = (uint32_t)-r;
	quote_line(what, sizeof(what), why.text, r < 0 ? strlen(why.text) : 0);
	taken.taken.what = msg_str(what);
	taken.taken.bytes = asked.bytes;
	taken.taken.files = asked.files;
	frame_send(frame->fds.fd[2], &taken, NULL, 0);
	_exit(EXIT_SUCCESS);
}

static int
on_take(struct keeper *keeper, const struct frame *frame)
{
	char name[ENVIRONMENT_NAME + 1];
	int r = keeper_read_name(&frame->msg.take.name, name);
	pid_t pid;

	if (r < 0)
		return r;
	keeper->serial++;
	pid = fork();
	if (pid == 0)
		live_as_taker(keeper, frame);
	/* Without a child the socket for TAKEN is closed with the frame; that reports the
	 * failure. */
	return 0;
}

static int
on_discard(struct keeper *keeper, const struct frame *frame)
{
	char name[ENVIRONMENT_NAME + 1], half[64];
	int r = keeper_read_name(&frame->msg.discard.name, name);

	if (r < 0)
		return r;
	snprintf(half, sizeof(half), HALF_OLD "%llu", (unsigned long long)++keeper->serial);
	if (renameat2(keeper->store.fd, name, keeper->store.fd, half, RENAME_NOREPLACE) < 0)
		return 0;
	if (fork() == 0) {
		stall_forget();
		if (walls_enter(WALLS_STORE) == 0)
			remove_tree(keeper->store.fd, half, SET_DEPTH_MAX);
		_exit(EXIT_SUCCESS);
	}
	return 0;
}

/* ---- life ---- */

/* Makes a directory, with those above it, for this user alone. 0, or -errno of the last one. */
static int
make_directories(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdirat(AT_FDCWD, path, 0700);
		*slash = '/';
	}
	return mkdirat(AT_FDCWD, path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* Opens a store. It must belong to the keeper's user, and no other user may write to it. A
 * descriptor or -errno. */
static int
open_store(char *path, const char **what_r)
{
	own_fd int fd = -1;
	struct stat st;

	if (make_directories(path) < 0)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	*what_r = "the store is another user's, or others may write to it";
	return st.st_uid != 0 || (st.st_mode & 022) ? -EPERM : give_fd(fd);
}

static int
open_place(struct keeper_place *place, const struct msg_str *path, const char **what_r)
{
	snprintf(place->path, sizeof(place->path), "%.*s", (int)path->len, path->at);
	place->fd = open_store(place->path, what_r);
	return place->fd;
}

/* Makes a store again that somebody has removed or replaced, and tells the supervisor. A failure is
 * that of what is done with the old one. */
static void
renew_store(int *store, char *path, bool locks)
{
	const char *what;
	own_fd int fd = -1;
	struct msg msg = { .type = MSG_KEEPING, .keeping = { .build = msg_str(PROTO_BUILD),
							     .what = msg_str(path) } };

	if (*store < 0 || samefile(*store, path))
		return;
	fd = open_store(path, &what);
	if (fd >= 0 && locks && flock(fd, LOCK_EX | LOCK_NB) < 0)
		return;
	msg.keeping.error = fd < 0 ? (uint32_t)-fd : 0;
	if (fd >= 0) {
		close(*store);
		*store = give_fd(fd);
	}
	frame_send(KEEPER_CONTROL, &msg, NULL, 0);
}

/* If volumes cannot be mounted, the keeper still serves packages and files. */
static void
open_volumes(struct keeper *keeper, const struct msg_str *directory)
{
	const char *what;
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%.*s", (int)directory->len, directory->at);
	fd = open_store(path, &what);
	keeper->no_volumes = fd < 0 ? fd : volumes_new(path, fd, keeper->home, &keeper->volumes);
}

static void
open_folder(struct keeper *keeper, const struct msg_keep *keep)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.*s", (int)keep->folder.len, keep->folder.at);
	keeper->no_folder = folder_new(path, keep->folder_writable, keeper->home,
				       &keeper->folder);
}

static int
keeper_begin(struct keeper *keeper, const struct msg_keep *keep, const char **what_r)
{
	static char directory[STORE_SHOWN];

	*what_r = "the mount namespace";
	keeper->home = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (keeper->home < 0)
		return -errno;
	/* Mounts in a worker have no connection to mounts of the host. */
	*what_r = "private mounts";
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	/* If this fails, the file helper reports why: it uses the same directory. */
	if (keep->has_files)
		open_place(&keeper->files, &keep->files, what_r);
	if (keep->has_volumes)
		open_volumes(keeper, &keep->volumes);
	if (keep->has_folder)
		open_folder(keeper, keep);
	if (!keep->has_store)
		return 0;
	snprintf(directory, sizeof(directory), "the directory of the store, %.*s",
		 (int)keep->store.len, keep->store.at);
	*what_r = directory;
	if (open_place(&keeper->store, &keep->store, what_r) < 0)
		return keeper->store.fd;
	*what_r = "the store is in use by another service";
	if (flock(keeper->store.fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	*what_r = "what was left half made";
	return keeper_sweep(keeper);
}

static int
say_begun(int r, const char *what, const struct keeper *keeper)
{
	struct msg msg = { .type = MSG_KEEPING, .keeping = {
		.build = msg_str(PROTO_BUILD),
		.error = r < 0 ? (uint32_t)-r : 0,
		.what = msg_str(r < 0 ? what : ""),
		.removed = r > 0 ? (uint32_t)r : 0,
		.volumes = (uint32_t)-keeper->no_volumes,
		.folder = (uint32_t)-keeper->no_folder,
	} };

	return frame_send(KEEPER_CONTROL, &msg, NULL, 0);
}

static int
default_process(void)
{
	struct sigaction no_zombies = { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT };
	int flags = fcntl(KEEPER_CONTROL, F_GETFL);

	umask(022);
	/* Names in wheels are UTF-8. */
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return -ENOENT;
	prctl(PR_SET_NAME, "python-keeper", 0, 0, 0);
	signal(SIGPIPE, SIG_IGN);
	if (flags < 0 || fcntl(KEEPER_CONTROL, F_SETFL, flags & ~O_NONBLOCK) < 0 ||
	    fcntl(KEEPER_CONTROL, F_SETFD, FD_CLOEXEC) < 0 ||
	    close_range(KEEPER_CONTROL + 1, ~0U, 0) < 0 ||
	    sigaction(SIGCHLD, &no_zombies, NULL) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	return digest_prepare();
}

/* A message that does not fit ends the keeper. */
static int
keeper_serve(struct keeper *keeper, struct frame *frame)
{
	const enum msg_type type = frame->msg.type;

	if (type == MSG_PING)
		return frame_send_pong(KEEPER_CONTROL, &frame->msg.ping);
	renew_store(&keeper->store.fd, keeper->store.path, true);
	renew_store(&keeper->files.fd, keeper->files.path, false);
	if (keeper->volumes)
		volumes_renew(keeper->volumes, renew_store);
	if (type == MSG_ATTACH_FILES)
		return on_attach_files(keeper, frame);
	if (type == MSG_VOLUME)
		return volumes_on_message(keeper->volumes, keeper->no_volumes, frame);
	if (type == MSG_FOLDER) {
		folder_on_message(keeper->folder, keeper->no_folder, frame);
		return 0;
	}
	if (keeper->store.fd < 0)
		return -EBADMSG;
	switch ((unsigned int)type) {
	case MSG_ATTACH:
		return on_attach(keeper, frame);
	case MSG_TAKE:
		return on_take(keeper, frame);
	case MSG_DISCARD:
		return on_discard(keeper, frame);
	default:
		return -EBADMSG;
	}
}

int
keeper_main(void)
{
	struct keeper keeper = { .store.fd = -1, .files.fd = -ENOENT, .home = -1,
				 .no_volumes = -ENOENT, .no_folder = -ENOENT };
	struct frame_reader reader;
	struct frame frame = { 0 };
	const char *what = "process";
	int r = default_process();

	frame_reader_init(&reader, FROM_SUPERVISOR);
	if (r == 0)
		r = frame_reader_read(&reader, KEEPER_CONTROL, &frame) == 1 &&
		    frame.msg.type == MSG_KEEP ? 0 : -EBADMSG;
	if (r == 0)
		r = keeper_begin(&keeper, &frame.msg.keep, &what);
	frame_done(&frame);
	if (r >= 0 && (stall_guard(NULL) < 0 || walls_keep(keeper.volumes, keeper.folder) < 0))
		return EXIT_FAILURE;
	if (say_begun(r, what, &keeper) < 0 || r < 0)
		return EXIT_FAILURE;
	/* Ends when the supervisor closes its end of the socket. */
	while (frame_reader_read(&reader, KEEPER_CONTROL, &frame) == 1) {
		stall_turn();
		r = keeper_serve(&keeper, &frame);
		frame_done(&frame);
		stall_rest();
		if (r < 0)
			return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
