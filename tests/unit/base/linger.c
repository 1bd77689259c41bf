/* SPDX-License-Identifier: Apache-2.0 */
/* Two ends of a connection over loopback, and one message. */
#include "tests/unit/base/linger.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/stall.h"

int
linger_open(int *other_r)
{
	static const char filling[65536];
	const struct linger linger = { .l_onoff = 1, .l_linger = LINGER_S };
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listens = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(at);
	int other;

	stall_pause();		/* or it would interrupt connect */
	assert_return_code(bind(listens, (struct sockaddr *)&at, sizeof(at)), errno);
	assert_return_code(listen(listens, 1), errno);
	assert_return_code(getsockname(listens, (struct sockaddr *)&at, &len), errno);
	assert_return_code(connect(fd, (struct sockaddr *)&at, sizeof(at)), errno);
	other = accept4(listens, NULL, NULL, SOCK_CLOEXEC);
	assert_return_code(other, errno);
	if (other_r)
		*other_r = other;
	close(listens);
	while (send(fd, filling, sizeof(filling), MSG_DONTWAIT) > 0)
		;
	assert_return_code(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), errno);
	return fd;
}

int
linger_pass(int socket, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec part = { .iov_base = (char[]){ '\x01' }, .iov_len = 1 };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
				 .msg_controllen = sizeof(control) };
	ssize_t n;

	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	n = sendmsg(socket, &header, MSG_NOSIGNAL);
	if (n < 0)
		return errno;
	close(fd);
	return 0;
}
