/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of OpenMP and BLAS libraries. A library must start as many as a worker has
 * processors, and have none in a process that is about to be copied.
 *
 * A fork copies one thread. OpenBLAS, LLVM's OpenMP and others start their threads again in the
 * child; libgomp waits forever for threads that do not exist in the child. Some libraries read the
 * number of their threads when they are loaded: that is in the zygote, where no thread may be
 * started.
 */
#ifndef WORKER_PARALLEL_H
#define WORKER_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

/* In the zygote, before Python starts: sets the environment for the libraries that are loaded
 * there. most: the largest number of processors for a worker; the affinity of the zygote may have
 * fewer. 0 or -errno. */
int parallel_begin(uint32_t most);

/* The names of the environment variables that scripts must not inherit, with NULL at the end.
 * OMP_NUM_THREADS is not one of them if a worker has fewer processors than a library would count.
 */
const char *const *parallel_unset(void);

/* In the zygote, after the last import: makes sure that the loaded libraries have no threads. When
 * a worker first uses a library, it starts as many threads as a worker may have. */
void parallel_prepare(void);

/* Ends the threads that the calling thread has started in each loaded libgomp. The next parallel
 * region starts them again. */
void parallel_pause(void);

#endif
