/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a child of the keeper, without capabilities, in a root that is the volume's directory.
 * Owns:    what scripts have open in the volume.
 * Reads:   requests of the kernel. Names, modes, sizes and offsets in them are a script's. */
#include "keeper/volume.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fuse.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "keeper/volume_tree.h"

#define MINOR_LEAST 31			/* of the protocol: Linux 5.4 */
#define PAGES 64			/* of one request's data */
#define DATA_MAX (PAGES * 4096U)
#define IN_MAX (DATA_MAX + 4096U)
#define OUT_MAX (DATA_MAX + 4096U)
/* How long the kernel may remember a name: no other process changes the directory. Attributes are
 * asked for each time, because a file is shown as the property of the process that asks. */
#define NAMES_SECONDS 86400
#define FOLDER_NAMES_SECONDS 1		/* in a folder, which other processes do change */
#define NOBODY 65534
#define LISTS_MAX 512			/* open directories, of which each costs 32 KiB */

#define NO_REPLY INT_MIN

struct volume {
	struct volume_tree tree;
	int fuse;
	unsigned int lists;		/* directories that are open */
	bool over;
	const struct fuse_in_header *head;
	char *out;			/* the reply behind its head */
};

/* Handles one request. Returns the length of the reply in out, -errno, or NO_REPLY. in has at
 * least as many bytes as its row demands. */
typedef int handler(struct volume *v, const void *in, size_t len);

static struct volume_node *
node_of(struct volume *v, uint64_t id)
{
	return id == FUSE_ROOT_ID ? &v->tree.top : (struct volume_node *)(uintptr_t)id;
}

static struct volume_node *
asked(struct volume *v)
{
	return node_of(v, v->head->nodeid);
}

/* The text at *at, which ends within len bytes; moves both behind it. NULL: there is none. */
static const char *
volume_read_name(const char **at, size_t *len)
{
	const char *name = *at, *end = memchr(name, '\0', *len);

	if (!end || end == name || strchr(name, '/') || strcmp(name, ".") == 0 ||
	    strcmp(name, "..") == 0)
		return NULL;
	*len -= (size_t)(end - name) + 1;
	*at = end + 1;
	return name;
}

/* ---- modes and attributes ---- */

/* On the disk a file's owner is this process, which can always read and write it. The owner's bits
 * that a script sets are kept as the group's bits on the disk. The group's bits that a script sets
 * are not kept: scripts see the others' bits in their place. */
static mode_t
mode_on_disk(const struct volume *v, mode_t mode, bool is_directory)
{
	if (v->tree.terms.is_folder)
		return mode & 0777;
	return (is_directory ? 0700 : 0600) | (mode & 0100) | (mode & 0700) >> 3 | (mode & 07);
}

static mode_t
mode_shown(const struct volume *v, const struct stat *st)
{
	mode_t bits = (st->st_mode & 070) << 3 | (st->st_mode & 07) << 3 | (st->st_mode & 07);

	if (v->tree.terms.is_folder)
		bits = st->st_mode & 0777;
	return (st->st_mode & S_IFMT) | (S_ISLNK(st->st_mode) ? 0777 : bits);
}

static void
fill_attributes(const struct volume *v, const struct stat *st, struct fuse_attr *attr_r)
{
	/* This process is root of the outer namespace, which is the user. */
	bool own = !v->tree.terms.is_folder || st->st_uid == 0;

	*attr_r = (struct fuse_attr){
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.blocks = (uint64_t)st->st_blocks,
		.atime = (uint64_t)st->st_atim.tv_sec,
		.mtime = (uint64_t)st->st_mtim.tv_sec,
		.ctime = (uint64_t)st->st_ctim.tv_sec,
		.atimensec = (uint32_t)st->st_atim.tv_nsec,
		.mtimensec = (uint32_t)st->st_mtim.tv_nsec,
		.ctimensec = (uint32_t)st->st_ctim.tv_nsec,
		.mode = mode_shown(v, st),
		.nlink = (uint32_t)st->st_nlink,
		.uid = own ? v->head->uid : NOBODY,
		.gid = own ? v->head->gid : NOBODY,
		.blksize = VOLUME_BLOCK,
	};
}

