/* Another of our programs beside the supervisor, which exchanges frames with it: its process, its
 * control socket, the time that it may take to start, and the reason why it does not run. The
 * zygotes, the keeper and the egress proxy are such programs; they define their own messages.
 *
 *   DOWN ──child_start──> STARTING ──child_is_ready──> SERVING
 *    ^                        └────────┬──────────────────┘ child_end, a broken line or
 *    └───on_down, reaped─── ENDING <───┘                    protocol, out of time
 */
#ifndef HOST_CHILD_H
#define HOST_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <event2/event_struct.h>

#include "host/launcher.h"
#include "proto/frame.h"

enum child_state {
	CHILD_DOWN,
	CHILD_STARTING,
	CHILD_SERVING,
	CHILD_ENDING,		/* killed, to be reaped */
};

/* What all processes of one kind have in common; static. */
struct child_kind {
	const char *name;		/* as in "the zygote broke its protocol" */
	enum launch_kind launch;
	enum msg_from from;
	bool passes;			/* it sends descriptors */
	size_t writer_max;		/* bytes that may wait to be sent */
	unsigned int start_seconds;	/* then it has to be ready */

	/* A frame of it; the caller frees what is not taken. A negative errno ends it. */
	int (*on_message)(void *arg, struct frame *frame);

	/* It is of no use any more and will be down soon. Also called when it was asked to
	 * end; may be NULL. */
	void (*on_ending)(void *arg);

	/* It is gone and reaped, or could not be started: text and error say why. */
	void (*on_down)(void *arg);

	/* The time of child_arm, when it is down or serves. */
	void (*on_due)(void *arg);
};

struct child {
	const struct child_kind *kind;
	struct event_base *base;
	void *arg;
	enum child_state state;
	bool has_served;		/* this process, or the last one, was ready */
	unsigned int failed_starts;	/* of child_backoff_ms; the owner's to reset */
	int error;			/* negative errno; with text */
	char text[1200];		/* why there is none; "": no reason yet */
	struct launch launch;
	struct frame_reader reader;
	struct frame_writer writer;
	struct event readable, writable, ended, timer;
};

/* kind must outlive it. */
void child_init(struct child *child, const struct child_kind *kind, struct event_base *base,
		void *arg);

/* Kills it, waits for it, and releases all; on_down is not called. */
void child_done(struct child *child);

/* From down. profile: a zygote's, else 0. When it cannot be started, on_down has been called on
 * return. What it is told first the launcher says. */
void child_start(struct child *child, struct launcher *launcher, unsigned int profile);

/* It has said that it serves. */
void child_is_ready(struct child *child);

/* Kills it; on_down follows from the loop. */
void child_end(struct child *child);

/* Waits for one that was ended and calls on_down; no longer than a process takes to die. */
void child_reap(struct child *child);

/* Whether there is a process to speak with. */
bool child_is_up(const struct child *child);

/* The descriptors are the child's from now on. 0; -ENOTCONN when there is none; what does
 * not fit the line is refused by frame_writer_put's errno, a line that fails ends it. */
int child_send(struct child *child, const struct msg *msg, const int *fd, size_t n_fds);

/* on_due after so long; not while it starts or ends. */
void child_arm(struct child *child, uint32_t ms);

/* How long to wait before the next start; doubles with each call. */
uint32_t child_backoff_ms(struct child *child);

/* The first reason is kept: what follows from it says less. */
void child_note(struct child *child, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Whether it is of the same build; else that is noted. */
bool child_is_ours(struct child *child, const struct msg_str *build);

#endif
