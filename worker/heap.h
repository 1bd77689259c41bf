/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the heap of the zygote, and that of a session, on huge pages. A fork copies a page table
 * entry for every page of a process, and the end of the copy removes each entry. An interpreter
 * with the default profile's modules has a heap of 16 MiB. With huge pages, 14 MiB of it need 7
 * entries instead of 3,600. In init the heap stays on huge pages. When a script's process first
 * writes to a huge page that it still shares, the kernel splits the page, and copies one small page
 * of it.
 */
#ifndef WORKER_HEAP_H
#define WORKER_HEAP_H

#include <stdbool.h>

struct _object;

/* Before Python starts: from now on Python and libc allocate from one area each, which can be on
 * huge pages. That of Python is from the first write on, if the kernel gives them to programs. If
 * there is no memory for it, the heap is where it is by default. */
void heap_gather(void);

/* After the last import: puts what is not there yet on huge pages (MADV_COLLAPSE, since Linux
 * 6.1; older kernels leave it as it is) unless it is in haste, and lets both allocators continue as
 * in any Python. */
void heap_settle(bool in_haste);

/* A function of Python with one argument: a function, which it calls, and returns what that
 * returns. The objects that this call makes lie side by side. For objects that each worker writes
 * to: it copies fewer pages. Only before heap_settle(), and for objects that stay: their places are
 * not used again. NULL, with an exception set: there is no memory. */
struct _object *heap_dense_caller(void);

/* A function of Python, of_types(objects, *types): those of the list that have one of the types,
 * and not one that derives from it. NULL: as above. */
struct _object *heap_type_finder(void);

/* In a session, which is copied for each cell: from now on large blocks, and areas of many small
 * ones, are on huge pages. If the kernel does not give them to programs (transparent_hugepage:
 * never), nothing changes. */
void heap_session(void);

#endif
