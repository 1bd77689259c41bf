/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the fork servers.   Owns: nothing.
 * Reads:   MAKE, from the supervisor, which a client may have taken over: the number of a kind. Any
 * other message ends the fork server. */
#include "host/forker.h"

#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/passrights.h"
#include "base/xalloc.h"
#include "host/fence.h"
#include "host/helper.h"
#include "proto/frame.h"

/* Forks a helper as a child of the supervisor. fd_r: its pidfd, and the supervisor's end of its
 * socket. Its pid, or -errno. */
static pid_t
forker_make(enum helper_kind kind, int socket, pid_t supervisor, int fd_r[2])
{
	int pidfd = -1, pair[2], error;
	struct clone_args args = {
		.flags = CLONE_PARENT | CLONE_PIDFD,
		.pidfd = (uintptr_t)&pidfd,
	};
	pid_t pid;

	error = helper_pair(kind, pair);
	if (error < 0)
		return error;
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	error = errno;
	if (pid == 0) {
		close(socket);
		close(pair[0]);
		helper_live(kind, pair[1], supervisor);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return -error;
	}
	fd_r[0] = pidfd;
	fd_r[1] = pair[0];
	return pid;
}

static int
forker_serve(int socket, pid_t supervisor, const struct msg *order)
{
	struct msg msg = { .type = MSG_MADE };
	int fd[2] = { -1, -1 }, r;
	pid_t pid;

	if (order->type != MSG_MAKE)
		return -EBADMSG;
	pid = forker_make((enum helper_kind)order->make.kind, socket, supervisor, fd);
	msg.made.error = pid < 0 ? (uint32_t)-pid : 0;
	msg.made.pid = pid < 0 ? 0 : (uint32_t)pid;
	r = frame_send(socket, &msg, fd, pid < 0 ? 0 : 2);
	for (size_t i = 0; i < 2; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	return r;
}

_Noreturn void
forker_live(const void *keeps, int socket, pid_t supervisor)
{
	const struct forker_keeps *those = keeps;
	int *keep = xcalloc(those->n + 1, sizeof(*keep));
	struct frame_reader reader;
	int r = helper_settle("mcp-forker", supervisor);

	memcpy(keep, those->fd, those->n * sizeof(*keep));
	keep[those->n] = socket;
	if (r == 0)
		r = helper_keep(keep, those->n + 1);
	if (r == 0)
		r = fence_forker();
	if (r == 0)
		passrights_set(socket, false);
	frame_reader_init(&reader, FROM_SUPERVISOR);
	while (r == 0) {
		struct frame frame = { 0 };

		r = frame_reader_read(&reader, socket, &frame);
		if (r == 1)
			r = forker_serve(socket, supervisor, &frame.msg);
		frame_done(&frame);
	}
	helper_exit("forker-ends", r);
}
