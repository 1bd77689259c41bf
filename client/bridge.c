/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python connect. It has one poll loop, two fixed buffers, and owns no descriptor.
 *
 * Standard streams belong to the caller too, so O_NONBLOCK is not set on them. They are read
 * only after POLLIN, and written only after POLLOUT in pieces that then cannot block: PIPE_BUF
 * bytes into a pipe (pipe(7)), MSG_DONTWAIT into a socket. */
#include "client/bridge.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

struct flow {
	int from, to;
	const char *from_name, *to_name;
	size_t start, end; /* the bytes of the buffer that are still to be written */
	bool ended;	   /* no further bytes arrive */
	char buffer[BRIDGE_BUFFER];
};

static bool
is_retry(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/* Reads once into an empty buffer. */
static int
flow_read(struct flow *flow)
{
	ssize_t n = read(flow->from, flow->buffer, sizeof(flow->buffer));

	if (n < 0)
		return is_retry(errno) ? 0 : -errno;
	flow->start = 0;
	flow->end = (size_t)n;
	flow->ended = n == 0;
	return 0;
}

static int
flow_write(struct flow *flow)
{
	size_t left = flow->end - flow->start;
	ssize_t n = send(flow->to, flow->buffer + flow->start, left,
			 MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno == ENOTSOCK)
		n = write(flow->to, flow->buffer + flow->start,
			  left < PIPE_BUF ? left : PIPE_BUF);
	if (n < 0)
		return is_retry(errno) ? 0 : -errno;
	flow->start += (size_t)n;
	return 0;
}

static bool
bridge_is_empty(const struct flow *flow)
{
	return flow->start == flow->end;
}

enum { IN, OUT, SOCKET, N_POLLED };

/* Fills in the events for each descriptor. One without events is left out: its hang-up would be
 * reported again and again. out_fd stays in, because nothing else reports that its reader has
 * gone. */
static void
wanted(const struct flow *up, const struct flow *down, struct pollfd *p)
{
	short socket_events = (short)((bridge_is_empty(up) ? 0 : POLLOUT) |
				      (bridge_is_empty(down) && !down->ended ? POLLIN : 0));

	p[IN] = (struct pollfd){.fd = bridge_is_empty(up) && !up->ended ? up->from : -1,
				.events = POLLIN};
	p[OUT] =
		(struct pollfd){.fd = down->to, .events = bridge_is_empty(down) ? 0 : POLLOUT};
	p[SOCKET] = (struct pollfd){.fd = socket_events ? up->to : -1,
				    .events = socket_events};
}

/* One turn: moves the bytes that poll() says can move. 1: over; 0: continue; or -errno. */
static int
bridge_turn(struct flow *up, struct flow *down, const struct pollfd *p, const char **what_r)
{
	const short readable = POLLIN | POLLHUP | POLLERR;
	int r;

	if (p[IN].revents & POLLNVAL)
		up->ended = true;
	else if (p[IN].revents & readable) {
		*what_r = up->from_name;
		if ((r = flow_read(up)) < 0)
			return r;
	}
	/* POLLERR and POLLHUP without requested events: the reader is gone, so no answer is
	 * needed any more. */
	if (p[OUT].revents & (POLLERR | POLLHUP | POLLNVAL))
		return 1;
	if (!bridge_is_empty(up) && p[SOCKET].revents & (POLLOUT | POLLERR | POLLHUP)) {
		r = flow_write(up);
		if (r == -EPIPE) {
			/* The service has stopped reading; its remaining output is read below.
			 */
			up->start = up->end;
			up->ended = true;
		} else if (r < 0) {
			*what_r = up->to_name;
			return r;
		}
	}
	if (bridge_is_empty(down) && p[SOCKET].revents & readable) {
		*what_r = down->from_name;
		if ((r = flow_read(down)) < 0)
			return r;
	}
	if (!bridge_is_empty(down) && p[OUT].revents & POLLOUT) {
		*what_r = down->to_name;
		r = flow_write(down);
		if (r == -EPIPE)
			return 1;
		if (r < 0)
			return r;
	}
	return bridge_is_empty(down) && down->ended;
}

int
bridge(int in_fd, int out_fd, int socket_fd, const char **what_r)
{
	static struct flow up, down;
	bool half_closed = false;
	struct pollfd p[N_POLLED];
	int r;

	up.from = in_fd, up.to = socket_fd, down.from = socket_fd, down.to = out_fd;
	up.from_name = "standard input", down.to_name = "standard output";
	up.to_name = down.from_name = "the connection to mcp-pythond";
	up.start = up.end = down.start = down.end = 0;
	up.ended = down.ended = false;
	do {
		if (bridge_is_empty(&up) && up.ended && !half_closed) {
			/* ENOTCONN: it is gone already; the next read reports that. */
			shutdown(socket_fd, SHUT_WR);
			half_closed = true;
		}
		wanted(&up, &down, p);
		if (poll(p, N_POLLED, -1) < 0) {
			*what_r = "poll";
			r = errno == EINTR ? 0 : -errno;
			continue;
		}
		r = bridge_turn(&up, &down, p, what_r);
	} while (r == 0);
	return r < 0 ? r : 0;
}