static int
answer_attributes(struct volume *v, struct volume_node *node)
{
	struct fuse_attr_out *out = (void *)v->out;
	struct stat st;
	int r = volume_stat(&v->tree, node, &st);

	if (r < 0)
		return r;
	memset(out, 0, sizeof(*out));
	fill_attributes(v, &st, &out->attr);
	return sizeof(*out);
}

/* Answers with the node of a name, which the kernel holds from now on. */
static int
answer_entry(struct volume *v, const char *name)
{
	struct fuse_entry_out *out = (void *)v->out;
	struct volume_node *node;
	struct stat st;
	int r = volume_look(&v->tree, asked(v), name, &node, &st);

	if (r < 0)
		return r;
	node->lookups++;
	memset(out, 0, sizeof(*out));
	out->nodeid = (uintptr_t)node;
	out->generation = node->generation;
	out->entry_valid = v->tree.terms.is_folder ? FOLDER_NAMES_SECONDS : NAMES_SECONDS;
	fill_attributes(v, &st, &out->attr);
	return sizeof(*out);
}

/* ---- names ---- */

static int
on_lookup(struct volume *v, const void *in, size_t len)
{
	const char *at = in, *name = volume_read_name(&at, &len);

	return name ? answer_entry(v, name) : -EINVAL;
}

static int
on_forget(struct volume *v, const void *in, size_t)
{
	const struct fuse_forget_in *forget = in;

	volume_forget(&v->tree, asked(v), forget->nlookup);
	return NO_REPLY;
}

static int
on_batch_forget(struct volume *v, const void *in, size_t len)
{
	const struct fuse_batch_forget_in *batch = in;
	const struct fuse_forget_one *one = (const void *)(batch + 1);
	size_t n = (len - sizeof(*batch)) / sizeof(*one);

	for (size_t i = 0; i < batch->count && i < n; i++)
		volume_forget(&v->tree, node_of(v, one[i].nodeid), one[i].nlookup);
	return NO_REPLY;
}

/* Makes a name in the directory that the request names. make makes it in dir, and returns 0; or -1
 * with errno. 0 or -errno. */
static int
make_name(struct volume *v, const char *name, int (*make)(int dir, const char *name,
							   const void *arg), const void *arg)
{
	int r = volume_admits(&v->tree, asked(v)), dir;

	if (r < 0)
		return r;
	dir = volume_open(&v->tree, asked(v), O_PATH | O_DIRECTORY);
	if (dir < 0)
		return dir;
	r = make(dir, name, arg) < 0 ? -errno : 0;
	close(dir);
	if (r == 0)
		volume_note_new(&v->tree);
	return r;
}

static int
volume_make_directory(int dir, const char *name, const void *arg)
{
	return mkdirat(dir, name, *(const mode_t *)arg);
}

static int
make_link(int dir, const char *name, const void *arg)
{
	return symlinkat(arg, dir, name);
}

static int
volume_make_file(int dir, const char *name, const void *arg)
{
	int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			*(const mode_t *)arg);

	return fd < 0 ? -1 : close(fd);
}

static int
on_mkdir(struct volume *v, const void *in, size_t len)
{
	const struct fuse_mkdir_in *mkdir = in;
	const char *at = (const char *)(mkdir + 1), *name;
	const mode_t mode = mode_on_disk(v, mkdir->mode, true);
	int r;

	len -= sizeof(*mkdir);
	name = volume_read_name(&at, &len);
	r = name ? make_name(v, name, volume_make_directory, &mode) : -EINVAL;
	return r < 0 ? r : answer_entry(v, name);
}

