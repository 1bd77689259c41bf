/* SPDX-License-Identifier: Apache-2.0 */
/* Removes trees of files. Follows no links.
 */
#ifndef BASE_REMOVE_H
#define BASE_REMOVE_H

/* Removes dir/name with everything below it; a missing one is fine. depth_max: directories below
 * each other, of which two descriptors each are open; -EISDIR: there are more. 0 or -errno. */
int remove_tree(int dir, const char *name, unsigned int depth_max);

/* The same for everything in dir, which stays. */
int remove_below(int dir, unsigned int depth_max);

#endif
