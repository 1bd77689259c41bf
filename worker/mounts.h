/* SPDX-License-Identifier: Apache-2.0 */
/* The file tree of the jail: built once by the zygote, completed by every worker with
 * file systems of its own.
 */
#ifndef WORKER_MOUNTS_H
#define WORKER_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

/* Builds the tree in this process's mount namespace (which must be new), makes it the root, and
 * unmounts the host's tree. The built-in paths and those in "paths" are mounted read-only. Those in
 * "paths" that do not exist are appended to missing, whose array must have room for all of them and
 * borrows their texts. zero: the tree has /dev/zero. terminals: it has /dev/ptmx, /dev/pts and
 * /dev/tty. folder: it has FOLDER_PLACE, and /folder, a link to it. During imports there is a
 * writable file system on /run. 0, or -errno with *what_r naming the step or path (valid until the
 * next call). */
int mounts_build(const struct msg_strs *paths, bool zero, bool terminals, bool folder,
		 struct msg_strs *missing, const char **what_r);

/* Whether a link with this target is left out of copied directories: no jail has man(1), and most
 * of Debian's /etc/alternatives are manual pages, whose links would lead nowhere. */
bool mounts_is_manual_page(const char *target);

/* Unmounts the file system for imports. 0 or -errno. */
int mounts_settle(void);

/* The mount options for mounts_enter's tmpfs: size and inodes. */
void mounts_options(uint64_t bytes, uint64_t inodes, char *text, size_t size);

/* In a worker that has the script's uid already, and capabilities over its mount namespace: mounts
 * its writable file system on /run, which is also /workspace, /tmp and /dev/shm, and its own /proc.
 * The working directory becomes /workspace. memory_bytes: as for procfs_mount(). 0 or -errno. */
int mounts_enter(const char *options, uint64_t memory_bytes);

/* In the same worker, if the zygote has built the tree with terminals: mounts the worker's own
 * pseudo-terminals on /dev/pts. 0 or -errno. */
int mounts_terminals(void);

/* A path that exists outside the tree and must not be visible inside; NULL: none was found. Static;
 * chosen by mounts_build. */
const char *mounts_outside(void);

#endif
