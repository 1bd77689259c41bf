/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses of a listening socket. If accept() fails, there are usually no descriptors or no memory,
 * and the error would repeat at once. And sockets of clients leave the last descriptors to what the
 * service needs for the calls of those who are connected already, and to operators. Clients wait in
 * the kernel's backlog meanwhile.
 */
#ifndef BASE_ACCEPTING_H
#define BASE_ACCEPTING_H

#include <stdbool.h>

struct event;
struct event_base;

struct accepting {
	struct event *again;
	void (*resume)(void *arg);
	void *arg;
	int reserve_from;	/* descriptors from this number on are the reserve */
};

/* resume: called at the end of each pause, to accept again. reserve: there is one of an eighth of
 * RLIMIT_NOFILE, at most 256 descriptors. Aborts when out of memory. */
void accepting_init(struct accepting *a, struct event_base *base, void (*resume)(void *arg),
		    void *arg, bool reserve);

/* Is this new descriptor of the reserve? Then all others are in use: no more is to be accepted. */
bool accepting_is_reserved(const struct accepting *a, int fd);

/* Begins a pause, and logs it. The caller has stopped accepting. error: an errno. The pause lasts
 * until a new descriptor would not be of the reserve. */
void accepting_pause(struct accepting *a, int error);
bool accepting_is_paused(const struct accepting *a);

/* Ends a pause without a call of resume. Not needed before accepting_free. */
void accepting_stop(struct accepting *a);

void accepting_free(struct accepting *a);

#endif
