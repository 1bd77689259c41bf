/* SPDX-License-Identifier: Apache-2.0 */
/* The server of a volume, asked by messages as the kernel would send them, over a socket in place
 * of /dev/fuse: so it needs neither the device nor privilege. */
#include "keeper/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "keeper/volume_tree.h"

#define BYTES_MAX (256 * 1024ULL)
#define FILES_MAX 8
#define UID 4711

static const struct volume_terms terms = { .bytes_max = BYTES_MAX, .files_max = FILES_MAX };

static struct {
	char directory[32];
	int root, ours, theirs;
	pthread_t thread;
	int ready, result;
	char out[512 * 1024];
	size_t out_len;
} rig;

/* ---- the server ---- */

static _Atomic bool no_memory;		/* of the host, for what is written */

ssize_t
pwrite(int fd, const void *bytes, size_t len, off_t offset)
{
	errno = ENOMEM;
	return no_memory ? -1 : syscall(SYS_pwrite64, fd, bytes, len, offset);
}

static void
on_ready(void *arg, int error)
{
	*(int *)arg = error;
}

static void *
serve(void *arg)
{
	(void)arg;
	rig.result = volume_serve(rig.theirs, rig.root, &terms, on_ready,
				  &rig.ready);
	return NULL;
}

/* Sends a message; the error of the answer, whose body is in rig.out. */
static int
ask(uint32_t opcode, uint64_t node, const void *in, size_t len, const char *name,
    const char *name2)
{
	static char text[512 * 1024];
	struct fuse_in_header head = { .opcode = opcode, .unique = 7, .nodeid = node,
				       .uid = UID, .gid = UID };
	const char *const names[] = { name, name2 };
	struct fuse_out_header out;
	size_t at = sizeof(head);
	ssize_t n;

	if (len > 0)
		memcpy(text + at, in, len);
	at += len;
	for (size_t i = 0; i < 2; i++)
		if (names[i]) {
			memcpy(text + at, names[i], strlen(names[i]) + 1);
			at += strlen(names[i]) + 1;
		}
	head.len = (uint32_t)at;
	memcpy(text, &head, sizeof(head));
	assert_int_equal(send(rig.ours, text, at, 0), at);
	if (opcode == FUSE_FORGET || opcode == FUSE_BATCH_FORGET || opcode == FUSE_INTERRUPT)
		return 0;
	n = recv(rig.ours, text, sizeof(text), 0);
	assert_true(n >= (ssize_t)sizeof(out));
	memcpy(&out, text, sizeof(out));
	assert_int_equal(out.len, n);
	assert_int_equal(out.unique, 7);
	rig.out_len = (size_t)n - sizeof(out);
	memcpy(rig.out, text + sizeof(out), rig.out_len);
	return out.error;
}

