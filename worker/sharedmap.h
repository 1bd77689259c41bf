/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces shared anonymous memory, for hosts where no controller counts it.
 *
 * Such memory is an object of the kernel that keeps its pages even if only one of them is still
 * mapped, and its size is not visible. So without a memory controller the filter of system calls
 * refuses it. In its place the C library's mmap() in this program maps an unlinked file below
 * /dev/shm. The file counts in the worker's own file system, whose size is limited and whose use is
 * measured (host/watchdog.h).
 */
#ifndef WORKER_SHAREDMAP_H
#define WORKER_SHAREDMAP_H

/* Turns this on, in this process and in all processes that it forks. */
void sharedmap_use_files(void);

#endif
