/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses of a listening socket whose accept() failed: usually there are no descriptors or no
 * memory, and the error would repeat at once. Clients wait in the kernel's backlog meanwhile.
 */
#ifndef BASE_ACCEPTING_H
#define BASE_ACCEPTING_H

struct event;
struct event_base;

struct accepting {
	struct event *again;
	void (*resume)(void *arg);
	void *arg;
};

/* resume: called at the end of each pause, to accept again. Aborts when out of memory. */
void accepting_init(struct accepting *a, struct event_base *base, void (*resume)(void *arg),
		    void *arg);

/* Begins a pause, and logs it. The caller has stopped accepting. error: an errno. */
void accepting_pause(struct accepting *a, int error);

/* Ends a pause without a call of resume. Not needed before accepting_free. */
void accepting_stop(struct accepting *a);

void accepting_free(struct accepting *a);

#endif
