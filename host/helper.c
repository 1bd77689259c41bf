/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor and its helpers.   Owns: the process, pidfd and socket of each helper.
 * Reads:   nothing. */
#include "host/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "base/trace.h"
#include "base/xalloc.h"
#include "proto/frame.h"

#define SOCKET_FD (STDERR_FILENO + 1)	/* the helper's socket, where nothing else is kept */
#define REAP_MS 3000			/* in which a killed process has to end */
#define REAP_MORE_MS 100		/* the same, when another one has not */
#define LEASES 4			/* processes of one kind at a time; more than two only while
					 * one that was killed has not ended yet */

static const struct {
	const char *name;
	int type;		/* of its socket */
	const char *without;
} kinds[] = {
	[HELPER_LAUNCHER] = { "launcher", SOCK_STREAM,
			      "until it is made again, no zygote can be started" },
	[HELPER_DIRECTORY] = { "directory", SOCK_STREAM,
			       "until it is made again, lookups of users wait" },
	[HELPER_USAGE] = { "usage", SOCK_SEQPACKET,
			   "until it is made again, the use of workers is not sampled" },
	[HELPER_FILES] = { "files", SOCK_STREAM,
			   "until it is made again, files to be kept or read wait" },
	[HELPER_FORKER] = { "forker", SOCK_STREAM,
			    "until it is made again, one process is left that makes helpers" },
};

static struct {
	helper_live_fn *live;
	const void *arg;
} plans[HELPER_KIND_COUNT];

/* A process that was killed and is not reaped yet. */
struct ending {
	TAILQ_ENTRY(ending) link;
	pid_t pid;
	int pidfd;
	struct event *ended;
};

/* A file in memory that all helpers have, without bytes: each helper has a lock on one byte of its
 * kind, which ends with the process. */
static int leases = -1;

static TAILQ_HEAD(, helper) all = TAILQ_HEAD_INITIALIZER(all);
static TAILQ_HEAD(, ending) endings = TAILQ_HEAD_INITIALIZER(endings);
static struct helper_state states[HELPER_KIND_COUNT];

/* ---- in the supervisor ---- */

const char *
helper_name(enum helper_kind kind)
{
	return kinds[kind].name;
}

const char *
helper_without(enum helper_kind kind)
{
	return kinds[kind].without;
}

struct helper_state
helper_state(enum helper_kind kind)
{
	return states[kind];
}

void
helper_set_away(struct helper *helper, bool away)
{
	if (helper->away == away)
		return;
	helper->away = away;
	states[helper->kind].away += away ? 1u : -1u;
	states[helper->kind].lost += away;
}

void
helper_plan(enum helper_kind kind, helper_live_fn *live, const void *arg)
{
	plans[kind].live = live;
	plans[kind].arg = arg;
}

static int
leases_open(void)
{
	own_fd int fd = -1;

	if (leases >= 0)
		return 0;
	fd = memfd_create("mcp-leases", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd >= 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	leases = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, SOCKET_FD + 1);
	return leases < 0 ? -errno : 0;
}

/* Takes a lease for this process. A supervisor that a client has taken over can have helpers made
 * as often as it likes, but not more than these at a time. */
static bool
lease_take(enum helper_kind kind)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };

	for (int i = 0; i < LEASES; i++) {
		lock.l_start = (off_t)kind * LEASES + i;
		if (fcntl(leases, F_SETLK, &lock) == 0)
			return true;
	}
	return false;
}

_Noreturn void
helper_live(enum helper_kind kind, int socket, pid_t supervisor)
{
	if (plans[kind].live && lease_take(kind))
		plans[kind].live(plans[kind].arg, socket, supervisor);
	_exit(EXIT_FAILURE);
}

int
helper_pair(enum helper_kind kind, int pair_r[2])
{
	int error;

	if (socketpair(AF_UNIX, kinds[kind].type | SOCK_CLOEXEC, 0, pair_r) < 0)
		return -errno;
	if (fcntl(pair_r[0], F_SETFL, O_NONBLOCK) == 0)
		return 0;
	error = errno;
	close(pair_r[0]);
	close(pair_r[1]);
	return -error;
}

void
helper_took(struct helper *helper, pid_t pid, int pidfd, int socket)
{
	helper->pid = pid;
	helper->pidfd = pidfd;
	helper->socket = socket;
	helper->made_ms = clock_ms();
	helper->stands = false;
	TAILQ_INSERT_TAIL(&all, helper, link);
	states[helper->kind].up++;
}

int
helper_fork(struct helper *helper, enum helper_kind kind)
{
	pid_t supervisor = getpid(), pid;
	sigset_t blocked, before;
	int pair[2], error;

	helper->kind = kind;
	helper->pid = 0;
	helper->pidfd = helper->socket = -1;
	error = leases_open();
	if (error == 0)
		error = helper_pair(kind, pair);
	if (error < 0)
		return error;
	/* The supervisor's handlers must not run in the helper. */
	sigfillset(&blocked);
	sigprocmask(SIG_SETMASK, &blocked, &before);
	pid = fork();
	error = errno;
	if (pid == 0) {
		close(pair[0]);
		helper_live(kind, pair[1], supervisor);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return -error;
	}
	helper_took(helper, pid, (int)syscall(SYS_pidfd_open, pid, 0), pair[0]);
	return helper->pidfd < 0 ? -errno : 0;
}

/* A process that could not be killed, or that the kernel holds, must not hold the supervisor, nor
 * may several of them, one after the other. */
