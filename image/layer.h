/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks one tar archive over a directory, as images of containers are made of them.
 *
 * Everything belongs to the user who unpacks. Nothing keeps a right that other users of this
 * machine could use: no set-user-ID bits, no capabilities, nothing that others may write. Devices,
 * fifos and sockets are left out.
 */
#ifndef IMAGE_LAYER_H
#define IMAGE_LAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "image/spool.h"

#define LAYER_BYTES_MAX (32ULL << 30)	/* of all files of a tree, and of the copies for it */
#define LAYER_ENTRIES_MAX 2000000

struct layer_tree {
	int top;			/* its directory */
	struct spool_room room;
	uint64_t entries;		/* that may still come */
	uint64_t left_out;		/* devices and the like */
};

/* Unpacks the archive, a file of the caller's. With whiteouts, as the layer of an image: what it
 * says is removed from the layers before is removed first. 0 or -errno with why_r filled. */
int layer_unpack(struct layer_tree *tree, int file, bool whiteouts, struct why *why_r);

#endif
