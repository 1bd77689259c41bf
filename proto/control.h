/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's end, as a program with an event loop has it: descriptor 3, a unix stream socket
 * with frames in both directions. The first frame is the configuration, which is waited for; the
 * others come from the loop. The loop ends when the supervisor closes its end or breaks the
 * protocol.
 */
#ifndef PROTO_CONTROL_H
#define PROTO_CONTROL_H

#include <event2/event_struct.h>

#include "proto/frame.h"

#define CONTROL_FD 3

struct control {
	struct event_base *base;
	struct frame_reader reader;
	struct frame_writer writer;
	struct event readable, writable;
	void (*on_frame)(void *arg, struct frame *frame);
	void *arg;
};

/* Is descriptor 3 a socket? False: the program was started by hand. */
bool control_is_given(void);

/* Waits for the first message, which must be of this type. waiting_max: bytes of messages that the
 * supervisor has not read yet. 0: frame_done(frame_r); or -EPIPE, -EBADMSG, -errno. */
int control_configure(struct control *control, size_t waiting_max, enum msg_type type,
		      struct frame *frame_r);

/* From now on the loop calls on_frame with arg for each frame, which stays the control's own. 0 or
 * -errno. */
int control_start(struct control *control, struct event_base *base,
		  void (*on_frame)(void *arg, struct frame *frame), void *arg);

/* Queues a message without descriptors and sends what the socket takes. 0; -ENOBUFS: too much
 * waits; else as frame_encode. */
int control_send(struct control *control, const struct msg *msg);

/* The loop no longer reads from the supervisor, nor writes to it. */
void control_stop(struct control *control);

#endif
