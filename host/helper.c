/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor and its helpers.   Owns: the process, pidfd and socket of each helper.
 * Reads:   nothing. */
#include "host/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own.h"

#define SOCKET_FD (STDERR_FILENO + 1)	/* the helper's socket, where nothing else is kept */

/* ---- in the supervisor ---- */

int
helper_fork(struct helper *helper)
{
	pid_t supervisor = getpid();
	sigset_t all, before;
	int pair[2], error;

	*helper = (struct helper){ .pidfd = -1, .socket = -1 };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	/* The supervisor's handlers must not run in the helper. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	helper->pid = fork();
	error = errno;
	if (helper->pid == 0) {
		*helper = (struct helper){ .pid = supervisor, .pidfd = -1, .socket = pair[1] };
		return 1;
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(pair[1]);
	helper->socket = pair[0];
	if (helper->pid < 0)
		return -error;
	helper->pidfd = (int)syscall(SYS_pidfd_open, helper->pid, 0);
	if (helper->pidfd < 0 || fcntl(helper->socket, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

void
helper_end(struct helper *helper)
{
	siginfo_t info;

	if (helper->socket >= 0)
		close(helper->socket);
	if (helper->pidfd >= 0) {
		syscall(SYS_pidfd_send_signal, helper->pidfd, SIGKILL, NULL, 0);
		while (waitid(P_PIDFD, (id_t)helper->pidfd, &info, WEXITED) < 0 && errno == EINTR)
			;
		close(helper->pidfd);
	}
	*helper = (struct helper){ .pidfd = -1, .socket = -1 };
}

/* ---- in the helper ---- */

static void
default_signals(void)
{
	const struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		sigaction(number, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

int
helper_settle(const char *name, pid_t supervisor)
{
	own_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	default_signals();
	setsid();
	if (prctl(PR_SET_NAME, name) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	if (getppid() != supervisor)
		return -ESRCH;
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return -errno;
	return 0;
}

int
helper_keep_only(int *socket)
{
	if (*socket != SOCKET_FD && dup3(*socket, SOCKET_FD, O_CLOEXEC) < 0)
		return -errno;
	*socket = SOCKET_FD;
	return close_range(SOCKET_FD + 1, ~0u, 0) < 0 ? -errno : 0;
}

_Noreturn void
helper_exit(const char *event, int error)
{
	if (error == -EPIPE || error == -ECONNRESET)
		_exit(EXIT_SUCCESS);
	log_line(LOG_ERR, event, "err=%s", strerrorname_np(-error));
	_exit(EXIT_FAILURE);
}
