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

int
volume_tree_open(struct volume_tree *tree, int root, uint64_t bytes_max, uint64_t files_max)
{
	struct sum sum = { 0 };
	int fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : add_up(fd, 0, &sum);

	memset(tree, 0, sizeof(*tree));
	tree->root = root;
	tree->bytes_max = bytes_max;
	tree->files_max = files_max;
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
	/* openat2 could refuse links on the way, but units with RestrictSUIDSGID= have none. There
	 * are no links on the way: nodes with children are directories, only this process changes
	 * them, and the root of its file tree is this directory. */
	fd = openat(tree->root, path, flags | O_CLOEXEC | O_NOFOLLOW);
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
	if (!*node_r)
		*node_r = tree_make(tree, parent, name);
	return *node_r ? 0 : -ENOMEM;
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

	if (tree->bytes > tree->bytes_max || bytes > tree->bytes_max - tree->bytes)
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
	return tree->files >= tree->files_max ? -ENOSPC : tree_has_room(tree, VOLUME_BLOCK);
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
	struct volume_node **at;

	if (!node || node->opens == 0)
		give_back(tree, 1, cost_of(st));
	if (!node)
		return;
	node->gone = true;
	take_out(tree, node);
	/* From now on the node is listed without a parent: no look-up finds it, and it is freed
	 * with the others. */
	at = bucket_of(tree, NULL, node->name);
	node->next = *at;
	*at = node;
	free_unneeded(tree, node);
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
check_depth(int dir, const char *name, const struct stat *st, const struct volume_node *to)
{
	struct sum sum = { 0 };
	int fd, r;

	if (!S_ISDIR(st->st_mode))
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
		r = check_depth(dir, name, &st, to);
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

int
volume_take(struct volume_tree *tree, struct volume_node *node)
{
	if (node->fd < 0) {
		int fd = volume_open(tree, node, O_RDWR | O_NONBLOCK);

		if (fd < 0)
			return fd == -EMFILE ? -ENFILE : fd;
		node->fd = fd;
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
