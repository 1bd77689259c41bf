/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a volume, for the process that serves it: the nodes that the kernel knows, their
 * paths in the directory on the host's disk, and how much of the volume's size is used.
 *
 * Only this process changes the directory. There are directories, regular files and symbolic links,
 * each with one name; so a parent and a name identify a node. No symbolic link is followed on the
 * host.
 *
 * A folder of a user is served in the same way, but it has no size, and other processes change it
 * at any time: nodes are looked up by their paths each time, without following links.
 *
 * A file counts with its size in whole blocks, holes included, and each name counts as one more
 * block. So the disk never holds more than is counted.
 */
#ifndef KEEPER_VOLUME_TREE_H
#define KEEPER_VOLUME_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define VOLUME_BLOCK 4096
#define VOLUME_DEPTH_MAX 256		/* directories below each other */
#define VOLUME_BUCKETS 4096

/* A file, directory or link that the kernel holds. Its address is its number for the kernel. */
struct volume_node {
	struct volume_node *parent;	/* NULL: it is the top, or it is gone */
	struct volume_node *next;	/* in its bucket */
	char *name;
	uint64_t generation;
	uint64_t lookups;		/* how many the kernel has not forgotten (FUSE_FORGET) */
	unsigned int children;		/* how many nodes have this parent */
	unsigned int opens;		/* users of fd */
	int fd;				/* for reading and writing; -1: it is not open */
	bool only_reads;		/* fd, of a file that this user may not write to */
	ino_t inode;			/* when it was looked up last */
	bool gone;			/* it has no name any more */
};

/* What is served. */
struct volume_terms {
	uint64_t bytes_max, files_max;	/* of a volume */
	bool is_folder;			/* of a user; otherwise a volume */
	bool is_writable;		/* a folder */
};

struct volume_tree {
	int root;			/* the directory; borrowed */
	struct volume_terms terms;
	uint64_t bytes, files;		/* files: names */
	uint64_t generation;
	struct volume_node top;
	struct volume_node *bucket[VOLUME_BUCKETS];
};

/* Counts the files of the directory, of a volume. root: borrowed. 0 or -errno; -ENOSYS: the kernel
 * cannot open files of a folder without following links. */
int volume_tree_open(struct volume_tree *tree, int root, const struct volume_terms *terms);
void volume_tree_close(struct volume_tree *tree);

/* Opens a node. It must not be a link unless flags has O_PATH. A descriptor, or -errno; -ENOENT: it
 * is gone. */
int volume_open(const struct volume_tree *tree, const struct volume_node *node, int flags);

int volume_stat(const struct volume_tree *tree, const struct volume_node *node, struct stat *st_r);

/* Finds the node of a name in a directory, and counts a lookup. 0 or -errno. */
int volume_look(struct volume_tree *tree, struct volume_node *parent, const char *name,
		struct volume_node **node_r, struct stat *st_r);

/* Subtracts lookups. A node that is not needed any more is freed. */
void volume_forget(struct volume_tree *tree, struct volume_node *node, uint64_t lookups);

/* May one more name be made below parent? 0, -ENOSPC or -ENAMETOOLONG. */
int volume_admits(const struct volume_tree *tree, const struct volume_node *parent);

/* Counts a name that was made. */
void volume_note_new(struct volume_tree *tree);

/* Removes a name. flags: of unlinkat(2). A file that is open counts until it is closed. 0 or
 * -errno. */
int volume_remove(struct volume_tree *tree, struct volume_node *parent, const char *name,
		  int flags);

/* Moves a name. A file that has the new name is replaced. without: if there is such a file, nothing
 * changes and the result is -EEXIST. 0 or -errno. */
int volume_rename(struct volume_tree *tree, struct volume_node *from, const char *name,
		  struct volume_node *to, const char *new_name, bool without);

/* Add and remove a user of node->fd, which is open while it has users. flags: those of open(2). 0
 * or -errno. */
int volume_take(struct volume_tree *tree, struct volume_node *node, int flags);
void volume_give(struct volume_tree *tree, struct volume_node *node);

/* Changes the content of a file. If there is room for a file of end bytes, calls change, and then
 * counts the new size. change may make the file at most end bytes long. fills: change may fill
 * holes with blocks. Returns the result of change; or -errno; -ENOSPC: there is no room, and change
 * was not called. */
int64_t volume_change(struct volume_tree *tree, int fd, uint64_t end, bool fills,
		      int64_t (*change)(int fd, void *arg), void *arg);

#endif
