/* Runs in: the supervisor.   Owns: the directory "tenants" of the store.
 * The files are empty: their names are sets, their times the last use. Nothing waits for the disk;
 * a crash may lose the latest. */
#include "tools/sets/owned.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/xalloc.h"

static void
place_of_all(const char *store, char path_r[PATH_MAX])
{
	snprintf(path_r, PATH_MAX, "%s/tenants", store);
}

static void
place_of(const char *store, const char *principal, char path_r[PATH_MAX])
{
	char tenant[SET_NAME + 1];

	set_tenant(principal, tenant);
	snprintf(path_r, PATH_MAX, "%s/tenants/%s", store, tenant);
}

/* The last use first; equal times in the order of names, so that the order is always the same. */
static int
by_use(const void *a, const void *b)
{
	const struct owned *left = a, *right = b;

	if (left->used.tv_sec != right->used.tv_sec)
		return left->used.tv_sec < right->used.tv_sec ? 1 : -1;
	if (left->used.tv_nsec != right->used.tv_nsec)
		return left->used.tv_nsec < right->used.tv_nsec ? 1 : -1;
	return strcmp(left->name, right->name);
}

/* All of a tenant's directory, in order; the caller frees it. list NULL: none. */
static struct owned *
look(DIR *list, size_t *n_r)
{
	struct owned *all = NULL;
	struct dirent *entry;
	struct stat st;
	size_t n = 0;

	while (list && (entry = readdir(list))) {
		if (!set_is_name(entry->d_name) ||
		    fstatat(dirfd(list), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		all = xrealloc(all, (n + 1) * sizeof(*all));
		memcpy(all[n].name, entry->d_name, SET_NAME + 1);
		all[n++].used = st.st_mtim;
	}
	if (n)
		qsort(all, n, sizeof(*all), by_use);
	*n_r = n;
	return all;
}

static void
close_list(DIR *list)
{
	if (list)
		closedir(list);
}

/* Those beyond the number, and those of before the time. */
static void
forget(DIR *list, size_t most, time_t oldest)
{
	struct owned *all;
	size_t n;

	all = look(list, &n);
	for (size_t i = 0; i < n; i++)
		if (i >= most || all[i].used.tv_sec < oldest)
			unlinkat(dirfd(list), all[i].name, 0);
	free(all);
}

void
owned_note(const char *store, const char *principal, const char *name)
{
	char path[PATH_MAX];
	struct timespec now[2];
	own_fd int fd = -1;
	DIR *list;

	place_of_all(store, path);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return;
	place_of(store, principal, path);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return;
	list = opendir(path);
	if (list)
		fd = openat(dirfd(list), name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	/* The kernel's own time of a file is that of its last tick. */
	clock_gettime(CLOCK_REALTIME, &now[0]);
	now[1] = now[0];
	if (fd >= 0 && futimens(fd, now) == 0)
		forget(list, OWNED_MAX, 0);
	close_list(list);
}

bool
owned_any(const char *store, const char *principal)
{
	char path[PATH_MAX];
	struct stat st;

	place_of(store, principal, path);
	return stat(path, &st) == 0;
}

size_t
owned_list(const char *store, const char *principal, struct owned owned_r[OWNED_MAX])
{
	char path[PATH_MAX];
	struct owned *all;
	DIR *list;
	size_t n;

	place_of(store, principal, path);
	list = opendir(path);
	all = look(list, &n);
	if (n > OWNED_MAX)
		n = OWNED_MAX;
	if (n)
		memcpy(owned_r, all, n * sizeof(*all));
	free(all);
	close_list(list);
	return n;
}

void
owned_forget(const char *store, time_t oldest)
{
	char path[PATH_MAX], tenant[PATH_MAX];
	struct dirent *entry;
	DIR *all, *list;

	place_of_all(store, path);
	all = opendir(path);
	while (all && (entry = readdir(all))) {
		if (!set_is_name(entry->d_name))
			continue;
		snprintf(tenant, sizeof(tenant), "%s/tenants/%s", store, entry->d_name);
		list = opendir(tenant);
		forget(list, OWNED_MAX, oldest);
		close_list(list);
		/* That of a tenant with other sets is not empty, and stays. */
		if (rmdir(tenant) < 0)
			continue;
	}
	close_list(all);
}
