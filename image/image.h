/* SPDX-License-Identifier: Apache-2.0 */
/* Images of containers, as archives or directories: in the form that `docker save` and `podman
 * save` write, and in the layout of the Open Container Initiative.
 */
#ifndef IMAGE_IMAGE_H
#define IMAGE_IMAGE_H

struct layer_tree;
struct why;

/* Unpacks an image into an empty tree. file: an archive or a directory with exactly one image.
 * Every layer must have the SHA-256 that the image names. 0 or -errno with why_r. */
int image_unpack(struct layer_tree *tree, int file, struct why *why_r);

#endif