static int
set_up(void **state)
{
	const struct fuse_init_in init = { .major = FUSE_KERNEL_VERSION, .minor = 38 };
	int pair[2];

	(void)state;
	strcpy(rig.directory, "/tmp/test-volume-XXXXXX");
	assert_non_null(mkdtemp(rig.directory));
	rig.root = open(rig.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	rig.ours = pair[0];
	rig.theirs = pair[1];
	rig.ready = 1;
	assert_int_equal(pthread_create(&rig.thread, NULL, serve, NULL), 0);
	assert_int_equal(ask(FUSE_INIT, 0, &init, sizeof(init), NULL, NULL), 0);
	assert_int_equal(rig.ready, 0);
	return 0;
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static int
tear_down(void **state)
{
	(void)state;
	assert_int_equal(ask(FUSE_DESTROY, 0, NULL, 0, NULL, NULL), 0);
	pthread_join(rig.thread, NULL);
	assert_int_equal(rig.result, 0);
	close(rig.ours);
	close(rig.theirs);
	close(rig.root);
	return nftw(rig.directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- messages ---- */

static struct fuse_entry_out
entry(void)
{
	struct fuse_entry_out entry;

	assert_true(rig.out_len >= sizeof(entry));
	memcpy(&entry, rig.out, sizeof(entry));
	return entry;
}

static int
create(uint64_t parent, const char *name, uint32_t mode)
{
	const struct fuse_create_in in = { .flags = O_RDWR | O_CREAT, .mode = S_IFREG | mode };

	return ask(FUSE_CREATE, parent, &in, sizeof(in), name, NULL);
}

static int
write_at(uint64_t node, uint64_t offset, size_t len)
{
	static char in[200 * 1024];
	const struct fuse_write_in write = { .offset = offset, .size = (uint32_t)len };

	memcpy(in, &write, sizeof(write));
	memset(in + sizeof(write), 'x', len);
	return ask(FUSE_WRITE, node, in, sizeof(write) + len, NULL, NULL);
}

static int
set_size(uint64_t node, uint64_t size)
{
	const struct fuse_setattr_in in = { .valid = FATTR_SIZE, .size = size };

	return ask(FUSE_SETATTR, node, &in, sizeof(in), NULL, NULL);
}

static int
make(uint32_t opcode, uint64_t parent, const char *name, const char *target, uint32_t mode)
{
	const struct fuse_mknod_in node = { .mode = mode };
	const struct fuse_mkdir_in directory = { .mode = mode };

	if (opcode == FUSE_MKNOD)
		return ask(opcode, parent, &node, sizeof(node), name, NULL);
	if (opcode == FUSE_MKDIR)
		return ask(opcode, parent, &directory, sizeof(directory), name, NULL);
	return ask(opcode, parent, NULL, 0, name, target);
}

static int
move(uint64_t from, const char *name, uint64_t to, const char *new_name)
{
	const struct fuse_rename_in in = { .newdir = to };

	return ask(FUSE_RENAME, from, &in, sizeof(in), name, new_name);
}

static struct fuse_kstatfs
room(void)
{
	struct fuse_statfs_out out;

	assert_int_equal(ask(FUSE_STATFS, FUSE_ROOT_ID, NULL, 0, NULL, NULL), 0);
	memcpy(&out, rig.out, sizeof(out));
	return out.st;
}

static uint64_t
blocks_used(void)
{
	return BYTES_MAX / 4096 - room().bfree;
}

/* ---- the tests ---- */

static void
files_belong_to_who_asks(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(create(FUSE_ROOT_ID, "f", 0640), 0);
	assert_int_equal(entry().attr.uid, UID);
	assert_int_equal(entry().attr.mode & 07777, 0600);
	assert_int_equal(entry().attr_valid, 0);
	assert_int_equal(fstatat(rig.root, "f", &st, 0), 0);
	assert_int_equal(st.st_uid, getuid());
	assert_int_equal(make(FUSE_MKDIR, FUSE_ROOT_ID, "d", NULL, 04111), 0);
	assert_int_equal(entry().attr.mode & 07777, 0111);
	assert_int_equal(fstatat(rig.root, "d", &st, 0), 0);
	assert_int_equal(st.st_mode & 07700, 0700);
}

static void
names_lead_nowhere_else(void **state)
{
	static const char *const names[] = { "..", ".", "", "a/b", "/etc/passwd", "../x" };
	uint64_t link;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(create(FUSE_ROOT_ID, names[i], 0600), -EINVAL);
		assert_int_equal(ask(FUSE_LOOKUP, FUSE_ROOT_ID, NULL, 0, names[i], ""), -EINVAL);
		assert_int_equal(make(FUSE_SYMLINK, FUSE_ROOT_ID, names[i], "x", 0), -EINVAL);
		assert_int_equal(make(FUSE_MKDIR, FUSE_ROOT_ID, names[i], NULL, 0700), -EINVAL);
	}
	/* A link is an end: nothing below it, and it is not opened. */
	assert_int_equal(make(FUSE_SYMLINK, FUSE_ROOT_ID, "l", "/etc", 0), 0);
	link = entry().nodeid;
	assert_int_equal(ask(FUSE_LOOKUP, link, NULL, 0, "passwd", NULL), -ENOTDIR);
	assert_int_equal(ask(FUSE_OPEN, link, "\0\0\0\0\0\0\0\0", 8, NULL, NULL), -ELOOP);
	assert_int_equal(set_size(link, 0), -EOPNOTSUPP);
	/* What has come into the directory otherwise is not there. */
	assert_int_equal(mkfifoat(rig.root, "fifo", 0600), 0);
	assert_int_equal(ask(FUSE_LOOKUP, FUSE_ROOT_ID, NULL, 0, "fifo", NULL), -ENOENT);
}

static void
there_are_three_kinds(void **state)
{
	static const uint32_t kinds[] = { S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK };

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		assert_int_equal(make(FUSE_MKNOD, FUSE_ROOT_ID, "n", NULL, kinds[i] | 0666), -EPERM);
	assert_int_equal(make(FUSE_MKNOD, FUSE_ROOT_ID, "n", NULL, S_IFREG | 06666), 0);
	assert_int_equal(entry().attr.mode, S_IFREG | 0666);
	assert_int_equal(ask(FUSE_LINK, FUSE_ROOT_ID, "\1\0\0\0\0\0\0\0", 8, "m", NULL), -EPERM);
	assert_int_equal(ask(FUSE_SETXATTR, FUSE_ROOT_ID, NULL, 0, "user.x", "y"), -ENOSYS);
	assert_int_equal(ask(4000, FUSE_ROOT_ID, NULL, 0, NULL, NULL), -ENOSYS);
}

static void
bytes_are_counted(void **state)
{
	uint64_t node;

	(void)state;
	assert_int_equal(blocks_used(), 0);
	assert_int_equal(create(FUSE_ROOT_ID, "f", 0600), 0);
	node = entry().nodeid;
	assert_int_equal(blocks_used(), 1);
	assert_int_equal(write_at(node, 0, 1), 0);
	assert_int_equal(blocks_used(), 2);
	assert_int_equal(write_at(node, 0, 4096), 0);
	assert_int_equal(blocks_used(), 2);
	assert_int_equal(write_at(node, 4096, 100 * 1024), 0);
	assert_int_equal(blocks_used(), 27);
	/* Holes count. */
	assert_int_equal(set_size(node, BYTES_MAX), -ENOSPC);
	assert_int_equal(set_size(node, 1ULL << 60), -ENOSPC);
	assert_int_equal(set_size(node, UINT64_MAX), -EFBIG);
	assert_int_equal(write_at(node, 1ULL << 50, 1), -ENOSPC);
	assert_int_equal(write_at(node, UINT64_MAX - 10, 100), -EFBIG);
	assert_int_equal(blocks_used(), 27);
	assert_int_equal(set_size(node, BYTES_MAX - 4096), 0);
	assert_int_equal(room().bfree, 0);
	assert_int_equal(create(FUSE_ROOT_ID, "g", 0600), -ENOSPC);
	assert_int_equal(make(FUSE_MKDIR, FUSE_ROOT_ID, "g", NULL, 0700), -ENOSPC);
	assert_int_equal(set_size(node, 0), 0);
	assert_int_equal(blocks_used(), 1);
	/* Removed, it counts until it is closed. */
	assert_int_equal(write_at(node, 0, 8192), 0);
	assert_int_equal(ask(FUSE_UNLINK, FUSE_ROOT_ID, NULL, 0, "f", NULL), 0);
	assert_int_equal(blocks_used(), 3);
	assert_int_equal(write_at(node, 8192, 8192), 0);
	assert_int_equal(blocks_used(), 5);
	assert_int_equal(ask(FUSE_GETATTR, node, NULL, 0, NULL, NULL), 0);
	assert_int_equal(ask(FUSE_RELEASE, node, NULL, 0, NULL, NULL), 0);
	assert_int_equal(blocks_used(), 0);
	assert_int_equal(ask(FUSE_GETATTR, node, NULL, 0, NULL, NULL), -ENOENT);
	assert_int_equal(ask(FUSE_OPEN, node, "\0\0\0\0\0\0\0\0", 8, NULL, NULL), -ENOENT);
}

static void
the_hosts_memory_is_not_the_scripts(void **state)
{
	uint64_t node;

	(void)state;
	assert_int_equal(create(FUSE_ROOT_ID, "f", 0600), 0);
	node = entry().nodeid;
	no_memory = true;
	assert_int_equal(write_at(node, 0, 1), -EIO);
	no_memory = false;
	assert_int_equal(write_at(node, 0, 1), 0);
}

static void
names_are_counted(void **state)
{
	char name[16];

	(void)state;
	for (unsigned int i = 0; i < FILES_MAX; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		assert_int_equal(make(FUSE_MKDIR, FUSE_ROOT_ID, name, NULL, 0700), 0);
	}
	assert_int_equal(room().ffree, 0);
	assert_int_equal(make(FUSE_SYMLINK, FUSE_ROOT_ID, "x", "y", 0), -ENOSPC);
	assert_int_equal(move(FUSE_ROOT_ID, "n0", FUSE_ROOT_ID, "n1"), 0);
	assert_int_equal(room().ffree, 1);
	assert_int_equal(create(FUSE_ROOT_ID, "f", 0600), 0);
	assert_int_equal(make(FUSE_SYMLINK, FUSE_ROOT_ID, "x", "y", 0), -ENOSPC);
	assert_int_equal(ask(FUSE_RMDIR, FUSE_ROOT_ID, NULL, 0, "n1", NULL), 0);
	assert_int_equal(ask(FUSE_RMDIR, FUSE_ROOT_ID, NULL, 0, "n1", NULL), -ENOENT);
	assert_int_equal(room().ffree, 1);
}

/* A file that is replaced, moved and forgotten in turns stays the one that it is. */
static void
nodes_follow_their_names(void **state)
{
	uint64_t a, b, directory;

	(void)state;
	assert_int_equal(make(FUSE_MKDIR, FUSE_ROOT_ID, "d", NULL, 0700), 0);
	directory = entry().nodeid;
	assert_int_equal(create(FUSE_ROOT_ID, "a", 0600), 0);
	a = entry().nodeid;
	assert_int_equal(create(directory, "b", 0600), 0);
	b = entry().nodeid;
	assert_int_equal(write_at(b, 0, 5000), 0);
	assert_int_equal(move(FUSE_ROOT_ID, "a", directory, "b"), 0);
	assert_int_equal(blocks_used(), 5);	/* two names, and the two blocks of an open file */
	assert_int_equal(ask(FUSE_LOOKUP, directory, NULL, 0, "b", NULL), 0);
	assert_int_equal(entry().nodeid, a);
	assert_int_equal(entry().attr.size, 0);
	assert_int_equal(ask(FUSE_GETATTR, b, NULL, 0, NULL, NULL), 0);
	assert_int_equal(ask(FUSE_RELEASE, b, NULL, 0, NULL, NULL), 0);
	assert_int_equal(ask(FUSE_FORGET, b, "\1\0\0\0\0\0\0\0", 8, NULL, NULL), 0);
	assert_int_equal(blocks_used(), 2);
	assert_int_equal(move(FUSE_ROOT_ID, "d", FUSE_ROOT_ID, "e"), 0);
	assert_int_equal(write_at(a, 0, 1), 0);
	assert_int_equal(ask(FUSE_RELEASE, a, NULL, 0, NULL, NULL), 0);
	assert_int_equal(ask(FUSE_GETATTR, a, NULL, 0, NULL, NULL), 0);
	assert_int_equal(ask(FUSE_FORGET, a, "\2\0\0\0\0\0\0\0", 8, NULL, NULL), 0);
	assert_int_equal(ask(FUSE_LOOKUP, directory, NULL, 0, "b", NULL), 0);
	assert_int_equal(entry().attr.size, 1);
	assert_int_equal(move(FUSE_ROOT_ID, "e", FUSE_ROOT_ID, "e"), 0);
	assert_int_equal(blocks_used(), 3);
}

static void
short_messages_are_refused(void **state)
{
	static const uint32_t opcodes[] = { FUSE_MKDIR, FUSE_MKNOD, FUSE_CREATE, FUSE_WRITE,
					    FUSE_SETATTR, FUSE_RENAME, FUSE_RENAME2, FUSE_READ,
					    FUSE_FALLOCATE, FUSE_READDIR, FUSE_RELEASEDIR };

	(void)state;
	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++)
		assert_int_equal(ask(opcodes[i], FUSE_ROOT_ID, "x", 2, NULL, NULL), -EINVAL);
}

/* Each costs the server memory. */
static void
open_directories_are_counted(void **state)
{
	const struct fuse_open_in open = { .flags = O_RDONLY };
	struct fuse_release_in release[513];
	unsigned int n = 0;

	(void)state;
	memset(release, 0, sizeof(release));
	while (n < 513 && ask(FUSE_OPENDIR, FUSE_ROOT_ID, &open, sizeof(open), NULL, NULL) == 0)
		memcpy(&release[n++].fh, rig.out, sizeof(release->fh));
	assert_int_equal(n, 512);
	while (n-- > 0)
		assert_int_equal(ask(FUSE_RELEASEDIR, FUSE_ROOT_ID, &release[n], sizeof(*release),
				     NULL, NULL), 0);
	assert_int_equal(ask(FUSE_OPENDIR, FUSE_ROOT_ID, &open, sizeof(open), NULL, NULL), 0);
	memcpy(&release->fh, rig.out, sizeof(release->fh));
	assert_int_equal(ask(FUSE_RELEASEDIR, FUSE_ROOT_ID, release, sizeof(*release), NULL, NULL),
			 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files_belong_to_who_asks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_lead_nowhere_else, set_up, tear_down),
		cmocka_unit_test_setup_teardown(there_are_three_kinds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(bytes_are_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_hosts_memory_is_not_the_scripts, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(names_are_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nodes_follow_their_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(open_directories_are_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(short_messages_are_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("volume", tests, NULL, NULL);
}
