/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop of the process, and the rule for objects with callbacks: they are freed only after
 * a turn of the loop.
 *
 * An object may be closed from within any of its own callbacks. It then marks itself as closed,
 * leaves its parent and calls loop_free_later. It is freed when all callbacks of this turn have
 * returned.
 */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <stdbool.h>

struct event_base;
struct loop;

/* Makes the loop. any_file: a back end is used that also takes regular files, because standard
 * input may be one. Aborts when out of memory. NULL: the kernel refuses a system call that a loop
 * needs. */
struct loop *loop_new(bool any_file);

/* Frees the objects of loop_free_later, then the loop. NULL is fine. */
void loop_free(struct loop *loop);

struct event_base *loop_base(const struct loop *loop);	/* the loop's own */

/* Calls free_fn(object) when this turn's callbacks have returned. */
void loop_free_later(struct loop *loop, void (*free_fn)(void *object), void *object);

/* Frees the objects of loop_free_later at once. Not to be called from within a callback. */
void loop_free_now(struct loop *loop);

/* Calls on_signal(number, arg) from the loop whenever the signal arrives. 0 or -errno. */
int loop_signal(struct loop *loop, int number, void (*on_signal)(int number, void *arg),
		void *arg);

/* Runs until loop_stop. 0 or -errno. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

#endif
