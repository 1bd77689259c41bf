/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the inotify descriptor.
 * Reads:   the kernel's events. Users who may write to a watched directory choose the names in
 * them.
 */
#include "engine/renewal.h"

#include <errno.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "policy/config.h"

#define QUIET_S 5
#define LONGEST_S 60		/* after the first change: then it is reported, even if changes go
				 * on */
/* Writes into an existing file are not watched: workers see them at once. */
#define CHANGES (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)

/* The files that worker/mounts.c copies, or mounts as they were when the zygote started; and
 * directories that change when packages are installed. */
static const struct {
	const char *directory;
	const char *name;	/* the only file that counts; NULL: all files count */
} watched[] = {
	{ "/etc", "ld.so.cache" },
	{ "/etc/alternatives", NULL },
	{ "/etc/ssl/certs", NULL },
	{ "/etc/ssl", "openssl.cnf" },
	{ "/usr/bin", NULL },
	{ "/usr/share", NULL },
	{ "/usr/lib/python3/dist-packages", NULL },
	{ "/usr/local/lib/python" PYTHON_VERSION "/dist-packages", NULL },
};

/* A watch, with the number that the kernel has given it. */
struct watch {
	int number;
	char *name;		/* NULL: any */
};

struct renewal {
	struct event *readable, *quiet;
	int fd;
	uint64_t since_ms;	/* the time of the first change that is not reported yet; 0: none */
	struct watch *watch;
	size_t n;
	void (*changed)(void *arg);
	void *arg;
};

/* Watches a directory. One that does not exist is left out. */
static void
renewal_watch(struct renewal *renewal, const char *directory, const char *name)
{
	int number = inotify_add_watch(renewal->fd, directory, CHANGES | IN_ONLYDIR | IN_MASK_ADD);

	if (number < 0)
		return;
	renewal->watch = xrealloc(renewal->watch,
				  (renewal->n + 1) * sizeof(*renewal->watch));
	renewal->watch[renewal->n++] = (struct watch){ number, name ? xstrdup(name) : NULL };
}

/* Watches the parent directory of a mounted path: workers have the file or directory that had this
 * path when the zygote started. */
static void
watch_path(struct renewal *renewal, const char *path)
{
	own_mem char *parent = xstrdup(path), *last = xstrdup(path);

	renewal_watch(renewal, dirname(parent), basename(last));
}

static bool
renewal_counts(const struct renewal *renewal, const struct inotify_event *event)
{
	/* Events were lost: one of them may have counted. */
	if (event->mask & IN_Q_OVERFLOW)
		return true;
	for (size_t i = 0; i < renewal->n; i++) {
		const struct watch *watch = &renewal->watch[i];

		if (watch->number == event->wd &&
		    (!watch->name || (event->len > 0 && strcmp(watch->name, event->name) == 0)))
			return true;
	}
	return false;
}

static void
renewal_on_readable(evutil_socket_t fd, short, void *arg)
{
	char bytes[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
	struct renewal *renewal = arg;
	ssize_t len = read((int)fd, bytes, sizeof(bytes)), at = 0;
	bool changed = false;

	while (at < len) {
		const struct inotify_event *event = (const void *)(bytes + at);

		changed = changed || renewal_counts(renewal, event);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
	if (changed) {
		static const struct timeval quiet = { .tv_sec = QUIET_S };
		uint64_t now_ms = clock_ms();

		if (renewal->since_ms == 0)
			renewal->since_ms = now_ms;
		if (now_ms - renewal->since_ms < LONGEST_S * 1000)
			evtimer_add(renewal->quiet, &quiet);
	}
}

static void
renewal_on_quiet(evutil_socket_t, short, void *arg)
{
	struct renewal *renewal = arg;

	renewal->since_ms = 0;
	log_line(LOG_INFO, "host-changed", "text=\"files of the host have changed that scripts see: "
		 "the zygotes are renewed\"");
	renewal->changed(renewal->arg);
}

int
renewal_new(struct event_base *base, const struct config *config, void (*changed)(void *arg),
	    void *arg, struct renewal **renewal_r)
{
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	struct renewal *renewal;

	if (fd < 0)
		return -errno;
	renewal = xcalloc(1, sizeof(*renewal));
	renewal->fd = fd;
	renewal->changed = changed;
	renewal->arg = arg;
	renewal->readable = xalloc_check(
		event_new(base, fd, EV_READ | EV_PERSIST, renewal_on_readable, renewal));
	renewal->quiet = xalloc_check(evtimer_new(base, renewal_on_quiet, renewal));
	for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++)
		renewal_watch(renewal, watched[i].directory, watched[i].name);
	for (unsigned int p = 0; p < config->n_profiles; p++) {
		const struct config_list *paths = &config->profile[p].paths;

		for (size_t i = 0; i < paths->n; i++)
			watch_path(renewal, paths->item[i]);
	}
	event_add(renewal->readable, NULL);
	*renewal_r = renewal;
	return 0;
}

void
renewal_free(struct renewal *renewal)
{
	if (!renewal)
		return;
	event_free(renewal->readable);
	event_free(renewal->quiet);
	close(renewal->fd);
	for (size_t i = 0; i < renewal->n; i++)
		free(renewal->watch[i].name);
	free(renewal->watch);
	free(renewal);
}
