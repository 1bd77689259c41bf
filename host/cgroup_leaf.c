/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, without privilege.   Owns: tenants' directories and the leaves.
 * A leaf that is busy when it is retired is removed when the kernel reports that it is empty (a
 * change of cgroup.events, seen by inotify). No removal is tried in a loop. */
#include "host/cgroup_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/own.h"
#include "base/xalloc.h"
#include "host/cgroup_text.h"

#define PIECE 4096	/* longer texts are read piece by piece */

/* ---- files ---- */

ssize_t
cgroup_read_at(int dir, const char *file, char *text_r, size_t size)
{
	own_fd int fd = openat(dir, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	/* The kernel gives long lists one page per read, and every other file in one read. */
	do {
		n = pread(fd, text_r + len, size - 1 - len, (off_t)len);
		len += n > 0 ? (size_t)n : 0;
	} while (n > 0 && size > PIECE && len < size - 1);
	text_r[len] = '\0';
	return n < 0 ? -errno : (ssize_t)len;
}

int
cgroup_write_at(int dir, const char *file, const char *text)
{
	own_fd int fd = openat(dir, file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int
cgroup_leaf_open_directory(int dir, const char *name, int *fd_r)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return -errno;
	*fd_r = fd;
	return 0;
}

int
cgroup_make_directory(int dir, const char *name, int *fd_r)
{
	if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	return cgroup_leaf_open_directory(dir, name, fd_r);
}

int
cgroup_write_number(int directory, const char *file, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return cgroup_write_at(directory, file, text);
}

/* ---- tenants and leaves ---- */

/* Makes the tenant's directory, if there is none or it was removed. A removed directory had no
 * leaves, and its descriptor is useless. */
static int
make_tenant_directory(struct cgroup_tenant *tenant)
{
	struct cgroup_root *root = tenant->root;
	int fd, r = cgroup_make_directory(root->tenants_fd, tenant->name, &fd);

	if (r == -ENOENT) {
		r = cgroup_root_make_tenants(root);
		if (r == 0)
			r = cgroup_make_directory(root->tenants_fd, tenant->name, &fd);
	}
	if (r < 0)
		return r;
	if (tenant->fd >= 0)
		close(tenant->fd);
	tenant->fd = fd;
	tenant->weight = 0;
	cgroup_enable_controllers(fd, true, NULL);
	/* Leaves have limits of their own, whose sum can be above what there is. */
	return root->controllers.pids ? cgroup_write_number(fd, "pids.max", root->tasks.tenant) : 0;
}

int
cgroup_tenant_new(struct cgroup_root *root, const char *name,
		  struct cgroup_tenant **tenant_r)
{
	struct cgroup_tenant *tenant = xcalloc(1, sizeof(*tenant));
	int r;

	tenant->root = root;
	snprintf(tenant->name, sizeof(tenant->name), "%s", name);
	tenant->fd = -1;
	r = make_tenant_directory(tenant);
	if (r < 0) {
		free(tenant);
		return r;
	}
	root->count++;
	*tenant_r = tenant;
	return 0;
}

static void
tenant_try_remove(struct cgroup_tenant *tenant)
{
	if (!tenant->released || tenant->leaves > 0)
		return;
	unlinkat(tenant->root->tenants_fd, tenant->name, AT_REMOVEDIR);
	tenant->root->count--;
	close(tenant->fd);
	free(tenant);
}

void
cgroup_tenant_release(struct cgroup_tenant *tenant)
{
	if (tenant == NULL)
		return;
	tenant->released = true;
	tenant_try_remove(tenant);
}

int
cgroup_leaf_limit(struct cgroup_leaf *leaf, const struct cgroup_limits *limits)
{
	const struct cgroup_controllers *have = &leaf->tenant->root->controllers;
	int r = 0;

	if (have->memory && limits->memory_bytes != leaf->limits.memory_bytes)
		r = cgroup_write_number(leaf->fd, "memory.max", limits->memory_bytes);
	if (r == 0 && have->pids && limits->pids != leaf->limits.pids)
		r = cgroup_write_number(leaf->fd, "pids.max", limits->pids);
	if (r == 0 && have->cpu && limits->cpu_percent != leaf->limits.cpu_percent) {
		char text[32];

		/* In periods of 100 ms, the kernel's default: cgroup-v2.rst, "CPU Interface Files".
		 */
		snprintf(text, sizeof(text), "%u000 100000", limits->cpu_percent);
		r = cgroup_write_at(leaf->fd, "cpu.max", text);
	}
	if (r == 0)
		leaf->limits = *limits;
	return r;
}

int
cgroup_leaf_raise_memory(struct cgroup_leaf *leaf, uint64_t memory_bytes)
{
	struct cgroup_limits limits = leaf->limits;

	if (memory_bytes <= limits.memory_bytes)
		return 0;
	limits.memory_bytes = memory_bytes;
	return cgroup_leaf_limit(leaf, &limits);
}

/* open: makes or opens the leaf's directory. A kernel without swap accounting has no
 * memory.swap.max. */
static int
leaf_open(struct cgroup_tenant *tenant, uint64_t serial,
	  int (*open)(int dir, const char *name, int *fd_r), struct cgroup_leaf **leaf_r)
{
	struct cgroup_leaf *leaf = xcalloc(1, sizeof(*leaf));
	int r;

	leaf->tenant = tenant;
	leaf->watch = leaf->cpu_fd = -1;
	snprintf(leaf->name, sizeof(leaf->name), "%llu", (unsigned long long)serial);
	r = open(tenant->fd, leaf->name, &leaf->fd);
	if (r < 0) {
		free(leaf);
		return r;
	}
	tenant->leaves++;
	tenant->root->count++;
	if (tenant->root->controllers.memory)
		r = cgroup_write_at(leaf->fd, "memory.swap.max", "0");
	if (r < 0 && r != -ENOENT) {
		cgroup_leaf_retire(leaf);
		return r;
	}
	*leaf_r = leaf;
	return 0;
}

int
cgroup_leaf_new(struct cgroup_tenant *tenant, uint64_t serial,
		const struct cgroup_limits *limits, struct cgroup_leaf **leaf_r)
{
	struct cgroup_leaf *leaf;
	int r = leaf_open(tenant, serial, cgroup_make_directory, &leaf);

	if (r == -ENOENT) {
		r = make_tenant_directory(tenant);
		if (r == 0)
			r = leaf_open(tenant, serial, cgroup_make_directory, &leaf);
	}
	if (r < 0)
		return r;
	r = cgroup_leaf_limit(leaf, limits);
	if (r == 0)
		r = cgroup_leaf_keep_together(leaf, true);
	if (r < 0) {
		cgroup_leaf_retire(leaf);
		return r;
	}
	*leaf_r = leaf;
	return 0;
}

int
cgroup_leaf_adopt(struct cgroup_tenant *tenant, uint64_t serial, struct cgroup_leaf **leaf_r)
{
	return leaf_open(tenant, serial, cgroup_leaf_open_directory, leaf_r);
}

int
cgroup_leaf_fd(const struct cgroup_leaf *leaf)
{
	return leaf->fd;
}

ssize_t
cgroup_leaf_read(const struct cgroup_leaf *leaf, const char *file, char *text_r,
		 size_t size)
{
	return cgroup_read_at(leaf->fd, file, text_r, size);
}

int
cgroup_leaf_cpu(struct cgroup_leaf *leaf, uint64_t *cpu_us_r)
{
	char text[1024];
	ssize_t n;

	if (leaf->cpu_fd < 0)
		leaf->cpu_fd =
			openat(leaf->fd, "cpu.stat", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (leaf->cpu_fd < 0)
		return -errno;
	n = pread(leaf->cpu_fd, text, sizeof(text) - 1, 0);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return cgroup_text_counter(text, "usage_usec", cpu_us_r);
}

void
cgroup_leaf_counters(struct cgroup_leaf *leaf, bool why_ended,
		     struct cgroup_counters *counters_r)
{
	const struct cgroup_controllers *have = &leaf->tenant->root->controllers;
	struct cgroup_counters counters = { 0 };
	char text[1024];

	cgroup_leaf_cpu(leaf, &counters.cpu_us);
	if (have->memory) {
		if (cgroup_read_at(leaf->fd, "memory.peak", text, sizeof(text)) > 0 ||
		    cgroup_read_at(leaf->fd, "memory.current", text, sizeof(text)) > 0)
			cgroup_text_number(text, &counters.memory_peak);
		if (why_ended &&
		    cgroup_read_at(leaf->fd, "memory.events", text, sizeof(text)) > 0)
			cgroup_text_counter(text, "oom_kill", &counters.oom_kills);
	}
	if (have->pids && why_ended &&
	    cgroup_read_at(leaf->fd, "pids.events", text, sizeof(text)) > 0)
		cgroup_text_counter(text, "max", &counters.pids_hits);
	*counters_r = counters;
}

static int
cgroup_leaf_read_number(int directory, const char *file, uint64_t *value_r)
{
	char text[32];
	ssize_t n = cgroup_read_at(directory, file, text, sizeof(text));

	return n < 0 ? (int)n : cgroup_text_number(text, value_r);
}

int
cgroup_tenant_memory(const struct cgroup_tenant *tenant, uint64_t *bytes_r)
{
	return cgroup_leaf_read_number(tenant->fd, "memory.current", bytes_r);
}

int
cgroup_tenant_cpu(const struct cgroup_tenant *tenant, uint64_t *cpu_us_r)
{
	char text[1024];
	ssize_t n = cgroup_read_at(tenant->fd, "cpu.stat", text, sizeof(text));

	return n < 0 ? (int)n : cgroup_text_counter(text, "usage_usec", cpu_us_r);
}

int
cgroup_tenant_weigh(struct cgroup_tenant *tenant, unsigned int weight)
{
	int r;

	if (!tenant->root->controllers.cpu || weight == tenant->weight)
		return 0;
	r = cgroup_write_number(tenant->fd, "cpu.weight", weight);
	if (r == 0)
		tenant->weight = weight;
	return r;
}

int
cgroup_leaf_memory(const struct cgroup_leaf *leaf, uint64_t *bytes_r)
{
	return cgroup_leaf_read_number(leaf->fd, "memory.current", bytes_r);
}

int
cgroup_leaf_pids(const struct cgroup_leaf *leaf, uint32_t *pids_r)
{
	uint64_t pids = 0;
	int r = cgroup_leaf_read_number(leaf->fd, "pids.current", &pids);

	if (r == 0)
		*pids_r = (uint32_t)pids;
	return r;
}

int
cgroup_leaf_keep_together(const struct cgroup_leaf *leaf, bool together)
{
	if (!leaf->tenant->root->controllers.memory)
		return 0;
	return cgroup_write_at(leaf->fd, "memory.oom.group", together ? "1" : "0");
}

int
cgroup_leaf_freeze(const struct cgroup_leaf *leaf, bool freeze)
{
	return cgroup_write_at(leaf->fd, "cgroup.freeze", freeze ? "1" : "0");
}

int
cgroup_leaf_kill(const struct cgroup_leaf *leaf)
{
	return cgroup_write_at(leaf->fd, "cgroup.kill", "1");
}

/* ---- removal ---- */

static void
leaf_free(struct cgroup_leaf *leaf)
{
	struct cgroup_tenant *tenant = leaf->tenant;

	if (leaf->cpu_fd >= 0)
		close(leaf->cpu_fd);
	close(leaf->fd);
	free(leaf);
	tenant->leaves--;
	tenant->root->count--;
	tenant_try_remove(tenant);
}

static int
leaf_try_remove(struct cgroup_leaf *leaf)
{
	if (unlinkat(leaf->tenant->fd, leaf->name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

static void
cgroup_leaf_arm_retry(struct cgroup_root *root)
{
	/* A fallback for a missing inotify watch only. */
	static const struct timeval second = { 1, 0 };

	if (root->retry != NULL && !TAILQ_EMPTY(&root->dying))
		event_add(root->retry, &second);
}

void
cgroup_leaf_retire(struct cgroup_leaf *leaf)
{
	struct cgroup_root *root;
	char path[64];

	if (leaf == NULL)
		return;
	root = leaf->tenant->root;
	if (leaf_try_remove(leaf) == 0) {
		leaf_free(leaf);
		return;
	}
	if (root->inotify_fd >= 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d/cgroup.events",
			 leaf->fd);
		leaf->watch = inotify_add_watch(root->inotify_fd, path, IN_MODIFY);
		/* The leaf may have become empty just before the watch existed. */
		if (leaf_try_remove(leaf) == 0) {
			leaf_free(leaf);
			return;
		}
	}
	TAILQ_INSERT_TAIL(&root->dying, leaf, link);
	cgroup_leaf_arm_retry(root);
}

static void
retry_leaves(struct cgroup_root *root, int watch)
{
	struct cgroup_leaf *leaf, *next;

	for (leaf = TAILQ_FIRST(&root->dying); leaf != NULL; leaf = next) {
		next = TAILQ_NEXT(leaf, link);
		if ((watch >= 0 && leaf->watch != watch) || leaf_try_remove(leaf) < 0)
			continue;
		TAILQ_REMOVE(&root->dying, leaf, link);
		leaf_free(leaf);
	}
}

static void
on_changed(evutil_socket_t fd, short, void *arg)
{
	struct cgroup_root *root = arg;
	char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	const struct inotify_event *event;
	ssize_t n;

	n = read(fd, buffer, sizeof(buffer));
	for (ssize_t at = 0; at < n; at += (ssize_t)(sizeof(*event) + event->len)) {
		event = (const struct inotify_event *)(const void *)(buffer + at);
		if (event->mask & IN_Q_OVERFLOW)
			retry_leaves(root, -1);
		else if (event->mask & IN_MODIFY)
			retry_leaves(root, event->wd);
	}
}

static void
cgroup_leaf_on_retry(evutil_socket_t, short, void *arg)
{
	struct cgroup_root *root = arg;

	retry_leaves(root, -1);
	cgroup_leaf_arm_retry(root);
}

int
cgroup_root_watch(struct cgroup_root *root, struct event_base *base)
{
	root->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (root->inotify_fd < 0)
		return -errno;
	root->changed = event_new(base, root->inotify_fd, EV_READ | EV_PERSIST,
				  on_changed, root);
	root->retry = evtimer_new(base, cgroup_leaf_on_retry, root);
	if (root->changed == NULL || root->retry == NULL ||
	    event_add(root->changed, NULL) < 0) {
		cgroup_root_unwatch(root);
		return -ENOMEM;
	}
	return 0;
}

void
cgroup_root_unwatch(struct cgroup_root *root)
{
	if (root->changed != NULL)
		event_free(root->changed);
	if (root->retry != NULL)
		event_free(root->retry);
	if (root->inotify_fd >= 0)
		close(root->inotify_fd);
	root->changed = root->retry = NULL;
	root->inotify_fd = -1;
}
