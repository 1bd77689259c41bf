/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that writes to a disk, so that the loop never waits for one. It does its work in the
 * order in which it was put in. It has no descriptor, lock or object in common with the loop except
 * the list of work: what a piece of work touches while it is being written belongs to the thread.
 */
#ifndef GOVERN_WRITER_H
#define GOVERN_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

struct event_base;
struct writer;

/* One piece of work; embedded in what it is about. */
struct writing {
	STAILQ_ENTRY(writing) link;
	void (*write)(struct writing *writing);		/* in the thread; may wait */
	void (*written)(struct writing *writing);	/* afterwards, in the loop; may free it */
	/* In the loop, if no other work waits, in place of write. False: it would have to wait, and
	 * has done nothing. NULL: it may always have to wait. */
	bool (*write_now)(struct writing *writing);
	bool at_once;					/* written is called by writer_put */
	size_t bytes;					/* that it holds, for writer_is_full */
};

/* Waits for a piece of work. Zeroed but for on_written and arg: it does not wait. */
struct writing_wait {
	/* From the loop, once; error: 0, or -errno: the action must not happen. */
	void (*on_written)(void *arg, int error);
	void *arg;
	struct writing_wait **place;	/* of the pointer to this, in what is written; NULL: it
					 * does not wait */
	int error;
};

/* Begins to wait. place: in what is written. */
void writing_wait_at(struct writing_wait *wait, struct writing_wait **place);

/* Ends the wait, if wait is not NULL. at_once: of the work; on_written is not called, because the
 * caller of writer_put looks at wait->error. */
void writing_end_wait(struct writing_wait *wait, int error, bool at_once);

/* Stops waiting; all is written all the same. Does nothing if it does not wait. */
void writing_unwait(struct writing_wait *wait);

/* Starts the thread. base: borrowed. name: of the thread, for people, up to 15 bytes. The thread
 * takes over the fences of the caller, so it is started after the fence of files and before that of
 * system calls, which covers all threads. 0 or -errno. */
int writer_new(struct event_base *base, const char *name, struct writer **writer_r);

/* Finishes all work, calls written for it, and ends the thread. NULL is fine. False: a disk has not
 * finished a piece of work for ten seconds. The thread is left to it, with all that the work is
 * about, and written is not called. */
bool writer_free(struct writer *writer);

/* Without a writer, or if write_now does it, the work is done and written called at once. */
void writer_put(struct writer *writer, struct writing *writing);

/* The pieces of work for which written was not called yet. NULL: 0. */
size_t writer_waiting(const struct writer *writer);

/* Has the writer fallen so far behind that what needs to be written first has to be refused?
 * happened: what has happened already has as much room again. NULL: no. */
bool writer_is_full(const struct writer *writer, bool happened);

#endif
