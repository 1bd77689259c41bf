/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the keeper; live_as_server() in its children.
 * Owns:    the directories of volumes, and their mounts in the keeper's namespace.
 * Reads:   VOLUME, from the supervisor. */
#include "keeper/volumes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mount_calls.h"
#include "base/nextentry.h"
#include "base/own.h"
#include "base/stall.h"
#include "keeper/volume.h"
#include "keeper/volume_tree.h"
#include "keeper/walls.h"

#define DEVICE "/dev/fuse"
#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define LOCK_TRIES 100			/* for a server that was told to end */
#define LOCK_PAUSE_MS 50

/* What a server serves. */
struct served {
	pid_t pid;
	int mount;			/* the mount in the keeper's namespace */
	int alive;			/* a pipe: at its end when the server has ended */
};

struct row {
	char path[VOLUME_TENANT_MAX + 1 + VOLUME_NAME_MAX + 1];	/* TENANT/NAME */
	ino_t leaf;			/* that of its server */
	struct served served;
};

struct folder {
	char *directory;
	int fd, home;
	bool is_writable;
	struct served served;		/* mount -1: not yet */
};

struct volumes {
	char *directory;
	int fd, home;
	struct row *row;
	size_t n;
};

/* The descriptors and bounds of the server of a volume. */
struct server {
	int fuse, root, gate, alive;
	int cgroup;			/* -1: that of the keeper */
	struct volume_terms terms;
};

/* ---- the server's process ---- */

static void
volumes_say(int gate, int r)
{
	unsigned char said = r < 0 && r > -256 ? (unsigned char)-r : r < 0 ? EIO : 0;

	if (write(gate, &said, 1) < 0)
		return;		/* the worker is gone */
}

static void
on_ready(void *arg, int error)
{
	int *gate = arg;

	volumes_say(*gate, error);
	close(*gate);
}

static int
join_cgroup(int cgroup)
{
	own_fd int fd = openat(cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC);

	return fd < 0 || write(fd, "0", 1) < 0 ? -errno : 0;
}

