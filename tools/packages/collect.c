/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing; the keeper removes.
 * A store has hundreds of environments rather than thousands: a look at each one is cheap. */
#include "tools/packages/collect.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/nextentry.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/keeper.h"
#include "engine/ready.h"
#include "policy/config.h"
#include "tools/sets/owned.h"
#include "tools/sets/set.h"
#include "tools/sets/store.h"

#define DUE_S 3600

struct found {
	char name[SET_NAME + 1];
	time_t used;
	uint64_t bytes;
};

void
collect_note_use(const char *store, const char *name)
{
	char path[PATH_MAX];
	own_fd int fd = -1;

	/* A failure is harmless (an environment that is just being removed, a full disk): the
	 * environment only looks older. */
	snprintf(path, sizeof(path), "%s/%s", store, name);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || futimens(fd, NULL) < 0)
		return;
}

bool
collect_find(int store, const char *name, time_t *used_r, uint64_t *bytes_r)
{
	char path[NAME_MAX + 8], text[32] = "";
	own_fd int fd = -1;
	struct stat st;

	if (fstatat(store, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	*used_r = st.st_mtime;
	*bytes_r = 0;
	snprintf(path, sizeof(path), "%s/bytes", name);
	fd = openat(store, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		*bytes_r = strtoull(text, NULL, 10);
	return true;
}

static int
collect_by_use(const void *a, const void *b)
{
	const struct found *left = a, *right = b;

	return (left->used > right->used) - (left->used < right->used);
}

/* All environments; those that were unused for longest come first. */
static struct found *
collect_look(const char *store, size_t *n_r)
{
	own_list DIR *list = opendir(store);
	struct found *found = NULL;
	struct dirent *entry;
	struct found one;
	size_t n = 0;
	int r = 0;

	while ((entry = nextentry(list, &r))) {
		if (!set_is_name(entry->d_name) ||
		    !collect_find(dirfd(list), entry->d_name, &one.used, &one.bytes))
			continue;
		memcpy(one.name, entry->d_name, SET_NAME + 1);
		found = xrealloc(found, (n + 1) * sizeof(*found));
		found[n++] = one;
	}
	if (n)
		qsort(found, n, sizeof(*found), collect_by_use);
	*n_r = n;
	return found;
}

void
collect_each(const char *store, void (*visit)(void *arg, const char *name, time_t used,
					      uint64_t bytes), void *arg)
{
	size_t n;
	own_mem struct found *found = collect_look(store, &n);

	for (size_t i = 0; i < n; i++)
		visit(arg, found[i].name, found[i].used, found[i].bytes);
}

bool
collect_one(struct engine *engine, const char *name)
{
	if (!engine_keeper(engine) || engine_uses(engine, name))
		return false;
	ready_forget(engine, NULL, name);
	return keeper_discard(engine_keeper(engine), name) == 0;
}

void
collect(struct engine *engine, const struct config *config, const char *keep, bool due_only)
{
	static time_t last;
	time_t now = time(NULL), oldest = now - (time_t)config->packages.keep_seconds;
	struct found *found;
	uint64_t total = 0;
	size_t n;

	if (!engine_keeper(engine) || (due_only && now - last < DUE_S))
		return;
	last = now;
	store_forget(config->packages.store, oldest);
	owned_forget(config->packages.store, oldest);
	found = collect_look(config->packages.store, &n);
	for (size_t i = 0; i < n; i++)
		total += found[i].bytes;
	for (size_t i = 0; i < n; i++) {
		bool old = found[i].used < oldest;

		if ((!old && total <= config->packages.store_bytes) ||
		    (keep && strcmp(found[i].name, keep) == 0) ||
		    engine_uses(engine, found[i].name))
			continue;
		if (!collect_one(engine, found[i].name))
			break;
		total -= found[i].bytes;
		log_line(LOG_INFO, "packages-removed", "environment=%s why=%s bytes=%llu",
			 found[i].name, old ? "age" : "size",
			 (unsigned long long)found[i].bytes);
	}
	free(found);
}
