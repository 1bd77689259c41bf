/* SPDX-License-Identifier: Apache-2.0 */
/* The second wall around the file tree, where the kernel has Landlock (landlock(7)).
 *
 * The file tree shows only permitted files; Landlock also covers a descriptor or a mount that is
 * there by mistake.
 */
#ifndef WORKER_LANDLOCK_H
#define WORKER_LANDLOCK_H

#include <stdbool.h>

/* The newest version that both the kernel and this program know; 0: the kernel has no Landlock. */
unsigned int landlock_abi(void);

/* Makes the rules of the jail's tree: reading and executing everywhere below its root, and writing
 * only where scripts may write; to /dev/zero only if memory is counted. abi: of landlock_abi.
 * terminals: the tree has /dev/pts. *rules_r: a descriptor, the caller's; -1 when abi is 0. 0 or
 * -errno. */
int landlock_make(unsigned int abi, bool memory_counted, bool terminals, int *rules_r);

/* Enters these rules permanently with the calling thread, and closes them. made: from
 * landlock_make; if abi is 0 there are none, and this does nothing. no_new_privs must be set. 0 or
 * -errno. */
int landlock_enter(unsigned int abi, int made);

#endif
