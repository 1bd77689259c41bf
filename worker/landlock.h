/* The second wall around the file tree, where the kernel has Landlock (landlock(7)).
 *
 * The file tree shows only what may be seen; Landlock holds even for a descriptor or a
 * mount that should not be there.
 */
#ifndef WORKER_LANDLOCK_H
#define WORKER_LANDLOCK_H

#include <stdbool.h>

/* The newest version that both the kernel and we know; 0: the kernel has none. */
unsigned int landlock_abi(void);

/* Confines the calling thread for good to the jail's tree: reading and executing
 * everywhere below its root, writing only where scripts may; not to /dev/zero unless
 * memory is counted. abi: of landlock_abi, 0 does nothing. no_new_privs must be set. 0 or
 * -errno. */
int landlock_enter(unsigned int abi, bool memory_counted);

#endif