static int
on_mknod(struct volume *v, const void *in, size_t len)
{
	const struct fuse_mknod_in *mknod = in;
	const char *at = (const char *)(mknod + 1), *name;
	const mode_t mode = mode_on_disk(v, mknod->mode, false);
	int r;

	len -= sizeof(*mknod);
	name = volume_read_name(&at, &len);
	r = !name ? -EINVAL : !S_ISREG(mknod->mode) ? -EPERM
						    : make_name(v, name, volume_make_file, &mode);
	return r < 0 ? r : answer_entry(v, name);
}

static int
on_symlink(struct volume *v, const void *in, size_t len)
{
	const char *at = in, *name = volume_read_name(&at, &len);
	int r;

	if (!name || len == 0 || !memchr(at, '\0', len))
		return -EINVAL;
	r = make_name(v, name, make_link, at);
	return r < 0 ? r : answer_entry(v, name);
}

static int
on_link(struct volume *, const void *, size_t)
{
	return -EPERM;
}

static int
on_readlink(struct volume *v, const void *, size_t)
{
	int fd = volume_open(&v->tree, asked(v), O_PATH);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = readlinkat(fd, "", v->out, PATH_MAX);
	n = n < 0 ? -errno : n;
	close(fd);
	return (int)n;
}

static int
on_unlink(struct volume *v, const void *in, size_t len)
{
	const char *at = in, *name = volume_read_name(&at, &len);

	return name ? volume_remove(&v->tree, asked(v), name, 0) : -EINVAL;
}

static int
on_rmdir(struct volume *v, const void *in, size_t len)
{
	const char *at = in, *name = volume_read_name(&at, &len);

	return name ? volume_remove(&v->tree, asked(v), name, AT_REMOVEDIR) : -EINVAL;
}

static int
volume_move(struct volume *v, uint64_t to, bool without, const char *at, size_t len)
{
	const char *name = volume_read_name(&at, &len);
	const char *new_name = name ? volume_read_name(&at, &len) : NULL;

	if (!new_name)
		return -EINVAL;
	return volume_rename(&v->tree, asked(v), name, node_of(v, to), new_name, without);
}

static int
on_rename(struct volume *v, const void *in, size_t len)
{
	const struct fuse_rename_in *rename = in;

	return volume_move(v, rename->newdir, false, (const char *)(rename + 1),
			   len - sizeof(*rename));
}

static int
on_rename2(struct volume *v, const void *in, size_t len)
{
	const struct fuse_rename2_in *rename = in;

	if (rename->flags & ~1U)	/* RENAME_NOREPLACE */
		return -EINVAL;
	return volume_move(v, rename->newdir, rename->flags != 0, (const char *)(rename + 1),
			   len - sizeof(*rename));
}

/* ---- attributes of files ---- */

static int
on_getattr(struct volume *v, const void *, size_t)
{
	return answer_attributes(v, asked(v));
}

static int64_t
truncate_to(int fd, void *arg)
{
	return ftruncate(fd, (off_t)*(const uint64_t *)arg) < 0 ? -errno : 0;
}

static struct timespec
time_of(uint32_t valid, uint32_t given, uint32_t now, uint64_t seconds, uint32_t nanoseconds)
{
	struct timespec time = { .tv_nsec = UTIME_OMIT };

	if (valid & now)
		time.tv_nsec = UTIME_NOW;
	else if (valid & given)
		time = (struct timespec){ (time_t)seconds, (long)nanoseconds };
	return time;
}

/* Names the node by its directory, because it may be a symbolic link, which is not opened. */
static int
set_times(struct volume *v, const struct fuse_setattr_in *set)
{
	struct volume_node *node = asked(v);
	const struct timespec times[2] = {
		time_of(set->valid, FATTR_ATIME, FATTR_ATIME_NOW, set->atime, set->atimensec),
		time_of(set->valid, FATTR_MTIME, FATTR_MTIME_NOW, set->mtime, set->mtimensec),
	};
	int dir, r;

	if (node->gone)
		return node->fd < 0 ? -ENOENT : futimens(node->fd, times) < 0 ? -errno : 0;
	dir = volume_open(&v->tree, node->parent ? node->parent : node, O_PATH | O_DIRECTORY);
	if (dir < 0)
		return dir;
	r = utimensat(dir, node->parent ? node->name : ".", times, AT_SYMLINK_NOFOLLOW) < 0
		? -errno : 0;
	close(dir);
	return r;
}

