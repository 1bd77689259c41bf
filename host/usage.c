/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the usage helper's process, and the socket to it.
 * Reads:   answers of the helper: numbers. */
#include "host/usage.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/passrights.h"
#include "base/xalloc.h"
#include "host/usage_parts.h"

static struct {
	pid_t pid;
	int socket;
	struct event *ended;
	void (*on_lost)(void *arg);
	void *arg;
} helper = { .socket = -1 };

#define PATIENCE_S 10		/* for one answer; even an expensive one takes a fraction of it */

/* Bytes or -errno. The guard of the loop interrupts a long wait, which is then continued. */
static ssize_t
usage_receive(struct usage_answer *answer_r)
{
	const uint64_t end_ms = clock_ms() + PATIENCE_S * 1000;
	ssize_t n;

	do
		n = recv(helper.socket, answer_r, sizeof(*answer_r), 0);
	while (n < 0 && errno == EINTR && clock_ms() < end_ms);
	return n < 0 ? -errno : n;
}

static int
usage_exchange(const struct usage_asked *asked, struct usage_answer *answer_r)
{
	ssize_t n;

	do
		n = send(helper.socket, asked, usage_asked_size(asked), MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	n = usage_receive(answer_r);
	if (n < 0)
		return (int)n;
	return n >= (ssize_t)offsetof(struct usage_answer, process) &&
	       answer_r->n <= USAGE_MEMBERS_MAX &&
	       (size_t)n == usage_answer_size(answer_r) ? 0 : -EPIPE;
}

static void
usage_clear(struct usage_answer *answer)
{
	memset(answer, 0, offsetof(struct usage_answer, process));
}

void
usage_ask(const struct usage_asked *asked, struct usage_answer *answer_r)
{
	usage_clear(answer_r);
	if (helper.socket < 0)
		usage_look(asked, answer_r);
	else if (usage_exchange(asked, answer_r) < 0) {
		usage_clear(answer_r);
		/* A helper that hangs counts as lost, too; the loop sees the end of the socket. */
		shutdown(helper.socket, SHUT_RDWR);
	}
}

uid_t
usage_uid(pid_t pid)
{
	const struct usage_asked asked = { .question = USAGE_UID, .pid = pid };
	struct usage_answer answer;

	usage_ask(&asked, &answer);
	return answer.uid;
}

int
usage_start(void)
{
	pid_t supervisor = getpid(), pid;
	int pair[2];

	const struct timeval patience = { .tv_sec = PATIENCE_S };

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	(void)passrights_set(pair[0], false);
	(void)setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	pid = fork();
	if (pid == 0)
		usage_live(pair[1], supervisor);
	close(pair[1]);
	if (pid < 0) {
		int error = errno;

		close(pair[0]);
		return -error;
	}
	helper.pid = pid;
	helper.socket = pair[0];
	return 0;
}

static void
usage_on_ended(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	event_del(helper.ended);
	log_line(LOG_ERR, "usage-lost", "text=\"the service ends: without its helper it cannot "
		 "measure workers\"");
	helper.on_lost(helper.arg);
}

/* The helper sends answers only, so its socket is readable when it has ended. */
void
usage_watch(struct event_base *base, void (*on_lost)(void *arg), void *arg)
{
	helper.on_lost = on_lost;
	helper.arg = arg;
	helper.ended = xalloc_check(event_new(base, helper.socket, EV_READ, usage_on_ended, NULL));
	event_add(helper.ended, NULL);
}

pid_t
usage_pid(void)
{
	return helper.pid;
}

void
usage_stop(void)
{
	if (helper.socket < 0)
		return;
	if (helper.ended != NULL)
		event_free(helper.ended);
	close(helper.socket);
	while (waitpid(helper.pid, NULL, 0) < 0 && errno == EINTR)
		;
	helper.ended = NULL;
	helper.socket = -1;
	helper.pid = 0;
}
