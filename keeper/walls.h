/* SPDX-License-Identifier: Apache-2.0 */
/* The walls of the keeper and its children: they drop capabilities and load filters of system
 * calls. A table has the allowed calls, each with its reason, of the keeper, of the child that
 * works in the store, and of the one that reads a wheel.
 */
#ifndef KEEPER_WALLS_H
#define KEEPER_WALLS_H

#include <stdbool.h>

enum walls_for {
	WALLS_STORE = 1,	/* files of the store, and children of its own */
	WALLS_READER = 2,	/* descriptors that are open, and memory */
	WALLS_VOLUME = 8,	/* files of a volume, which are its whole root */
	WALLS_MOUNTER = 16,	/* a keeper of volumes, beside WALLS_KEEPER */
	WALLS_KEEPER = 4,	/* the keeper itself: its children's, mounts and namespaces */
};

/* For a child, which is killed when its parent ends. Afterwards it has no capability and can get
 * none, and any other call fails with EPERM. Permanent; proved by trying. 0 or -errno. */
int walls_enter(enum walls_for whom);

/* Of the keeper, before it serves: it keeps its capabilities, and any other call fails with EPERM.
 * Its children enter their own beside that. volumes: it makes file systems for volumes, and has
 * children that serve them. 0 or -errno. */
int walls_keep(bool volumes);

#endif