static int
set_mode_or_size(struct volume *v, const struct fuse_setattr_in *set)
{
	struct volume_node *node = asked(v);
	uint64_t size = set->size;
	int fd = node->only_reads && (set->valid & FATTR_SIZE) ? -1 : node->fd, r = 0;
	struct stat st;

	if (fd < 0)
		fd = volume_open(&v->tree, node, set->valid & FATTR_SIZE
				 ? O_RDWR | O_NONBLOCK : O_RDONLY | O_NONBLOCK);
	if (fd < 0)
		return fd == -ELOOP ? -EOPNOTSUPP : fd;
	if (fstat(fd, &st) < 0)
		r = -errno;
	if (r == 0 && (set->valid & FATTR_MODE) &&
	    fchmod(fd, mode_on_disk(v, set->mode, S_ISDIR(st.st_mode))) < 0)
		r = -errno;
	if (r == 0 && (set->valid & FATTR_SIZE))
		r = (int)volume_change(&v->tree, fd, size, false, truncate_to, &size);
	if (fd != node->fd)
		close(fd);
	return r;
}

static int
on_setattr(struct volume *v, const void *in, size_t)
{
	const struct fuse_setattr_in *set = in;
	int r = 0;

	/* A file is its caller's already. */
	if (((set->valid & FATTR_UID) && set->uid != v->head->uid) ||
	    ((set->valid & FATTR_GID) && set->gid != v->head->gid))
		return -EPERM;
	if (set->valid & (FATTR_MODE | FATTR_SIZE))
		r = set_mode_or_size(v, set);
	if (r == 0 && (set->valid & (FATTR_ATIME | FATTR_MTIME | FATTR_ATIME_NOW |
				     FATTR_MTIME_NOW)))
		r = set_times(v, set);
	return r < 0 ? r : answer_attributes(v, asked(v));
}

/* The size of a folder is that of its disk. */
static int
folder_statfs(int root, struct fuse_statfs_out *out)
{
	struct statfs fs;

	if (fstatfs(root, &fs) < 0)
		return -errno;
	out->st.bsize = out->st.frsize = (uint32_t)fs.f_bsize;
	out->st.blocks = fs.f_blocks;
	out->st.bfree = fs.f_bfree;
	out->st.bavail = fs.f_bavail;
	out->st.files = fs.f_files;
	out->st.ffree = fs.f_ffree;
	return sizeof(*out);
}

static int
on_statfs(struct volume *v, const void *, size_t)
{
	const struct volume_tree *tree = &v->tree;
	const uint64_t bytes_max = tree->terms.bytes_max, files_max = tree->terms.files_max;
	struct fuse_statfs_out *out = (void *)v->out;

	memset(out, 0, sizeof(*out));
	out->st.namelen = NAME_MAX;
	if (tree->terms.is_folder)
		return folder_statfs(tree->root, out);
	out->st.bsize = out->st.frsize = VOLUME_BLOCK;
	out->st.blocks = bytes_max / VOLUME_BLOCK;
	out->st.bfree = tree->bytes < bytes_max ? (bytes_max - tree->bytes) / VOLUME_BLOCK : 0;
	out->st.bavail = out->st.bfree;
	out->st.files = files_max;
	out->st.ffree = tree->files < files_max ? files_max - tree->files : 0;
	return sizeof(*out);
}

/* ---- open files ---- */

/* May the kernel use what it has read of the file before? */
static uint32_t
open_flags(const struct volume *v)
{
	return v->tree.terms.is_folder ? 0 : FOPEN_KEEP_CACHE;
}

