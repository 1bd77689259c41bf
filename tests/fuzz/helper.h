/* SPDX-License-Identifier: Apache-2.0 */
/* The helper's end of a socket, for the target. The supervisor's side forks its helper and calls
 * the function that never returns. The target defines that function: it sends the socket to the
 * target (helper_give) and exits. */
#ifndef TESTS_FUZZ_HELPER_H
#define TESTS_FUZZ_HELPER_H

#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/fdpass.h"
#include "tests/fuzz/fuzz.h"

static int helper_line[2] = { -1, -1 };
static bool helper_is_taken;

/* Before the fork. */
static inline void
helper_prepare(void)
{
	helper_is_taken = false;
	if (helper_line[0] < 0)
		MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, helper_line) == 0);
}

/* In the helper. One that is made again, after the target has ended the first, is not wanted. */
static inline _Noreturn void
helper_give(int socket)
{
	if (helper_is_taken)
		_exit(EXIT_SUCCESS);
	_exit(fdpass_send(helper_line[0], "", 1, &socket, 1, 0) == 1 ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* In the target: the helper's socket, the caller's. */
static inline int
helper_take(void)
{
	struct fdpass_set set = { .n = 0 };
	char byte;

	helper_is_taken = true;
	MUST(fdpass_recv(helper_line[1], &byte, 1, &set) == 1 && set.n == 1);
	return set.fd[0];
}

#endif
