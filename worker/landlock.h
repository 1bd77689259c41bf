/* SPDX-License-Identifier: Apache-2.0 */
/* The second wall around the file tree, where the kernel has Landlock (landlock(7)).
 *
 * The file tree has only permitted files. Landlock is a safeguard against mistakes: it also applies
 * to a descriptor or a mount that should not exist.
 */
#ifndef WORKER_LANDLOCK_H
#define WORKER_LANDLOCK_H

#include <stdbool.h>

/* The newest version that both the kernel and this program know; 0: the kernel has no Landlock. */
unsigned int landlock_abi(void);

/* Makes the rules of the jail's tree: reading and executing are allowed everywhere below its root,
 * writing only where scripts may write, and to /dev/zero only if memory is counted. abi: from
 * landlock_abi. terminals: the tree has /dev/pts. *rules_r: a descriptor, which the caller owns; -1
 * if abi is 0. 0 or -errno. */
int landlock_make(unsigned int abi, bool memory_counted, bool terminals, int *rules_r);

/* Puts the calling thread under the rules permanently, and closes their descriptor. made: from
 * landlock_make. abi 0: there are no rules, and this does nothing. no_new_privs must be set. 0 or
 * -errno. */
int landlock_enter(unsigned int abi, int made);

#endif
