/* SPDX-License-Identifier: Apache-2.0 */
/* Removes trees of files. Follows no links.
 */
#ifndef BASE_REMOVE_H
#define BASE_REMOVE_H

/* Removes dir/name with everything below it. 0, also if it does not exist; -EISDIR: directories are
 * nested more than depth_max deep (each level takes two descriptors); or another -errno. */
int remove_tree(int dir, const char *name, unsigned int depth_max);

/* As remove_tree, for everything in dir. dir itself stays. */
int remove_below(int dir, unsigned int depth_max);

#endif
