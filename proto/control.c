/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the helper programs with a loop.   Owns: the frames in both directions.
 * Reads:   frames of the supervisor. */
#include "proto/control.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <event2/event.h>

bool
control_is_given(void)
{
	struct stat st;

	return fstat(CONTROL_FD, &st) == 0 && S_ISSOCK(st.st_mode);
}

int
control_configure(struct control *control, size_t waiting_max, enum msg_type type,
		  struct frame *frame_r)
{
	int r;

	frame_reader_init(&control->reader, FROM_SUPERVISOR);
	frame_writer_init(&control->writer, waiting_max);
	r = frame_reader_read(&control->reader, CONTROL_FD, frame_r);
	if (r <= 0)
		return r < 0 ? r : -EPIPE;
	if (frame_r->msg.type == type)
		return 0;
	frame_done(frame_r);
	return -EBADMSG;
}

static void
control_flush(struct control *control)
{
	int r = frame_writer_flush(&control->writer, CONTROL_FD);

	if (r > 0)
		event_add(&control->writable, NULL);
	else if (r < 0)
		event_base_loopbreak(control->base);
}

static void
control_on_writable(evutil_socket_t, short, void *arg)
{
	control_flush(arg);
}

static void
control_on_readable(evutil_socket_t fd, short, void *arg)
{
	struct control *control = arg;
	struct frame frame = { 0 };
	int r = frame_reader_read(&control->reader, fd, &frame);

	if (r > 0) {
		if (frame.msg.type == MSG_PING)
			r = control_send(control, &(struct msg){
				.type = MSG_PONG, .pong.number = frame.msg.ping.number });
		else
			control->on_frame(control->arg, &frame);
		frame_done(&frame);
	}
	if (r < 0)
		event_base_loopbreak(control->base);
}

int
control_start(struct control *control, struct event_base *base,
	      void (*on_frame)(void *arg, struct frame *frame), void *arg)
{
	control->base = base;
	control->on_frame = on_frame;
	control->arg = arg;
	event_assign(&control->readable, base, CONTROL_FD, EV_READ | EV_PERSIST,
		     control_on_readable, control);
	event_assign(&control->writable, base, CONTROL_FD, EV_WRITE, control_on_writable, control);
	event_add(&control->readable, NULL);
	if (fcntl(CONTROL_FD, F_SETFL, O_NONBLOCK) < 0 ||
	    fcntl(CONTROL_FD, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	return 0;
}

void
control_stop(struct control *control)
{
	event_del(&control->readable);
	event_del(&control->writable);
}

int
control_send(struct control *control, const struct msg *msg)
{
	int r = frame_writer_put(&control->writer, msg, NULL, 0);

	if (r == 0)
		control_flush(control);
	return r;
}
