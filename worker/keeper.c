/* Runs in: the keeper, root of the outer namespace; intakes and removals in children of it.
 * Owns: everything in the store. Reads: KEEP once, then ATTACH, TAKE and DISCARD, from the
 * supervisor alone.
 *
 * How a sealed worker gets a mount: mounts can be made only by a process that is inside
 * of the mount namespace and has CAP_SYS_ADMIN over it. The worker has given that up, its
 * filter and Landlock deny it besides. The keeper has it, for workers' namespaces are
 * below its own: it clones the environment's mount, makes it read-only, enters the
 * worker's namespace, puts it there and comes back; four system calls. Of the worker's tree it
 * resolves one path, which is on a read-only file system of ours. */
#include "worker/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
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

#include "proto/frame.h"
#include "proto/own.h"
#include "worker/intake.h"
#include "worker/mounts.h"

#define HALF_NEW ".new-"
#define HALF_OLD ".old-"

struct keeper {
	int store;		/* a directory in our own mount namespace */
	int home;		/* our mount namespace */
	uint64_t serial;	/* of what is half made */
};

/* ---- names ---- */

/* 64 hexadecimal digits; text has room for 65. */
static int
read_name(const struct msg_str *name, char *text)
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

/* Everything below and with it dir/name. Follows no links; depth bounds what it holds open. */
static int
remove_tree(int dir, const char *name, unsigned int depth)
{
	struct dirent *entry;
	int r = 0, fd;
	DIR *list;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if ((errno != EISDIR && errno != EPERM) || depth > INTAKE_DEPTH_MAX + 2)
		return -errno;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	list = fd < 0 ? NULL : fdopendir(fd);
	if (!list) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	while (r == 0 && (entry = readdir(list)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = remove_tree(fd, entry->d_name, depth + 1);
	closedir(list);
	if (r == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}

/* Removes what nobody finished. The number of them, or -errno. */
static int
sweep(const struct keeper *keeper)
{
	int fd = openat(keeper->store, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int removed = 0, r = list ? 0 : -errno;

	while (r == 0 && (entry = readdir(list)))
		if (is_half(entry->d_name)) {
			r = remove_tree(keeper->store, entry->d_name, 0);
			removed++;
		}
	if (list)
		closedir(list);
	return r < 0 ? r : removed;
}

/* ---- mounting ---- */

static int
attach(const struct keeper *keeper, const char *name, int worker)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
	};
	char path[ENVIRONMENT_NAME + 16];
	own_fd int tree = -1;
	int r = 0;

	snprintf(path, sizeof(path), "%s/tree", name);
	tree = open_tree(keeper->store, path,
			 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -errno;
	if (setns(worker, CLONE_NEWNS) < 0)
		return -errno;
	/* What a session had before goes, or its mounts would pile up; mostly nothing is there. */
	if (umount2(MOUNTS_ENVIRONMENT, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL)
		r = -errno;
	if (r == 0 && move_mount(tree, "", AT_FDCWD, MOUNTS_ENVIRONMENT,
				 MOVE_MOUNT_F_EMPTY_PATH) < 0)
		r = -errno;
	/* A keeper that cannot come home is of no use, and another one takes its place. */
	if (setns(keeper->home, CLONE_NEWNS) < 0)
		_exit(EXIT_FAILURE);
	return r;
}

static int
on_attach(const struct keeper *keeper, const struct frame *frame)
{
	char name[ENVIRONMENT_NAME + 1];
	unsigned char said;
	int r = read_name(&frame->msg.attach.name, name);

	if (r < 0)
		return r;
	r = attach(keeper, name, frame->fds.fd[0]);
	said = r < 0 && r > -256 ? (unsigned char)-r : r < 0 ? EIO : 0;
	/* Whoever waits may be gone. */
	if (write(frame->fds.fd[1], &said, 1) < 0)
		return 0;
	return 0;
}

/* ---- children ---- */

/* Nothing that it meets can be turned against more than its own files. */
static int
become_powerless(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_capset, &head, none) < 0)
		return -errno;
	return 0;
}

static int
write_file(int dir, const char *name, const char *text, size_t len)
{
	own_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	size_t at = 0;

	if (fd < 0)
		return -errno;
	while (at < len) {
		ssize_t n = write(fd, text + at, len - at);

		if (n < 0)
			return -errno;
		at += (size_t)n;
	}
	return 0;
}

/* Takes in the files, and lists them as sha256sum does: whoever doubts a disk can ask it. */
static int
take_files(struct intake *intake, int dir, const char **what_r)
{
	own_fd int fd = openat(dir, "files", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	int r = 0;

	intake->list = fd < 0 ? NULL : fdopen(fd, "w");
	if (!intake->list)
		return -errno;
	give_fd(fd);
	r = intake_read(intake, what_r);
	if (fclose(intake->list) != 0 && r == 0) {
		*what_r = "the list of the files";
		r = -errno;
	}
	return r;
}

/* All of it is on the disk before its name is, and then the name is. */
static int
put_in_place(int store, const char *half, const char *name, const char **what_r)
{
	*what_r = "writing to the disk";
	if (syncfs(store) < 0)
		return -errno;
	*what_r = "the name of the environment";
	/* Another intake may have been faster with the very same. */
	if (renameat2(store, half, store, name, RENAME_NOREPLACE) < 0 && errno != EEXIST)
		return -errno;
	return fsync(store) < 0 ? -errno : 0;
}

static int
take(const struct keeper *keeper, const struct frame *frame, const char *half,
     struct intake *intake, const char **what_r)
{
	const struct msg_take *asked = &frame->msg.take;
	own_fd int dir = -1, tree = -1;
	char name[ENVIRONMENT_NAME + 1], size[32];
	int r = read_name(&asked->name, name);

	*what_r = "making room in the store";
	if (r == 0 && (mkdirat(keeper->store, half, 0755) < 0 ||
		       (dir = openat(keeper->store, half,
				     O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
		       mkdirat(dir, "tree", 0755) < 0 ||
		       (tree = openat(dir, "tree",
				      O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0))
		r = -errno;
	if (r == 0)
		r = write_file(dir, "manifest", asked->manifest.at, asked->manifest.len);
	if (r < 0)
		return r;
	*intake = (struct intake){
		.stream = frame->fds.fd[0], .tree = tree,
		.bytes_max = asked->bytes_max, .files_max = asked->files_max,
	};
	r = take_files(intake, dir, what_r);
	if (r == 0) {
		snprintf(size, sizeof(size), "%llu\n", (unsigned long long)intake->bytes);
		r = write_file(dir, "bytes", size, strlen(size));
	}
	return r < 0 ? r : put_in_place(keeper->store, half, name, what_r);
}

static _Noreturn void
live_as_taker(const struct keeper *keeper, const struct frame *frame)
{
	struct msg taken = { .type = MSG_TAKEN };
	const char *what = "giving up capabilities";
	struct intake intake = { 0 };
	char half[64];
	int r = become_powerless();

	prctl(PR_SET_NAME, "python-taker", 0, 0, 0);
	snprintf(half, sizeof(half), HALF_NEW "%llu", (unsigned long long)keeper->serial);
	if (r == 0) {
		r = take(keeper, frame, half, &intake, &what);
		/* Nothing of this name is left of what was put in place. */
		remove_tree(keeper->store, half, 0);
	}
	taken.taken.error = (uint32_t)-r;
	taken.taken.what = msg_str(r < 0 ? what : "");
	taken.taken.bytes = intake.bytes;
	taken.taken.files = intake.files;
	frame_send(frame->fds.fd[1], &taken, NULL, 0);
	_exit(EXIT_SUCCESS);
}

static int
on_take(struct keeper *keeper, const struct frame *frame)
{
	pid_t pid;

	keeper->serial++;
	pid = fork();
	if (pid == 0)
		live_as_taker(keeper, frame);
	/* Without a child the socket for TAKEN is closed with the frame, which tells. */
	return 0;
}

static int
on_discard(struct keeper *keeper, const struct frame *frame)
{
	char name[ENVIRONMENT_NAME + 1], half[64];
	int r = read_name(&frame->msg.discard.name, name);

	if (r < 0)
		return r;
	snprintf(half, sizeof(half), HALF_OLD "%llu", (unsigned long long)++keeper->serial);
	if (renameat2(keeper->store, name, keeper->store, half, RENAME_NOREPLACE) < 0)
		return 0;
	if (fork() == 0) {
		if (become_powerless() == 0)
			remove_tree(keeper->store, half, 0);
		_exit(EXIT_SUCCESS);
	}
	return 0;
}

/* ---- life ---- */

static int
begin(struct keeper *keeper, const struct msg_keep *keep, const char **what_r)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%.*s", (int)keep->store.len, keep->store.at);
	*what_r = "the mount namespace";
	keeper->home = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (keeper->home < 0)
		return -errno;
	/* What is put into a worker has no ties to mounts of the host. */
	*what_r = "private mounts";
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	*what_r = "the directory of the store";
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	keeper->store = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (keeper->store < 0 || fstat(keeper->store, &st) < 0)
		return -errno;
	*what_r = "the store is another user's, or others may write to it";
	if (st.st_uid != 0 || (st.st_mode & 022))
		return -EPERM;
	*what_r = "the store is in use by another service";
	if (flock(keeper->store, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	*what_r = "what was left half made";
	return sweep(keeper);
}

static int
say_begun(int r, const char *what)
{
	struct msg msg = { .type = MSG_KEEPING, .keeping = {
		.build = msg_str(PROTO_BUILD),
		.error = r < 0 ? (uint32_t)-r : 0,
		.what = msg_str(r < 0 ? what : ""),
		.removed = r > 0 ? (uint32_t)r : 0,
	} };

	return frame_send(KEEPER_CONTROL, &msg, NULL, 0);
}

static int
default_process(void)
{
	struct sigaction no_zombies = { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT };
	int flags = fcntl(KEEPER_CONTROL, F_GETFL);

	umask(022);
	prctl(PR_SET_NAME, "python-keeper", 0, 0, 0);
	signal(SIGPIPE, SIG_IGN);
	if (flags < 0 || fcntl(KEEPER_CONTROL, F_SETFL, flags & ~O_NONBLOCK) < 0 ||
	    fcntl(KEEPER_CONTROL, F_SETFD, FD_CLOEXEC) < 0 ||
	    close_range(KEEPER_CONTROL + 1, ~0U, 0) < 0 ||
	    sigaction(SIGCHLD, &no_zombies, NULL) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

/* A message that does not fit ends the keeper. */
static int
serve(struct keeper *keeper, const struct frame *frame)
{
	switch ((unsigned int)frame->msg.type) {
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
	struct keeper keeper = { .store = -1, .home = -1 };
	struct frame_reader reader;
	struct frame frame = { 0 };
	const char *what = "process";
	int r = default_process();

	frame_reader_init(&reader, FROM_SUPERVISOR);
	if (r == 0)
		r = frame_reader_read(&reader, KEEPER_CONTROL, &frame) == 1 &&
		    frame.msg.type == MSG_KEEP ? 0 : -EBADMSG;
	if (r == 0)
		r = begin(&keeper, &frame.msg.keep, &what);
	frame_done(&frame);
	if (say_begun(r, what) < 0 || r < 0)
		return EXIT_FAILURE;
	/* Ends with the supervisor's end of the socket. */
	while (frame_reader_read(&reader, KEEPER_CONTROL, &frame) == 1) {
		r = serve(&keeper, &frame);
		frame_done(&frame);
		if (r < 0)
			return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