/* The server before this one may still be ending. */
static int
volumes_lock(int root)
{
	for (unsigned int i = 0; i < LOCK_TRIES; i++) {
		if (flock(root, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			return -errno;
		poll(NULL, 0, LOCK_PAUSE_MS);
	}
	return -EBUSY;
}

/* Moves the descriptors to 3 and those that follow, and closes all others. */
static int
volumes_arrange(int *fd[], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		*fd[i] = fcntl(*fd[i], F_DUPFD, 32);
		if (*fd[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < n; i++) {
		if (dup3(*fd[i], 3 + (int)i, O_CLOEXEC) < 0)
			return -errno;
		*fd[i] = 3 + (int)i;
	}
	return close_range(3 + (unsigned int)n, ~0u, 0) < 0 ? -errno : 0;
}

/* Enters a mount namespace that has nothing but the directory. root becomes its descriptor there. A
 * folder has what is mounted below it, too: the kernel does not let it go without. */
static int
enter_root(int root, const struct volume_terms *terms)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC |
			    (terms->is_folder && !terms->is_writable ? MOUNT_ATTR_RDONLY : 0),
	};
	const unsigned int all = AT_EMPTY_PATH | (terms->is_folder ? AT_RECURSIVE : 0);
	own_fd int tree = call_open_tree(root, "", all | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (tree < 0 || call_mount_setattr(tree, "", all, &attr) < 0 ||
	    unshare(CLONE_NEWNS) < 0 ||
	    call_move_mount(tree, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0 ||
	    fchdir(tree) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0 || dup3(tree, root, O_CLOEXEC) < 0)
		return -errno;
	return 0;
}

/* Files that scripts have open are open here, too. */
static int
raise_limit(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return -errno;
	files.rlim_cur = files.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &files) < 0 ? -errno : 0;
}

static _Noreturn void
live_as_server(struct server *server)
{
	/* The end of the process closes them in this order: who sees the file system end sees the
	 * end of the server, too. */
	int *const keep[] = { &server->alive, &server->fuse, &server->root, &server->gate };
	int r;

	stall_forget();
	prctl(PR_SET_NAME, "python-volume", 0, 0, 0);
	signal(SIGCHLD, SIG_DFL);
	r = server->cgroup < 0 ? 0 : join_cgroup(server->cgroup);
	if (r == 0)
		r = volumes_arrange((int **)keep, sizeof(keep) / sizeof(keep[0]));
	if (r == 0 && !server->terms.is_folder)
		r = volumes_lock(server->root);
	if (r == 0)
		r = enter_root(server->root, &server->terms);
	if (r == 0)
		r = raise_limit();
	if (r == 0)
		r = walls_enter(WALLS_VOLUME |
				(server->terms.is_folder ? WALLS_FOLDER : 0));
	if (r < 0) {
		volumes_say(server->gate, r);
		_exit(EXIT_FAILURE);
	}
	r = volume_serve(server->fuse, server->root, &server->terms, on_ready, &server->gate);
	_exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* ---- directories ---- */

static bool
is_hidden(const struct dirent *entry)
{
	return entry->d_name[0] == '.';
}

/* The number of directories in dir, or -errno. remove: empty directories are removed and not
 * counted, because an empty volume makes room for another. (A mounted directory is busy.) */
static int
volumes_count_in(int dir, bool remove)
{
	int n = 0, r = 0;
	own_list DIR *list = openlist(dir, ".", &r);
	struct dirent *entry;

	while ((entry = nextentry(list, &r)))
		if (!is_hidden(entry) &&
		    !(remove && unlinkat(dir, entry->d_name, AT_REMOVEDIR) == 0))
			n++;
	return r < 0 ? r : n;
}

/* All volumes of all tenants, or -errno. */
static int
count_all(int top)
{
	int n = 0, r = 0;
	own_list DIR *list = openlist(top, ".", &r);
	struct dirent *entry;

	while (r == 0 && (entry = nextentry(list, &r))) {
		own_fd int dir = is_hidden(entry) ? -1
			: openat(top, entry->d_name, DIRECTORY);
		int found = dir >= 0 ? volumes_count_in(dir, false)
			: is_hidden(entry) || errno == ENOTDIR || errno == ENOENT ? 0 : -errno;

		r = found < 0 ? found : 0;
		n += found > 0 ? found : 0;
	}
	return r < 0 ? r : n;
}

static int
volumes_make_directory(const struct volumes *volumes, int tenant, const char *name,
		       const struct msg_volume *asked)
{
	int n = volumes_count_in(tenant, false);

	if (n >= (int)asked->names_max)
		n = volumes_count_in(tenant, true);
	if (n < 0)
		return n;
	if (n >= (int)asked->names_max)
		return -EDQUOT;
	n = count_all(volumes->fd);
	if (n < 0)
		return n;
	if (asked->bytes_max / asked->bytes < (uint64_t)n + 1)
		return -ENOSPC;
	return mkdirat(tenant, name, 0700) < 0 ? -errno : 0;
}

/* The directory of a volume, which is made if there is none. A descriptor or -errno. */
static int
volumes_open_directory(const struct volumes *volumes, const char *tenant, const char *name,
		       const struct msg_volume *asked)
{
	own_fd int dir = -1;
	int fd, r;

	if (mkdirat(volumes->fd, tenant, 0700) < 0 && errno != EEXIST)
		return -errno;
	dir = openat(volumes->fd, tenant, DIRECTORY);
	if (dir < 0)
		return -errno;
	fd = openat(dir, name, DIRECTORY);
	if (fd >= 0 || errno != ENOENT)
		return fd < 0 ? -errno : fd;
	r = volumes_make_directory(volumes, dir, name, asked);
	if (r < 0)
		return r;
	fd = openat(dir, name, DIRECTORY);
	return fd < 0 ? -errno : fd;
}

/* ---- mounts ---- */

/* A file system of fuse, mounted over root in the keeper's namespace. A descriptor of the mount or
 * -errno. */
static int
mount_over(int root, int fuse)
{
	own_fd int fs = call_fsopen("fuse", FSOPEN_CLOEXEC), tree = -1;
	char number[16];

	snprintf(number, sizeof(number), "%d", fuse);
	/* allow_other: workers have other uids. Where it is mounted decides who may use it. */
	if (fs < 0 || call_fsconfig(fs, FSCONFIG_SET_STRING, "source", "volume", 0) < 0 ||
	    call_fsconfig(fs, FSCONFIG_SET_STRING, "fd", number, 0) < 0 ||
	    call_fsconfig(fs, FSCONFIG_SET_STRING, "rootmode", "40000", 0) < 0 ||
	    call_fsconfig(fs, FSCONFIG_SET_STRING, "user_id", "0", 0) < 0 ||
	    call_fsconfig(fs, FSCONFIG_SET_STRING, "group_id", "0", 0) < 0 ||
	    call_fsconfig(fs, FSCONFIG_SET_FLAG, "allow_other", NULL, 0) < 0 ||
	    call_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	tree = call_fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					    MOUNT_ATTR_NOATIME);
	if (tree < 0 || call_move_mount(tree, "", root, "", MOVE_MOUNT_F_EMPTY_PATH |
						       MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	return give_fd(tree);
}

static void
volumes_unmount(const char *path)
{
	umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
}

/* Mounts a clone at the place in the worker. home: the keeper's namespace. 0 or -errno. */
static int
volumes_attach(int mount, int worker, const char *place, int home)
{
	own_fd int tree = call_open_tree(mount, "",
				    AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	int r = 0;

	if (tree < 0 || setns(worker, CLONE_NEWNS) < 0)
		return -errno;
	/* A session may have it from a server that has ended. */
	if ((umount2(place, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL) ||
	    call_move_mount(tree, "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		r = -errno;
	/* As in keeper.c. */
	if (setns(home, CLONE_NEWNS) < 0)
		_exit(EXIT_FAILURE);
	return r;
}

static bool
is_alive(const struct served *served)
{
	struct pollfd end = { .fd = served->alive };

	return poll(&end, 1, 0) == 0;
}

/* A server that somebody has stopped is killed: the next one takes its place. */
static bool
served_stands(const struct served *served)
{
	int status;

	return waitpid(served->pid, &status, WNOHANG | WUNTRACED) == served->pid &&
	       WIFSTOPPED(status) &&
	       syscall(SYS_tgkill, served->pid, served->pid, SIGKILL) == 0;
}

/* Mounts what is served already. 1 or -errno. */
static int
served_attach(const struct served *served, int worker, const char *place, int home)
{
	int r = served_stands(served) ? -ETIMEDOUT
				      : volumes_attach(served->mount, worker, place, home);

	return r < 0 ? r : 1;
}

static void
served_done(struct served *served, const char *path)
{
	close(served->mount);
	close(served->alive);
	volumes_unmount(path);
	served->mount = -1;
}

/* Forgets the volumes whose servers have ended, and the one with this path unless its server is in
 * this leaf: the supervisor gives a volume another leaf only after it has killed the server in the
 * one before, which may take a moment to end. */
static void
volumes_sweep(struct volumes *volumes, const char *asked, ino_t leaf)
{
	char path[PATH_MAX];
	size_t left = 0;

	for (size_t i = 0; i < volumes->n; i++) {
		struct row *row = &volumes->row[i];

		if (is_alive(&row->served) &&
		    (row->leaf == leaf || strcmp(row->path, asked) != 0)) {
			volumes->row[left++] = *row;
			continue;
		}
		snprintf(path, sizeof(path), "%s/%s", volumes->directory, row->path);
		served_done(&row->served, path);
	}
	volumes->n = left;
}

static struct row *
volumes_find(const struct volumes *volumes, const char *path)
{
	for (size_t i = 0; i < volumes->n; i++)
		if (strcmp(volumes->row[i].path, path) == 0)
			return &volumes->row[i];
	return NULL;
}

/* ---- VOLUME ---- */

/* Mounts a file system over the directory root and at the place in the worker, and starts its
 * server, which has the gate from then on. path: of the directory. 0 or -errno. */
static int
start_server(struct server *server, const char *path, int worker, const char *place, int home,
	     struct served *served_r)
{
	own_fd int fuse = open(DEVICE, O_RDWR | O_CLOEXEC);
	own_fd int mount = -1, alive = -1, end = -1;
	int pair[2], r;
	pid_t pid;

	if (fuse < 0 || pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	alive = pair[0];
	end = pair[1];
	mount = mount_over(server->root, fuse);
	if (mount < 0)
		return mount;
	r = volumes_attach(mount, worker, place, home);
	server->fuse = fuse;
	server->alive = end;
	pid = r == 0 ? fork() : -1;
	if (pid == 0)
		live_as_server(server);
	if (pid < 0) {
		r = r < 0 ? r : -errno;
		volumes_unmount(path);
		return r;
	}
	*served_r = (struct served){ pid, give_fd(mount), give_fd(alive) };
	return 0;
}

static int
volumes_start(struct volumes *volumes, const char *path, int root, ino_t leaf,
	      const struct frame *frame)
{
	const struct msg_volume *asked = &frame->msg.volume;
	struct server server = {
		.root = root, .gate = frame->fds.fd[1], .cgroup = frame->fds.fd[2],
		.terms = { .bytes_max = asked->bytes, .files_max = asked->files },
	};
	char whole[PATH_MAX];
	struct row *row = reallocarray(volumes->row, volumes->n + 1, sizeof(*row));
	int r;

	if (!row)
		return -ENOMEM;
	volumes->row = row;
	row = &volumes->row[volumes->n];
	snprintf(whole, sizeof(whole), "%s/%s", volumes->directory, path);
	r = start_server(&server, whole, frame->fds.fd[0], VOLUME_PLACE, volumes->home,
			 &row->served);
	if (r < 0)
		return r;
	snprintf(row->path, sizeof(row->path), "%s", path);
	row->leaf = leaf;
	volumes->n++;
	return 0;
}

/* Mounts the volume in the worker. 1: its server runs already; 0: its server was started, and will
 * write the result to the gate; or -errno. */
static int
volumes_provide(struct volumes *volumes, const char *tenant, const char *name,
		const struct frame *frame)
{
	char path[sizeof(volumes->row->path)];
	const struct row *row;
	own_fd int root = -1;
	struct stat leaf;

	if (fstat(frame->fds.fd[2], &leaf) < 0)
		return -errno;
	snprintf(path, sizeof(path), "%s/%s", tenant, name);
	volumes_sweep(volumes, path, leaf.st_ino);
	row = volumes_find(volumes, path);
	if (row)
		return served_attach(&row->served, frame->fds.fd[0], VOLUME_PLACE, volumes->home);
	root = volumes_open_directory(volumes, tenant, name, &frame->msg.volume);
	return root < 0 ? root : volumes_start(volumes, path, root, leaf.st_ino, frame);
}

/* Reads the name of a directory. False: it is empty, begins with a dot, or has a character, such as
 * a slash, other than letters, digits, "_", "-" and ".". */
static bool
volumes_read_name(const struct msg_str *from, char *text)
{
	for (size_t i = 0; i < from->len; i++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.",
			    from->at[i]) || from->at[i] == '\0')
			return false;
	memcpy(text, from->at, from->len);
	text[from->len] = '\0';
	return text[0] != '.' && text[0] != '\0';
}

int
volumes_on_message(struct volumes *volumes, int trouble, struct frame *frame)
{
	const struct msg_volume *asked = &frame->msg.volume;
	char tenant[VOLUME_TENANT_MAX + 1], name[VOLUME_NAME_MAX + 1];
	int r;

	if (!volumes_read_name(&asked->tenant, tenant) || !volumes_read_name(&asked->name, name))
		return -EBADMSG;
	r = volumes ? volumes_provide(volumes, tenant, name, frame) : trouble;
	if (r != 0)
		volumes_say(frame->fds.fd[1], r < 0 ? r : 0);
	return 0;
}

int
volumes_new(const char *directory, int fd, int home, struct volumes **volumes_r)
{
	own_fd int fuse = open(DEVICE, O_RDWR | O_CLOEXEC);

	if (fuse < 0)
		return -errno;
	*volumes_r = calloc(1, sizeof(**volumes_r));
	if (!*volumes_r)
		return -ENOMEM;
	**volumes_r = (struct volumes){ .directory = strdup(directory), .fd = fd, .home = home };
	return (*volumes_r)->directory ? 0 : -ENOMEM;
}

void
volumes_renew(struct volumes *volumes, void (*renew)(int *fd, char *path, bool locks))
{
	const int fd = volumes->fd;
	struct stat was, is;

	if (fstat(fd, &was) < 0)
		return;
	renew(&volumes->fd, volumes->directory, false);
	if (fstat(volumes->fd, &is) < 0 || (is.st_dev == was.st_dev && is.st_ino == was.st_ino))
		return;
	for (size_t i = 0; i < volumes->n; i++) {
		close(volumes->row[i].served.mount);
		close(volumes->row[i].served.alive);
	}
	volumes->n = 0;
}

/* ---- FOLDER ---- */

/* As volumes_provide. */
static int
folder_provide(struct folder *folder, const struct frame *frame)
{
	const int worker = frame->fds.fd[0];
	struct server server = {
		.root = folder->fd, .gate = frame->fds.fd[1], .cgroup = -1,
		.terms = { .is_folder = true, .is_writable = folder->is_writable },
	};

	if (folder->served.mount >= 0 && is_alive(&folder->served))
		return served_attach(&folder->served, worker, FOLDER_PLACE, folder->home);
	if (folder->served.mount >= 0)
		served_done(&folder->served, folder->directory);
	return start_server(&server, folder->directory, worker, FOLDER_PLACE, folder->home,
			    &folder->served);
}

void
folder_on_message(struct folder *folder, int trouble, struct frame *frame)
{
	int r = trouble == 0 ? folder_provide(folder, frame) : trouble;

	if (r != 0)
		volumes_say(frame->fds.fd[1], r < 0 ? r : 0);
}

int
folder_new(const char *directory, bool writable, int home, struct folder **folder_r)
{
	own_fd int fuse = open(DEVICE, O_RDWR | O_CLOEXEC);
	int fd = open(directory, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fuse < 0)
		return -errno;
	*folder_r = calloc(1, sizeof(**folder_r));
	if (!*folder_r)
		return -ENOMEM;
	**folder_r = (struct folder){ .directory = strdup(directory), .fd = fd, .home = home,
				      .is_writable = writable, .served.mount = -1 };
	return (*folder_r)->directory ? 0 : -ENOMEM;
}
