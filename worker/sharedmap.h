/* SPDX-License-Identifier: Apache-2.0 */
/* Shared anonymous memory where no controller counts it.
 *
 * Such memory is its own kernel object: what a process once wrote to it stays, also when it
 * is not mapped but for a last page, and then nothing on the machine tells how large
 * it is. Where the memory controller is missing the syscall filter refuses it, and a call of
 * the C library's mmap() in this program has an unlinked file below /dev/shm in its place,
 * which the worker's one sized file system counts (host/watchdog.c reads that).
 */
#ifndef WORKER_SHAREDMAP_H
#define WORKER_SHAREDMAP_H

/* From here on, in this process and its forks. */
void sharedmap_use_files(void);

#endif
