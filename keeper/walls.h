/* SPDX-License-Identifier: Apache-2.0 */
/* The walls of the keeper and its children: they drop capabilities and load filters of system
 * calls. A table has the allowed calls of each kind of process, with reasons.
 */
#ifndef KEEPER_WALLS_H
#define KEEPER_WALLS_H

#include <stdbool.h>

enum walls_for {
	WALLS_STORE = 1,	/* a child that makes or removes sets: may use files of the store,
				 * and make children */
	WALLS_READER = 2,	/* the reader of a wheel: may use open descriptors, and memory */
	WALLS_VOLUME = 8,	/* the server of a volume: may use files of the volume, whose
				 * directory is the root of the process */
	WALLS_MOUNTER = 16,	/* in addition to WALLS_KEEPER: a keeper that has volumes */
	WALLS_FOLDER = 32,	/* in addition to WALLS_VOLUME: the server of a folder; and to
				 * WALLS_MOUNTER: a keeper that has one */
	WALLS_KEEPER = 4,	/* the keeper: may also use all calls of its children, mounts and
				 * namespaces */
};

/* To be called in a child, which is killed when its parent ends. Afterwards the child has no
 * capability and can get none, and calls that are not allowed fail with EPERM. Permanent; proved by
 * trying. 0 or -errno. */
int walls_enter(enum walls_for whom);

/* To be called in the keeper, before it serves. It keeps its capabilities, and calls that are not
 * allowed fail with EPERM. Its children enter walls of their own in addition. volumes, folder:
 * the keeper makes file systems for them, and has children that serve them. 0 or -errno. */
int walls_keep(bool volumes, bool folder);

#endif
