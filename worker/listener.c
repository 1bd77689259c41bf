/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a script's process before its script, a session's init.   Owns: nothing. */
#include "worker/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "proto/frame.h"
#include "worker/jail.h"

#define PORT 3128		/* in the worker's own network namespace */

static int
bind_to(int fd, uint16_t port)
{
	const struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	return bind(fd, (const struct sockaddr *)&at, sizeof(at));
}

int
listener_offer(uint64_t id, uint16_t *port_r)
{
	struct msg msg = { .type = MSG_LISTENER, .listener.id = id };
	own_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_in at;
	socklen_t len = sizeof(at);
	const int on = 1;
	int r;

	/* The proxy may still hold the listener of the cell before, which has ended
	 * (listener_end()). */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return -errno;
	r = bind_to(fd, PORT);
	if (r < 0 && errno == EADDRINUSE)
		r = bind_to(fd, 0);
	if (r < 0 || getsockname(fd, (struct sockaddr *)&at, &len) < 0 || listen(fd, SOMAXCONN) < 0)
		return -errno;
	r = frame_send(JAIL_CONTROL, &msg, &fd, 1);
	if (r < 0)
		return r;
	*port_r = ntohs(at.sin_port);
	return give_fd(fd);
}

void
listener_end(int fd)
{
	if (fd < 0)
		return;
	shutdown(fd, SHUT_RDWR);
	close(fd);
}
