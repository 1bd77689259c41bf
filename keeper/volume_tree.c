/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the process that serves a volume (keeper/volume.h), in its jail.
 * Owns:    the nodes, and the descriptors of files that are open.
 * Reads:   names that scripts have chosen. The kernel does not pass on "..", or a name with a
 * slash. */
#include "keeper/volume_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"

/* The disk of the host is never filled to its last bytes. */
#define DISK_RESERVE (256ULL * 1024 * 1024)
#define INODES_RESERVED 20		/* a twentieth of them */

static uint64_t
blocks_of(uint64_t size)
{
	return (size + VOLUME_BLOCK - 1) / VOLUME_BLOCK * VOLUME_BLOCK;
}

static uint64_t
cost_of(const struct stat *st)
{
	return VOLUME_BLOCK + (S_ISREG(st->st_mode) ? blocks_of((uint64_t)st->st_size) : 0);
}

static bool
is_ours(const struct stat *st)
{
	return S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISLNK(st->st_mode);
}

/* ---- the existing files ---- */

static bool
is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

struct sum {
	uint64_t bytes, files;
	unsigned int depth;		/* of the directories below */
};

/* Adds what is below dir, which is closed. 0 or -errno. */
static int
add_up(int dir, unsigned int depth, struct sum *sum)
{
	DIR *list = fdopendir(dir);
	struct dirent *entry;
	int r = 0;

	if (!list) {
		r = -errno;
		close(dir);
		return r;
	}
	if (depth > sum->depth)
		sum->depth = depth;
	while (r == 0 && (errno = 0, entry = readdir(list))) {
		struct stat st;
		int fd;

		if (is_dots(entry->d_name))
			continue;
		if (fstatat(dirfd(list), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			r = -errno;
			break;
		}
		sum->files++;
		sum->bytes += cost_of(&st);
		if (!S_ISDIR(st.st_mode))
			continue;
		fd = depth > 2 * VOLUME_DEPTH_MAX ? -1 :
		     openat(dirfd(list), entry->d_name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = fd >= 0 ? add_up(fd, depth + 1, sum) :
		    depth > 2 * VOLUME_DEPTH_MAX ? -ELOOP : -errno;
	}
	if (r == 0 && !entry && errno != 0)
		r = -errno;
	closedir(list);
	return r;
}

/* Opens a path below the directory, by no link of any kind, and in no other mount: such as a /proc
 * that is mounted below. A descriptor or -1 with errno. */
static int
open_beneath(int root, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned int)flags,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
			   RESOLVE_NO_XDEV,
	};

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

int
volume_tree_open(struct volume_tree *tree, int root, const struct volume_terms *terms)
{
	struct sum sum = { 0 };
	int fd = terms->is_folder ? open_beneath(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
				  : openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : 0;

	if (r == 0 && terms->is_folder)
		close(fd);
	else if (r == 0)
		r = add_up(fd, 0, &sum);
	memset(tree, 0, sizeof(*tree));
	tree->root = root;
	tree->terms = *terms;
	tree->bytes = sum.bytes;
	tree->files = sum.files;
	tree->top.fd = -1;
	tree->top.lookups = 1;
	return r;
}

/* ---- nodes ---- */

static struct volume_node **
bucket_of(struct volume_tree *tree, const struct volume_node *parent, const char *name)
{
	uint64_t hash = (uintptr_t)parent >> 4;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3ULL;
	return &tree->bucket[(hash ^ hash >> 32) % VOLUME_BUCKETS];
}

static struct volume_node *
tree_find(struct volume_tree *tree, const struct volume_node *parent, const char *name)
{
	struct volume_node *node = *bucket_of(tree, parent, name);

	while (node && (node->parent != parent || strcmp(node->name, name) != 0))
		node = node->next;
	return node;
}

static void
put_in(struct volume_tree *tree, struct volume_node *node, struct volume_node *parent)
{
	struct volume_node **bucket = bucket_of(tree, parent, node->name);

	node->parent = parent;
	parent->children++;
	node->next = *bucket;
	*bucket = node;
}

static void
free_unneeded(struct volume_tree *tree, struct volume_node *node)
{
	while (node != &tree->top && node->lookups == 0 && node->children == 0 &&
	       node->opens == 0) {
		struct volume_node *parent = node->parent;
		struct volume_node **at = bucket_of(tree, parent, node->name);

		while (*at != node)
			at = &(*at)->next;
		*at = node->next;
		free(node->name);
		free(node);
		if (!parent)
			return;
		parent->children--;
		node = parent;
	}
}

/* Takes the node out of its directory, which may be freed with that. */
static void
take_out(struct volume_tree *tree, struct volume_node *node)
{
	struct volume_node **at = bucket_of(tree, node->parent, node->name);
	struct volume_node *parent = node->parent;

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	node->parent = NULL;
	parent->children--;
	free_unneeded(tree, parent);
}

static struct volume_node *
tree_make(struct volume_tree *tree, struct volume_node *parent, const char *name)
{
	struct volume_node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	node->name = strdup(name);
	if (!node->name) {
		free(node);
		return NULL;
	}
	node->fd = -1;
	node->generation = ++tree->generation;
	put_in(tree, node, parent);
	return node;
}

void
volume_forget(struct volume_tree *tree, struct volume_node *node, uint64_t lookups)
{
	node->lookups -= lookups < node->lookups ? lookups : node->lookups;
	free_unneeded(tree, node);
}

void
volume_tree_close(struct volume_tree *tree)
{
	for (size_t i = 0; i < VOLUME_BUCKETS; i++)
		while (tree->bucket[i]) {
			struct volume_node *node = tree->bucket[i];

			tree->bucket[i] = node->next;
			if (node->fd >= 0)
				close(node->fd);
			free(node->name);
			free(node);
		}
}

/* ---- paths ---- */

/* Writes the path of the node to the end of text, which has PATH_MAX bytes. Returns where the path
 * begins, or NULL. */
static char *
write_path(const struct volume_node *node, char *text)
{
	char *at = text + PATH_MAX - 1;

	*at = '\0';
	if (!node->parent)
		return strcpy(at - 1, ".");
	for (; node->parent; node = node->parent) {
		size_t len = strlen(node->name);

		if ((size_t)(at - text) < len + 1)
			return NULL;
		if (*at != '\0')
			*--at = '/';
		at -= len;
		memcpy(at, node->name, len);
	}
	return at;
}

int
volume_open(const struct volume_tree *tree, const struct volume_node *node, int flags)
{
	char text[PATH_MAX], *path;
	int fd;

	if (node->gone)
		return -ENOENT;
	path = write_path(node, text);
	if (!path)
		return -ENAMETOOLONG;
	/* openat2 could refuse links on the way, but units with RestrictSUIDSGID= have none. In a
	 * volume there are no links on the way: nodes with children are directories, only this
	 * process changes them, and the root of its file tree is this directory. */
	flags |= O_CLOEXEC | O_NOFOLLOW;
	fd = tree->terms.is_folder ? open_beneath(tree->root, path, flags)
				   : openat(tree->root, path, flags);
	return fd < 0 ? -errno : fd;
}

static int
tree_open_directory(const struct volume_tree *tree, const struct volume_node *node)
{
	return volume_open(tree, node, O_PATH | O_DIRECTORY);
}

int
volume_stat(const struct volume_tree *tree, const struct volume_node *node, struct stat *st_r)
{
	own_fd int fd = -1;

	if (node->fd >= 0)
		return fstat(node->fd, st_r) < 0 ? -errno : 0;
	fd = volume_open(tree, node, O_PATH);
	return fd < 0 ? fd : fstat(fd, st_r) < 0 ? -errno : 0;
}

/* Makes the node one that has no name. From now on it is listed without a parent: no look-up finds
 * it, and it is freed with the others. */
static void
detach(struct volume_tree *tree, struct volume_node *node)
{
	struct volume_node **at;

	node->gone = true;
	take_out(tree, node);
	at = bucket_of(tree, NULL, node->name);
	node->next = *at;
	*at = node;
	free_unneeded(tree, node);
}

int
volume_look(struct volume_tree *tree, struct volume_node *parent, const char *name,
	    struct volume_node **node_r, struct stat *st_r)
{
	own_fd int dir = tree_open_directory(tree, parent);

	if (dir < 0)
		return dir;
	if (fstatat(dir, name, st_r, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!is_ours(st_r))
		return -ENOENT;
	*node_r = tree_find(tree, parent, name);
	/* Another process has put another file there. */
	if (*node_r && tree->terms.is_folder && (*node_r)->opens > 0 &&
	    (*node_r)->inode != st_r->st_ino) {
		detach(tree, *node_r);
		*node_r = NULL;
	}
	if (!*node_r)
		*node_r = tree_make(tree, parent, name);
	if (!*node_r)
		return -ENOMEM;
	(*node_r)->inode = st_r->st_ino;
	return 0;
}

/* ---- names ---- */

static unsigned int
depth_of(const struct volume_node *node)
{
	unsigned int depth = 0;

	for (; node->parent; node = node->parent)
		depth++;
	return depth;
}

/* Do the volume and the disk have room for this many more bytes? */
static int
tree_has_room(const struct volume_tree *tree, uint64_t bytes)
{
	struct statfs fs;

	if (!tree->terms.is_folder && (tree->bytes > tree->terms.bytes_max ||
				       bytes > tree->terms.bytes_max - tree->bytes))
		return -ENOSPC;
	if (fstatfs(tree->root, &fs) < 0)
		return -errno;
	return (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize < DISK_RESERVE + bytes ? -ENOSPC : 0;
}

/* The disk of the host is never left without inodes for others. A file system that makes inodes
 * when it needs them reports 0 as their number, and is not checked. */
static int
has_inodes(const struct volume_tree *tree)
{
	struct statfs fs;

	if (fstatfs(tree->root, &fs) < 0)
		return -errno;
	return fs.f_files > 0 && fs.f_ffree < fs.f_files / INODES_RESERVED ? -ENOSPC : 0;
}

int
volume_admits(const struct volume_tree *tree, const struct volume_node *parent)
{
	int r = has_inodes(tree);

	if (depth_of(parent) >= VOLUME_DEPTH_MAX)
		return -ENAMETOOLONG;
	if (r < 0)
		return r;
	return !tree->terms.is_folder && tree->files >= tree->terms.files_max
		? -ENOSPC : tree_has_room(tree, VOLUME_BLOCK);
}

void
volume_note_new(struct volume_tree *tree)
{
	tree->files++;
	tree->bytes += VOLUME_BLOCK;
}

static void
give_back(struct volume_tree *tree, uint64_t files, uint64_t bytes)
{
	tree->files -= files < tree->files ? files : tree->files;
	tree->bytes -= bytes < tree->bytes ? bytes : tree->bytes;
}

/* To be called when a name was removed. st: what fstatat() gave for it before. */
static void
note_removed(struct volume_tree *tree, struct volume_node *node, const struct stat *st)
{
	if (!node || node->opens == 0)
		give_back(tree, 1, cost_of(st));
	if (node)
		detach(tree, node);
}

int
volume_remove(struct volume_tree *tree, struct volume_node *parent, const char *name, int flags)
{
	own_fd int dir = tree_open_directory(tree, parent);
	struct stat st;

	if (dir < 0)
		return dir;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || unlinkat(dir, name, flags) < 0)
		return -errno;
	note_removed(tree, tree_find(tree, parent, name), &st);
	return 0;
}

/* Checks that a file, with everything below it if it is a directory, can be moved to the directory
 * "to" without exceeding VOLUME_DEPTH_MAX. 0, -ENAMETOOLONG or another -errno. */
static int
check_depth(const struct volume_tree *tree, int dir, const char *name, const struct stat *st,
	    const struct volume_node *to)
{
	struct sum sum = { 0 };
	int fd, r;

	if (!S_ISDIR(st->st_mode) || tree->terms.is_folder)
		return 0;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = fd < 0 ? -errno : add_up(fd, 0, &sum);
	if (r < 0)
		return r;
	return depth_of(to) + 1 + sum.depth > VOLUME_DEPTH_MAX ? -ENAMETOOLONG : 0;
}

int
volume_rename(struct volume_tree *tree, struct volume_node *from, const char *name,
	      struct volume_node *to, const char *new_name, bool without)
{
	own_fd int dir = tree_open_directory(tree, from);
	own_fd int new_dir = tree_open_directory(tree, to);
	struct volume_node *node, *old;
	struct stat st, old_st;
	bool replaces;
	char *copy;
	int r = 0;

	if (dir < 0 || new_dir < 0)
		return dir < 0 ? dir : new_dir;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	replaces = fstatat(new_dir, new_name, &old_st, AT_SYMLINK_NOFOLLOW) == 0;
	if (from == to && strcmp(name, new_name) == 0)
		return without ? -EEXIST : 0;
	if (from != to)
		r = check_depth(tree, dir, name, &st, to);
	copy = r == 0 ? strdup(new_name) : NULL;
	if (!copy)
		return r < 0 ? r : -ENOMEM;
	/* A direct call: without flags the C library's renameat2() calls renameat(), which the
	 * filter refuses. */
	if (syscall(SYS_renameat2, dir, name, new_dir, new_name,
		    without ? RENAME_NOREPLACE : 0) < 0) {
		free(copy);
		return -errno;
	}
	old = tree_find(tree, to, new_name);
	if (replaces)
		note_removed(tree, old, &old_st);
	node = tree_find(tree, from, name);
	if (!node) {
		free(copy);
		return 0;
	}
	/* The kernel holds both directories, so neither is freed with this. */
	take_out(tree, node);
	free(node->name);
	node->name = copy;
	put_in(tree, node, to);
	return 0;
}

/* ---- open files ---- */

/* Opens a file for reading and writing; one of a folder only for reading, if that is all that its
 * user wants or may do. */
static int
open_file(const struct volume_tree *tree, const struct volume_node *node, bool writes,
	  bool *only_reads_r)
{
	int fd = volume_open(tree, node, O_RDWR | O_NONBLOCK);
	struct stat st;

	*only_reads_r = tree->terms.is_folder && !writes &&
			(fd == -EACCES || fd == -EPERM || fd == -EROFS || fd == -ETXTBSY);
	if (*only_reads_r)
		fd = volume_open(tree, node, O_RDONLY | O_NONBLOCK);
	/* Another process may have put something else there. */
	if (fd >= 0 && tree->terms.is_folder && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		return -ENOENT;
	}
	return fd == -EMFILE ? -ENFILE : fd;
}

int
volume_take(struct volume_tree *tree, struct volume_node *node, int flags)
{
	bool writes = (flags & O_ACCMODE) != O_RDONLY, only_reads;
	int fd;

	if (node->fd < 0 || (writes && node->only_reads)) {
		fd = open_file(tree, node, writes, &only_reads);
		if (fd < 0)
			return fd;
		if (node->fd >= 0)
			close(node->fd);
		node->fd = fd;
		node->only_reads = only_reads;
	}
	node->opens++;
	return 0;
}

void
volume_give(struct volume_tree *tree, struct volume_node *node)
{
	struct stat st;

	if (node->opens == 0 || --node->opens > 0)
		return;
	if (node->gone && fstat(node->fd, &st) == 0)
		give_back(tree, 1, cost_of(&st));
	close(node->fd);
	node->fd = -1;
	free_unneeded(tree, node);
}

/* A hole counts already for the volume, but the disk has no block for it yet. */
static bool
has_holes(const struct stat *st)
{
	return (uint64_t)st->st_blocks * 512 < (uint64_t)st->st_size;
}

int64_t
volume_change(struct volume_tree *tree, int fd, uint64_t end, bool fills,
	      int64_t (*change)(int fd, void *arg), void *arg)
{
	struct stat before, after;
	uint64_t had, wants;
	int64_t done;
	int r;

	if (end > INT64_MAX)
		return -EFBIG;
	if (fstat(fd, &before) < 0)
		return -errno;
	had = blocks_of((uint64_t)before.st_size);
	wants = blocks_of(end);
	r = wants > had ? tree_has_room(tree, wants - had) :
	    fills && has_holes(&before) ? tree_has_room(tree, 0) : 0;
	if (r < 0)
		return r;
	done = change(fd, arg);
	if (fstat(fd, &after) < 0)
		return -errno;
	tree->bytes += blocks_of((uint64_t)after.st_size);
	give_back(tree, 0, had);
	return done;
}