static void
reap(int pidfd)
{
	static bool one_stays;
	const uint64_t end_ms = clock_ms() + (one_stays ? REAP_MORE_MS : REAP_MS);
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };
	siginfo_t info = { 0 };

	for (uint64_t now_ms = clock_ms(); now_ms < end_ms; now_ms = clock_ms())
		if (poll(&ended, 1, (int)(end_ms - now_ms)) > 0)
			break;
	one_stays = waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0;
	if (one_stays)
		log_line(LOG_ERR, "helper-stays", "text=\"a helper was killed, and has not ended\"");
}

/* Kills the process and forgets it. Its pidfd, which the caller closes; -1: there is no process. */
static int
helper_let_go(struct helper *helper)
{
	int pidfd = helper->pidfd;

	if (helper->socket >= 0)
		close(helper->socket);
	if (helper->pid != 0) {
		TAILQ_REMOVE(&all, helper, link);
		states[helper->kind].up--;
	}
	if (pidfd >= 0)
		syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	helper->pid = 0;
	helper->pidfd = helper->socket = -1;
	return pidfd;
}

void
helper_end(struct helper *helper)
{
	own_fd int pidfd = helper_let_go(helper);

	if (pidfd >= 0)
		reap(pidfd);
}

static void
ending_free(struct ending *ending)
{
	TAILQ_REMOVE(&endings, ending, link);
	event_free(ending->ended);
	close(ending->pidfd);
	free(ending);
}

static void
helper_on_ended(evutil_socket_t fd, short, void *arg)
{
	siginfo_t info = { 0 };

	if (waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG) < 0 || info.si_pid != 0)
		ending_free(arg);
}

void
helper_drop(struct helper *helper, struct event_base *base)
{
	struct ending *ending;
	pid_t pid = helper->pid;
	int pidfd = helper_let_go(helper);

	if (pidfd < 0)
		return;
	ending = xcalloc(1, sizeof(*ending));
	ending->pid = pid;
	ending->pidfd = pidfd;
	ending->ended = xalloc_check(event_new(base, pidfd, EV_READ | EV_PERSIST, helper_on_ended,
					       ending));
	TAILQ_INSERT_TAIL(&endings, ending, link);
	event_add(ending->ended, NULL);
}

void
helper_reap_all(void)
{
	struct ending *ending;

	while ((ending = TAILQ_FIRST(&endings))) {
		reap(ending->pidfd);
		ending_free(ending);
	}
	/* Helpers hold it by copies of their own. */
	if (leases >= 0)
		close(leases);
	leases = -1;
}

int
helper_await(const struct helper *helper, struct frame_reader *reader, uint64_t until_ms,
	     struct frame *frame_r)
{
	struct pollfd line = { .fd = helper->socket, .events = POLLIN };
	int r;

	while ((r = frame_reader_read(reader, helper->socket, frame_r)) == 0) {
		uint64_t now_ms = clock_ms();

		if (now_ms >= until_ms)
			return -ETIMEDOUT;
		if (poll(&line, 1, (int)(until_ms - now_ms) + 1) < 0 && errno != EINTR)
			return -errno;
	}
	return r;
}

bool
helper_is_one(pid_t pid)
{
	const struct helper *helper;
	const struct ending *ending;

	TAILQ_FOREACH(helper, &all, link)
		if (helper->pid == pid)
			return true;
	TAILQ_FOREACH(ending, &endings, link)
		if (ending->pid == pid)
			return true;
	return false;
}

bool
helper_is_stopped(int pidfd)
{
	siginfo_t info = { 0 };

	return waitid(P_PIDFD, (id_t)pidfd, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid != 0;
}

void
helpers_look_after(void)
{
	struct helper *helper;

	TAILQ_FOREACH(helper, &all, link) {
		bool stands = helper_is_stopped(helper->pidfd);

		if (stands && helper->stands) {
			log_line(LOG_WARNING, "helper-stands", "helper=%s text=\"somebody has "
				 "stopped it; it is killed\"", helper_name(helper->kind));
			syscall(SYS_pidfd_send_signal, helper->pidfd, SIGKILL, NULL, 0);
		}
		helper->stands = stands;
	}
}

/* ---- in the helper ---- */

void
helper_reset_signals(void)
{
	const struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		sigaction(number, &action, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

int
helper_settle(const char *name, pid_t supervisor)
{
	own_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	trace_begin(TRACE_OFF);
	helper_reset_signals();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
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
	return helper_keep(socket, 1);
}

static int
helper_by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

int
helper_keep(const int *fd, size_t n)
{
	own_mem int *keep = xcalloc(n + 1, sizeof(*keep));
	unsigned int from = STDERR_FILENO + 1;

	memcpy(keep, fd, n * sizeof(*keep));
	keep[n] = leases;		/* to close it would end this process's lease */
	qsort(keep, n + 1, sizeof(*keep), helper_by_number);
	for (size_t i = 0; i <= n; i++) {
		if (keep[i] < (int)from)
			continue;
		if (keep[i] > (int)from && close_range(from, (unsigned int)keep[i] - 1, 0) < 0)
			return -errno;
		from = (unsigned int)keep[i] + 1;
	}
	return close_range(from, ~0u, 0) < 0 ? -errno : 0;
}

_Noreturn void
helper_exit(const char *event, int error)
{
	if (error == -EPIPE || error == -ECONNRESET)
		_exit(EXIT_SUCCESS);
	log_line(LOG_ERR, event, "err=%s", strerrorname_np(-error));
	_exit(EXIT_FAILURE);
}
