/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel without memory for messages: the next calls of sendmsg(2) and recvmsg(2) fail. */
#ifndef TESTS_UNIT_PROTO_NO_MEMORY_H
#define TESTS_UNIT_PROTO_NO_MEMORY_H

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct failing {
	unsigned int times;	/* how many of the next calls fail */
	int error;
} failing_send, failing_receive;

static inline bool
failing_now(struct failing *failing)
{
	if (failing->times == 0)
		return false;
	failing->times--;
	errno = failing->error;
	return true;
}

ssize_t
sendmsg(int socket, const struct msghdr *header, int flags)
{
	return failing_now(&failing_send) ? -1 : syscall(SYS_sendmsg, socket, header, flags);
}

ssize_t
recvmsg(int socket, struct msghdr *header, int flags)
{
	return failing_now(&failing_receive) ? -1 : syscall(SYS_recvmsg, socket, header, flags);
}

#endif
