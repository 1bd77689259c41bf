/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that writes to a disk, so that the loop never waits for one. It does its work in the
 * order in which it was put in. It has no descriptor, lock or object in common with the loop except
 * the list of work: what a piece of work touches while it is being written belongs to the thread.
 */
#ifndef GOVERN_WRITER_H
#define GOVERN_WRITER_H

#include <stddef.h>
#include <sys/queue.h>

struct event_base;
struct writer;

/* One piece of work; embedded in what it is about. */
struct writing {
	STAILQ_ENTRY(writing) link;
	void (*write)(struct writing *writing);		/* in the thread; may wait */
	void (*written)(struct writing *writing);	/* afterwards, in the loop; may free it */
};

/* Starts the thread. base: borrowed. name: of the thread, for people, up to 15 bytes. The thread
 * takes over the fences of the caller, so it is started after the fence of files and before that of
 * system calls, which covers all threads. 0 or -errno. */
int writer_new(struct event_base *base, const char *name, struct writer **writer_r);

/* Finishes all work, calls written for it, and ends the thread. NULL is fine. */
void writer_free(struct writer *writer);

/* writer NULL: both functions of the work are called at once. */
void writer_put(struct writer *writer, struct writing *writing);

/* The pieces of work for which written was not called yet. NULL: 0. */
size_t writer_waiting(const struct writer *writer);

#endif
