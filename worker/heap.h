/* SPDX-License-Identifier: Apache-2.0 */
/* The zygote's heap, and a session's, on huge pages: a fork copies an entry for every page that a
 * process has, and the end of the copy takes each of them away again. Of the 16 MiB that an
 * interpreter with the default profile's modules holds, 14 are then seven entries and not 3,600,
 * in init as long as it lives, and in a script's process until it first writes to them. What is
 * written is still copied a small page at a time: the kernel splits a huge page that is shared.
 */
#ifndef WORKER_HEAP_H
#define WORKER_HEAP_H

/* Before Python starts: what it and libc allocate from here on lies together, so that huge
 * pages can hold it. Without memory for that the heap is where it always is. */
void heap_gather(void);

/* After the last import: puts it on huge pages, and has both allocators go on as they do in
 * any Python. A kernel that cannot (MADV_COLLAPSE, since Linux 6.1) leaves it as it is. */
void heap_settle(void);

/* In a session, which is copied for each cell: what it allocates from here on lies on huge pages
 * if that is a large block, or there are many small ones. Where the kernel has none for programs
 * that ask (transparent_hugepage: never), nothing changes. */
void heap_session(void);

#endif
