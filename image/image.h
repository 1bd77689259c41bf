/* SPDX-License-Identifier: Apache-2.0 */
/* Images of containers: what `docker save` and `podman save` write, and the layout of the Open
 * Container Initiative, as an archive or as a directory.
 */
#ifndef IMAGE_IMAGE_H
#define IMAGE_IMAGE_H

struct layer_tree;
struct why;

/* Unpacks the one image that a file or directory holds over an empty tree. Every layer has to have
 * the SHA-256 that the image says. 0 or -errno with why_r filled. */
int image_unpack(struct layer_tree *tree, int file, struct why *why_r);

#endif