static int
on_open(struct volume *v, const void *in, size_t)
{
	const struct fuse_open_in *open = in;
	struct fuse_open_out *out = (void *)v->out;
	int r = volume_take(&v->tree, asked(v), (int)open->flags);

	if (r < 0)
		return r;
	*out = (struct fuse_open_out){ .open_flags = open_flags(v) };
	return sizeof(*out);
}

static int
on_create(struct volume *v, const void *in, size_t len)
{
	const struct fuse_create_in *create = in;
	const char *at = (const char *)(create + 1), *name;
	const mode_t mode = mode_on_disk(v, create->mode, false);
	struct fuse_open_out *open;
	struct volume_node *node;
	int r, n;

	len -= sizeof(*create);
	name = volume_read_name(&at, &len);
	if (!name)
		return -EINVAL;
	r = make_name(v, name, volume_make_file, &mode);
	if (r < 0 && (r != -EEXIST || (create->flags & O_EXCL)))
		return r;
	n = answer_entry(v, name);
	if (n < 0)
		return n;
	node = node_of(v, ((const struct fuse_entry_out *)(void *)v->out)->nodeid);
	r = volume_take(&v->tree, node, (int)create->flags);
	if (r < 0) {
		volume_forget(&v->tree, node, 1);
		return r;
	}
	open = (void *)(v->out + n);
	*open = (struct fuse_open_out){ .open_flags = open_flags(v) };
	return n + (int)sizeof(*open);
}

static int
on_release(struct volume *v, const void *, size_t)
{
	volume_give(&v->tree, asked(v));
	return 0;
}

static int
volume_on_read(struct volume *v, const void *in, size_t)
{
	const struct fuse_read_in *read = in;
	const size_t most = read->size < DATA_MAX ? read->size : DATA_MAX;
	ssize_t n = asked(v)->fd < 0 ? -1
		: pread(asked(v)->fd, v->out, most, (off_t)read->offset);

	return n < 0 ? (asked(v)->fd < 0 ? -EBADF : -errno) : (int)n;
}

struct piece {
	const void *at;
	size_t len;
	uint64_t offset;
};

static int64_t
write_piece(int fd, void *arg)
{
	const struct piece *piece = arg;
	ssize_t n = pwrite(fd, piece->at, piece->len, (off_t)piece->offset);

	return n < 0 ? -errno : n;
}

static int
on_write(struct volume *v, const void *in, size_t len)
{
	const struct fuse_write_in *write = in;
	struct fuse_write_out *out = (void *)v->out;
	struct piece piece = { write + 1, write->size, write->offset };
	int64_t n;

	if (write->size > len - sizeof(*write) || asked(v)->fd < 0)
		return asked(v)->fd < 0 ? -EBADF : -EINVAL;
	if (piece.offset > INT64_MAX - DATA_MAX)
		return -EFBIG;
	n = volume_change(&v->tree, asked(v)->fd, piece.offset + piece.len, true, write_piece,
			  &piece);
	if (n < 0)
		return (int)n;
	*out = (struct fuse_write_out){ .size = (uint32_t)n };
	return sizeof(*out);
}

static int64_t
allocate_piece(int fd, void *arg)
{
	const struct piece *piece = arg;

	return fallocate(fd, 0, (off_t)piece->offset, (off_t)piece->len) < 0 ? -errno : 0;
}

static int
on_fallocate(struct volume *v, const void *in, size_t len)
{
	const struct fuse_fallocate_in *allocate = in;
	struct piece piece = { NULL, allocate->length, allocate->offset };

	(void)len;
	if (allocate->mode != 0)
		return -EOPNOTSUPP;
	if (asked(v)->fd < 0 || piece.offset > INT64_MAX || piece.len > INT64_MAX - piece.offset)
		return asked(v)->fd < 0 ? -EBADF : -EFBIG;
	return (int)volume_change(&v->tree, asked(v)->fd, piece.offset + piece.len, true,
				  allocate_piece, &piece);
}

/* ---- directories ---- */

