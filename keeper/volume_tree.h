/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a volume as the process sees them that serves it: the nodes that the kernel knows,
 * their paths in the directory on the host's disk, and what of the volume's size is used.
 *
 * That process is the only one that changes the directory. There are directories, regular files
 * and symbolic links, each with one name; so a node is its parent and a name. The host's kernel
 * follows no link for it.
 *
 * A file counts with its size in whole blocks, holes included, and each name with one block more,
 * so the disk holds no more than is counted.
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
	struct volume_node *parent;	/* NULL: the top, or it is gone */
	struct volume_node *next;	/* of its bucket */
	char *name;
	uint64_t generation;
	uint64_t lookups;		/* that the kernel has not forgotten */
	unsigned int children;		/* nodes with this parent */
	unsigned int opens;
	int fd;				/* for reading and writing, while it is open; else -1 */
	bool gone;			/* has no name any more */
};

struct volume_tree {
	int root;			/* the directory; borrowed */
	uint64_t bytes_max, bytes;
	uint64_t files_max, files;	/* names */
	uint64_t generation;
	struct volume_node top;
	struct volume_node *bucket[VOLUME_BUCKETS];
};

/* Counts what is there. 0 or -errno. */
int volume_tree_open(struct volume_tree *tree, int root, uint64_t bytes_max, uint64_t files_max);
void volume_tree_close(struct volume_tree *tree);

/* Opens a node, which is no link unless flags has O_PATH. A descriptor or -errno; -ENOENT: it is
 * gone. */
int volume_open(const struct volume_tree *tree, const struct volume_node *node, int flags);

int volume_stat(const struct volume_tree *tree, const struct volume_node *node, struct stat *st_r);

/* The node of a name in a directory. 0 or -errno. */
int volume_look(struct volume_tree *tree, struct volume_node *parent, const char *name,
		struct volume_node **node_r, struct stat *st_r);

/* Takes lookups away; a node that nobody needs is freed. */
void volume_forget(struct volume_tree *tree, struct volume_node *node, uint64_t lookups);

/* Whether one name more fits below parent: 0, -ENOSPC or -ENAMETOOLONG. */
int volume_admits(const struct volume_tree *tree, const struct volume_node *parent);

/* A name was made; counts it. */
void volume_note_new(struct volume_tree *tree);

/* Removes a name with unlinkat's flags. A file that is open counts until it is closed. */
int volume_remove(struct volume_tree *tree, struct volume_node *parent, const char *name,
		  int flags);

/* Moves a name; replaces what has the new one, unless without is set. */
int volume_rename(struct volume_tree *tree, struct volume_node *from, const char *name,
		  struct volume_node *to, const char *new_name, bool without);

/* One user more, or fewer, of the node's descriptor. 0 or -errno. */
int volume_take(struct volume_tree *tree, struct volume_node *node);
void volume_give(struct volume_tree *tree, struct volume_node *node);

/* Calls change, which may make the file up to end bytes long, if there is room for that; counts
 * what it has done. fills: it may give blocks of the disk to a hole. Its result, or -errno:
 * -ENOSPC. */
int64_t volume_change(struct volume_tree *tree, int fd, uint64_t end, bool fills,
		      int64_t (*change)(int fd, void *arg), void *arg);

#endif
