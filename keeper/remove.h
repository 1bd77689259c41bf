/* SPDX-License-Identifier: Apache-2.0 */
/* Removes trees from the store. */
#ifndef KEEPER_REMOVE_H
#define KEEPER_REMOVE_H

/* Removes dir/name with everything below it; a missing one is fine. Follows no links. 0 or
 * -errno. */
int remove_tree(int dir, const char *name);

#endif
