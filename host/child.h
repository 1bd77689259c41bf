/* SPDX-License-Identifier: Apache-2.0 */
/* A child: a process of another program of the service, which exchanges frames with the supervisor.
 * The zygotes, the keeper, the egress proxy and the client of other servers are children, each with
 * messages of its own. This module has the parts that they share: the process, its control socket,
 * the time limit of its start, and the reason why it does not run.
 *
 * A child that was sent something, or is used, is asked soon after that whether it is alive (PING).
 * If it gives no sign of life for CHILD_PATIENCE_MS, it is killed; sooner if a signal has stopped
 * it.
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
#include <sys/queue.h>

#include <event2/event_struct.h>

#include "host/launcher.h"
#include "proto/frame.h"

#define CHILD_PATIENCE_MS 3000
#define CHILD_STOPPED_MS 1000	/* the same, of one that is stopped */

enum child_state {
	CHILD_DOWN,
	CHILD_STARTING,
	CHILD_SERVING,
	CHILD_ENDING,		/* killed, to be reaped */
};

/* A kind of children: the values and functions that they have in common. Static. */
struct child_kind {
	const char *name;		/* as in "the zygote broke its protocol" */
	enum launch_kind launch;
	enum msg_from from;
	bool passes;			/* it sends descriptors */
	size_t writer_max;		/* bytes that may wait to be sent */
	unsigned int start_seconds;	/* within this time it has to be ready */
	unsigned int grace_ms;		/* the time that it has to end by itself, after child_done()
					 * has closed its socket */

	/* Is something under way that the child does without further messages? Meanwhile it is
	 * asked each second whether it is alive. NULL: never. */
	bool (*is_used)(void *arg);

	/* A frame has arrived. The caller frees it, except for parts that were taken. 0; or -errno,
	 * which ends the child. */
	int (*on_message)(void *arg, struct frame *frame);

	/* The child is being ended, because of an error or by child_end. on_down follows. May be
	 * NULL. */
	void (*on_ending)(void *arg);

	/* The child has ended and was reaped, or could not be started: text and error say why. */
	void (*on_down)(void *arg);

	/* The time of child_arm has come. Called only while the child is down or serves. */
	void (*on_due)(void *arg);
};

struct child {
	LIST_ENTRY(child) link;		/* of all between child_init and child_done */
	const struct child_kind *kind;
	struct event_base *base;
	void *arg;
	enum child_state state;
	bool done;			/* child_done was called */
	bool has_served;		/* child_is_ready was called since the last child_start */
	bool lost;			/* its socket was closed or broken, so it has ended or is
					 * being ended */
	unsigned int failed_starts;	/* for child_backoff_ms; the owner resets it, too */
	unsigned int lost_orders;	/* starts that found no launcher, since it served */
	uint64_t ready_ms;		/* when it began to serve */
	int error;			/* negative errno; with text */
	char text[1200];		/* why it does not run; "": no reason yet */
	struct launch launch;		/* empty while the launcher has not answered */
	struct launch_order order;
	struct frame_reader reader;
	struct frame_writer writer;
	unsigned int pauses;		/* since the line has worked last */
	struct event readable, writable, ended, timer, again;
	struct event beat;		/* pending: it is asked, or will be */
	bool is_asked;			/* a PING with the number pings has no answer */
	bool was_sent;			/* a message, after the last PING */
	uint32_t pings;
	unsigned int silent_ms;		/* since it was asked, or the last sign of life */
};

/* Makes a child that is down. kind must outlive it. */
void child_init(struct child *child, const struct child_kind *kind, struct event_base *base,
		void *arg);

/* Closes the socket, kills the process after grace_ms, waits for its end, and releases everything.
 * on_down is not called. */
void child_done(struct child *child);

/* Starts the child, which must be down. profile, modules: as in launcher_start. If the child cannot
 * be started, on_down is called from within. The launcher sends the first message to the child. */
void child_start(struct child *child, struct launcher *launcher, unsigned int profile,
		 uint64_t modules);

/* To be called when the child has reported that it serves. */
void child_is_ready(struct child *child);

/* Kills the child; on_down follows from the loop. */
void child_end(struct child *child);

/* After child_end: waits until the process has died, and calls on_down. */
void child_reap(struct child *child);

/* Is this the process of a child? */
bool child_is_one(pid_t pid);

/* Is there a process to which messages can be sent? */
bool child_is_up(const struct child *child);

/* Sends a message. The descriptors belong to the child from the call on. 0; -ENOTCONN if it is not
 * up; -errno of frame_writer_put if the message does not fit. An error of the socket ends the
 * child. */
int child_send(struct child *child, const struct msg *msg, const int *fd, size_t n_fds);

/* Reserves n descriptors for what the child will send: frame_reader_expect(). */
int child_expect(struct child *child, size_t n);

/* Makes on_due be called after this time. Not to be called while the child starts or ends. */
void child_arm(struct child *child, uint32_t ms);

/* The time to wait before the next start, after an end. It doubles from 100 ms to a minute, so that
 * what ends at once, again and again, does not use up the machine. After an end that came late it
 * begins anew, and it stays as it is while there is no launcher. */
uint32_t child_backoff_ms(struct child *child);

/* Is this end worth a line in the log? Starts without a launcher are told after 1, 2, 4, 8 ... of
 * them. To be called before child_backoff_ms. */
bool child_is_told(const struct child *child);

/* Notes why the child does not run. Only the first reason is kept: later ones are consequences. */
void child_note(struct child *child, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Is the child's program of the same build as this one? If not, child_note notes it. */
bool child_is_of_build(struct child *child, const struct msg_str *build);

#endif