static int
on_opendir(struct volume *v, const void *, size_t)
{
	struct fuse_open_out *out = (void *)v->out;
	int fd = v->lists == LISTS_MAX
		? -ENFILE : volume_open(&v->tree, asked(v), O_RDONLY | O_DIRECTORY);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);

	if (fd < 0)
		return fd == -EMFILE ? -ENFILE : fd;
	if (!list) {
		close(fd);
		return -ENOMEM;
	}
	v->lists++;
	*out = (struct fuse_open_out){ .fh = (uintptr_t)list };
	return sizeof(*out);
}

static int
on_readdir(struct volume *v, const void *in, size_t)
{
	const struct fuse_read_in *read = in;
	DIR *list = (DIR *)(uintptr_t)read->fh;
	const size_t most = read->size < DATA_MAX ? read->size : DATA_MAX;
	size_t used = 0;
	struct dirent *entry;

	seekdir(list, (long)read->offset);
	while (errno = 0, (entry = readdir(list))) {
		const size_t name = strlen(entry->d_name);
		const size_t size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + name);
		struct fuse_dirent *to = (void *)(v->out + used);

		if (used + size > most)
			break;
		if (entry->d_type != DT_DIR && entry->d_type != DT_REG && entry->d_type != DT_LNK &&
		    entry->d_type != DT_UNKNOWN)
			continue;
		memset(to, 0, size);
		to->ino = entry->d_ino;
		to->off = (uint64_t)telldir(list);
		to->namelen = (uint32_t)name;
		to->type = entry->d_type;
		memcpy(to->name, entry->d_name, name);
		used += size;
	}
	return !entry && errno != 0 ? -errno : (int)used;
}

static int
on_releasedir(struct volume *v, const void *in, size_t)
{
	const struct fuse_release_in *release = in;

	closedir((DIR *)(uintptr_t)release->fh);
	v->lists--;
	return 0;
}

/* ---- the connection ---- */

static int
on_init(struct volume *v, const void *in, size_t)
{
	const struct fuse_init_in *init = in;
	struct fuse_init_out *out = (void *)v->out;

	if (init->major != FUSE_KERNEL_VERSION || init->minor < MINOR_LEAST) {
		v->over = true;
		return -EPROTO;
	}
	memset(out, 0, sizeof(*out));
	out->major = FUSE_KERNEL_VERSION;
	out->minor = init->minor < FUSE_KERNEL_MINOR_VERSION ? init->minor
							      : FUSE_KERNEL_MINOR_VERSION;
	out->max_readahead = init->max_readahead;
	/* Without a write-back cache: a write reaches this process before it returns, so the
	 * writer learns that the volume is full. */
	out->flags = init->flags & (FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_MAX_PAGES |
				    (v->tree.terms.is_folder ? FUSE_AUTO_INVAL_DATA
							     : FUSE_CACHE_SYMLINKS));
	out->max_background = 16;
	out->congestion_threshold = 12;
	out->max_write = DATA_MAX;
	out->max_pages = PAGES;
	out->time_gran = 1;
	return sizeof(*out);
}

static int
on_interrupt(struct volume *, const void *, size_t)
{
	return NO_REPLY;
}

static int
on_destroy(struct volume *v, const void *, size_t)
{
	v->over = true;
	return 0;
}

/* The requests that are handled. Every other one gets ENOSYS: then the kernel does without it, or
 * the call of a script fails. */
