/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, zygotes and workers.   Owns: descriptors in a set.
 * Reads:   ancillary data, whose amount the peer chooses. */
#include "proto/fdpass.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "base/clock.h"
#include "base/own.h"

/* Room for the descriptors of any message; the union aligns it for cmsghdr. */
union control {
	char bytes[CMSG_SPACE(MSG_FDS_MAX * sizeof(int))];
	struct cmsghdr align;
};

void
fdpass_close(struct fdpass_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		own_fd_close(&set->fd[i]);
	set->n = 0;
}

ssize_t
fdpass_send(int socket, const void *bytes, size_t len, const int *fd, size_t n, int flags)
{
	union control control = { 0 };
	struct iovec part = { .iov_base = (void *)bytes, .iov_len = len };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t sent;

	assert(len > 0 && n <= MSG_FDS_MAX);
	if (n > 0) {
		struct cmsghdr *cmsg = &control.align;

		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fd, n * sizeof(int));
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(n * sizeof(int));
	}
	do
		sent = sendmsg(socket, &header, flags | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent;
}

ssize_t
fdpass_send_patiently(int socket, const void *bytes, size_t len,
		      const int *fd, size_t n, int flags)
{
	static const struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };
	uint64_t until = clock_ms() + FDPASS_PATIENCE_MS;
	ssize_t sent;

	while (((sent = fdpass_send(socket, bytes, len, fd, n, flags)) == -ETOOMANYREFS ||
		sent == -ENOBUFS || sent == -ENOMEM) && clock_ms() < until)
		nanosleep(&pause, NULL);
	return sent;
}

/* Moves the descriptors of one recvmsg() into set, and closes those that do not fit. If the kernel
 * has cut them although there was room, this process had no number left for the next one. */
static int
take_ancillary(struct msghdr *header, struct fdpass_set *set)
{
	size_t before = set->n;
	int r = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
			r = -EBADMSG;
			continue;
		}
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			own_fd int fd = -1;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (set->n == MSG_FDS_MAX)
				r = -EBADMSG;
			else
				set->fd[set->n++] = give_fd(fd);
		}
	}
	if (r == 0 && header->msg_flags & MSG_CTRUNC)
		r = set->n - before < MSG_FDS_MAX ? -EMFILE : -EBADMSG;
	return r;
}

ssize_t
fdpass_recv(int socket, void *bytes, size_t len, struct fdpass_set *set)
{
	union control control;
	struct iovec part = { .iov_base = bytes, .iov_len = len };
	struct msghdr header;
	ssize_t got;
	int r;

	assert(len > 0);
	do {
		header = (struct msghdr){
			.msg_iov = &part,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof(control),
		};
		got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;

	r = take_ancillary(&header, set);
	if (r < 0) {
		fdpass_close(set);
		return r;
	}
	return got;
}
