/* SPDX-License-Identifier: Apache-2.0 */
/* The second wall around the file tree, where the kernel has Landlock (landlock(7)).
 *
 * The file tree shows only what may be seen; Landlock holds even for a descriptor or a
 * mount that should not be there.
 */
#ifndef WORKER_LANDLOCK_H
#define WORKER_LANDLOCK_H

#include <stdbool.h>

/* The newest version that the kernel and this program both know; 0: the kernel has none. */
unsigned int landlock_abi(void);

/* Makes the rules of the jail's tree: reading and executing everywhere below its root, writing
 * only where scripts may; not to /dev/zero unless memory is counted. abi: of landlock_abi.
 * terminals: the tree has /dev/pts. *rules_r: a descriptor, the caller's; -1 when abi is 0. 0 or
 * -errno. */
int landlock_make(unsigned int abi, bool memory_counted, bool terminals, int *rules_r);

/* Confines the calling thread to them for good, and closes them. made: by landlock_make; when
 * abi is 0 there are none, and nothing is done. no_new_privs must be set. 0 or -errno. */
int landlock_enter(unsigned int abi, int made);

#endif
