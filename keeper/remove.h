/* Removes trees from the store. */
#ifndef KEEPER_REMOVE_H
#define KEEPER_REMOVE_H

/* Everything below and with it dir/name; that it is not there is fine. Follows no links. 0 or
 * -errno. */
int remove_tree(int dir, const char *name);

#endif
