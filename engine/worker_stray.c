/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: stray processes, which are children that no other module knows.
 * A zygote makes workers as children of the supervisor. If the zygote is killed after it has made a
 * worker and before it has sent that worker's pid, this file finds the child in the kernel's list
 * of children. */
#include "engine/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/own.h"
#include "base/xalloc.h"
#include "engine/engine_parts.h"
#include "engine/pool.h"
#include "host/child.h"
#include "host/forker.h"
#include "host/helper.h"
#include "host/launcher.h"

struct worker_stray {
	LIST_ENTRY(worker_stray) link;
	struct engine *engine;
	struct event ended;
	pid_t pid;
	int pidfd;
};

static void
free_stray(struct worker_stray *stray)
{
	LIST_REMOVE(stray, link);
	event_del(&stray->ended);
	close(stray->pidfd);
	free(stray);
}

static void
on_stray_ended(evutil_socket_t fd, short, void *arg)
{
	struct worker_stray *stray = arg;
	struct engine *engine = stray->engine;
	siginfo_t info = { 0 };

	if (waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG) == 0 &&
	    info.si_pid == 0)
		return;
	free_stray(stray);
	engine->owner->on_freed(engine);
}

static bool
is_known(const struct engine *engine, pid_t pid)
{
	const struct worker_stray *stray;
	const struct worker *w;

	if (helper_is_one(pid) || child_is_one(pid))
		return true;
	LIST_FOREACH(stray, &engine->pool->strays, link)
		if (stray->pid == pid)
			return true;
	for (unsigned int i = 0; i < POOL_BUCKETS; i++)
		LIST_FOREACH(w, &engine->pool->by_serial[i], all_link)
			if (w->pid == pid)
				return true;
	return false;
}

/* The launcher answers orders first: then it is known whether it has made this process. */
static void
worker_stray_adopt(struct engine *engine, pid_t pid)
{
	own_fd int pidfd = launcher_adopt(engine->options.launcher, pid);
	struct worker_stray *stray;

	if (pidfd < 0 || is_known(engine, pid))
		return;
	syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	stray = xcalloc(1, sizeof(*stray));
	*stray = (struct worker_stray){ .engine = engine, .pid = pid, .pidfd = give_fd(pidfd) };
	LIST_INSERT_HEAD(&engine->pool->strays, stray, link);
	event_assign(&stray->ended, engine->base, stray->pidfd, EV_READ | EV_PERSIST,
		     on_stray_ended, stray);
	event_add(&stray->ended, NULL);
}

int
worker_open_children(void)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)gettid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

void
worker_adopt_strays(struct engine *engine)
{
	char text[65536], *at = text, *end;
	ssize_t n;

	/* What a fork server is making is known when it has answered. */
	engine->pool->seeks_strays = helper_is_being_made();
	n = engine->pool->seeks_strays || engine->children_fd < 0 ? -1
		: pread(engine->children_fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return;
	text[n] = '\0';
	for (;;) {
		long pid = strtol(at, &end, 10);

		if (end == at)
			return;
		at = end;
		if (!is_known(engine, (pid_t)pid))
			worker_stray_adopt(engine, (pid_t)pid);
	}
}

void
worker_forget_strays(struct engine *engine)
{
	struct worker_stray *stray;
	siginfo_t info;

	while ((stray = LIST_FIRST(&engine->pool->strays)) != NULL) {
		while (waitid(P_PIDFD, (id_t)stray->pidfd, &info, WEXITED) < 0 &&
		       errno == EINTR)
			;
		free_stray(stray);
	}
}
