/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket between the supervisor and a helper program that has an event loop. It is
 * descriptor 3 of the program: a unix stream socket with frames in both directions. The program
 * waits for the first frame, its configuration. The loop reads the frames after it, and ends when
 * the supervisor closes its end or breaks the protocol.
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

/* Waits for the first message, which must have this type. waiting_max: the most bytes of messages
 * that may wait until the supervisor reads them. 0, and the caller calls frame_done(frame_r);
 * -EPIPE; -EBADMSG; or another -errno. */
int control_configure(struct control *control, size_t waiting_max, enum msg_type type,
		      struct frame *frame_r);

/* From now on the loop calls on_frame for each frame. The frame is freed when on_frame returns. 0
 * or -errno. */
int control_start(struct control *control, struct event_base *base,
		  void (*on_frame)(void *arg, struct frame *frame), void *arg);

/* Queues a message without descriptors, and sends as many bytes as the socket takes. 0; -ENOBUFS:
 * too many bytes wait; or an error of frame_encode. */
int control_send(struct control *control, const struct msg *msg);

/* From now on the loop neither reads from the supervisor nor writes to it. */
void control_stop(struct control *control);

#endif