static const struct {
	handler *handle;
	size_t least;		/* bytes behind the head */
} rows[] = {
	[FUSE_INIT] = { on_init, 16 },
	[FUSE_DESTROY] = { on_destroy, 0 },
	[FUSE_LOOKUP] = { on_lookup, 2 },
	[FUSE_FORGET] = { on_forget, sizeof(struct fuse_forget_in) },
	[FUSE_BATCH_FORGET] = { on_batch_forget, sizeof(struct fuse_batch_forget_in) },
	[FUSE_GETATTR] = { on_getattr, 0 },
	[FUSE_SETATTR] = { on_setattr, sizeof(struct fuse_setattr_in) },
	[FUSE_READLINK] = { on_readlink, 0 },
	[FUSE_SYMLINK] = { on_symlink, 4 },
	[FUSE_LINK] = { on_link, 0 },
	[FUSE_MKNOD] = { on_mknod, sizeof(struct fuse_mknod_in) },
	[FUSE_MKDIR] = { on_mkdir, sizeof(struct fuse_mkdir_in) },
	[FUSE_UNLINK] = { on_unlink, 2 },
	[FUSE_RMDIR] = { on_rmdir, 2 },
	[FUSE_RENAME] = { on_rename, sizeof(struct fuse_rename_in) },
	[FUSE_RENAME2] = { on_rename2, sizeof(struct fuse_rename2_in) },
	[FUSE_STATFS] = { on_statfs, 0 },
	[FUSE_OPEN] = { on_open, sizeof(struct fuse_open_in) },
	[FUSE_CREATE] = { on_create, sizeof(struct fuse_create_in) },
	[FUSE_READ] = { volume_on_read, sizeof(struct fuse_read_in) },
	[FUSE_WRITE] = { on_write, sizeof(struct fuse_write_in) },
	[FUSE_FALLOCATE] = { on_fallocate, sizeof(struct fuse_fallocate_in) },
	[FUSE_RELEASE] = { on_release, 0 },
	[FUSE_OPENDIR] = { on_opendir, 0 },
	[FUSE_READDIR] = { on_readdir, sizeof(struct fuse_read_in) },
	[FUSE_RELEASEDIR] = { on_releasedir, sizeof(struct fuse_release_in) },
	[FUSE_INTERRUPT] = { on_interrupt, 0 },
};

static void
volume_handle(struct volume *v, const char *in, size_t len)
{
	const struct fuse_in_header *head = (const void *)in;
	struct fuse_out_header out = { .len = sizeof(out), .unique = head->unique };
	struct iovec part[2] = { { &out, sizeof(out) }, { v->out, 0 } };
	const uint32_t code = head->opcode;
	int r = -ENOSYS;

	v->head = head;
	len -= sizeof(*head);
	if (code < sizeof(rows) / sizeof(rows[0]) && rows[code].handle)
		r = len < rows[code].least ? -EINVAL
					   : rows[code].handle(v, in + sizeof(*head), len);
	if (r == NO_REPLY)
		return;
	/* The memory that the host lacks is not that of the script, which would get the blame. */
	out.error = r == -ENOMEM ? -EIO : r < 0 ? r : 0;
	part[1].iov_len = r > 0 ? (size_t)r : 0;
	out.len += (uint32_t)part[1].iov_len;
	/* An error: the connection has ended, which the next read reports. */
	while (writev(v->fuse, part, 2) < 0 && errno == EINTR)
		;
}

int
volume_serve(int fuse, int root, const struct volume_terms *terms,
	     void (*ready)(void *arg, int error), void *arg)
{
	struct volume *v = calloc(1, sizeof(*v));
	char *in = malloc(IN_MAX), *out = malloc(OUT_MAX);
	int r = v && in && out ? 0 : -ENOMEM;

	umask(0);
	if (r == 0) {
		v->fuse = fuse;
		v->out = out;
		r = volume_tree_open(&v->tree, root, terms);
	}
	ready(arg, r);
	while (r == 0 && !v->over) {
		ssize_t n = read(fuse, in, IN_MAX);

		if (n >= (ssize_t)sizeof(struct fuse_in_header))
			volume_handle(v, in, (size_t)n);
		else if (n < 0 && errno != ENOENT && errno != EINTR && errno != EAGAIN)
			r = errno == ENODEV ? 1 : -errno;
		else if (n >= 0)
			r = -EPROTO;
	}
	if (r >= 0 && v)
		volume_tree_close(&v->tree);
	free(in);
	free(out);
	free(v);
	return r < 0 ? r : 0;
}
