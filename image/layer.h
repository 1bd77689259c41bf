/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks a tar archive over a directory. An image of containers is a sequence of such archives,
 * its layers.
 *
 * All files belong to the user who unpacks. No file keeps a right that other users of this machine
 * could use: no set-user-ID bits, no capabilities, no write access for others. Devices, fifos and
 * sockets are left out.
 */
#ifndef IMAGE_LAYER_H
#define IMAGE_LAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "image/spool.h"

#define LAYER_BYTES_MAX (32ULL << 30)	/* of all files of a tree, and of the copies made for it */
#define LAYER_ENTRIES_MAX 2000000

struct layer_tree {
	int top;			/* the directory of the tree */
	struct spool_room room;
	uint64_t entries;		/* how many more there may be */
	uint64_t left_out;		/* how many devices, fifos and sockets were left out */
};

/* Unpacks an archive. file: borrowed. whiteouts: the archive is a layer of an image, in which some
 * entries name files of earlier layers; these files are removed first. 0 or -errno with why_r. */
int layer_unpack(struct layer_tree *tree, int file, bool whiteouts, struct why *why_r);

#endif
