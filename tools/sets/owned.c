/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the table of tenants, and the directory "tenants" of the store.
 * The file of a set is empty: its name is the set, its time is the last use. Files are read once,
 * at the start. Nothing is synced; a crash may lose the latest uses. */
#include "tools/sets/owned.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/named.h"
#include "base/nextentry.h"
#include "base/own.h"
#include "base/xalloc.h"

#define PRINCIPAL "/principal"	/* a file with the tenant's name, in the tenant's directory */
#define PRINCIPAL_BYTES 4096

struct owner {
	const char *name;			/* = tenant */
	LIST_ENTRY(owner) link;
	char tenant[SET_NAME + 1];		/* set_tenant */
	char *principal;			/* NULL: not known */
	size_t n;				/* at least 1 */
	struct owned set[OWNED_MAX];		/* the last used comes first */
};

static LIST_HEAD(owners, owner) owners = LIST_HEAD_INITIALIZER(owners);
static void *owners_by_name;

static void
place_of_all(const char *store, char path_r[PATH_MAX])
{
	snprintf(path_r, PATH_MAX, "%s/tenants", store);
}

static void
place_of(const char *store, const char *tenant, char path_r[PATH_MAX])
{
	snprintf(path_r, PATH_MAX, "%s/tenants/%s", store, tenant);
}

static struct owner *
owned_find(const char *tenant)
{
	return named_find(&owners_by_name, tenant);
}

static struct owner *
find_principal(const char *principal)
{
	char tenant[SET_NAME + 1];

	set_tenant(principal, tenant);
	return owned_find(tenant);
}

static struct owner *
owned_add(const char *tenant)
{
	struct owner *owner = xcalloc(1, sizeof(*owner));

	memcpy(owner->tenant, tenant, sizeof(owner->tenant));
	owner->name = owner->tenant;
	LIST_INSERT_HEAD(&owners, owner, link);
	named_add(&owners_by_name, owner);
	return owner;
}

static void
owned_drop(struct owner *owner)
{
	LIST_REMOVE(owner, link);
	named_remove(&owners_by_name, owner);
	free(owner->principal);
	free(owner);
}

/* ---- the start and the end ---- */

/* The last use first; equal times in the order of names, so that the order is always the same. */
static int
owned_by_use(const void *a, const void *b)
{
	const struct owned *left = a, *right = b;

	if (left->used.tv_sec != right->used.tv_sec)
		return left->used.tv_sec < right->used.tv_sec ? 1 : -1;
	if (left->used.tv_nsec != right->used.tv_nsec)
		return left->used.tv_nsec < right->used.tv_nsec ? 1 : -1;
	return strcmp(left->name, right->name);
}

/* Until the next start, tenants do not have the sets that an error hides. */
static void
say_unread(int error)
{
	if (error < 0 && error != -ENOENT)
		log_line(LOG_ERR, "tenants-unread", "error=%s", strerrorname_np(-error));
}

/* All of a tenant's directory, in order; the caller frees it. */
static struct owned *
owned_look(const char *path, size_t *n_r)
{
	int r = 0;
	own_list DIR *list = openlist(AT_FDCWD, path, &r);
	struct owned *all = NULL;
	struct dirent *entry;
	struct stat st;
	size_t n = 0;

	while ((entry = nextentry(list, &r))) {
		if (!set_is_name(entry->d_name) ||
		    fstatat(dirfd(list), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		all = xrealloc(all, (n + 1) * sizeof(*all));
		memcpy(all[n].name, entry->d_name, SET_NAME + 1);
		all[n++].used = st.st_mtim;
	}
	say_unread(r);
	if (n)
		qsort(all, n, sizeof(*all), owned_by_use);
	*n_r = n;
	return all;
}

/* Removes the file of a set. */
static void
unlink_set(const char *store, const char *tenant, const char *name)
{
	char path[PATH_MAX];

	place_of(store, tenant, path);
	if (strlen(path) + 1 + strlen(name) >= sizeof(path))
		return;
	strcat(strcat(path, "/"), name);
	unlink(path);
}

/* What the file in a tenant's directory says; NULL: nothing that could be true. */
static char *
read_principal(const char *directory, const char *tenant)
{
	char path[PATH_MAX + sizeof(PRINCIPAL)], principal[PRINCIPAL_BYTES] = "", name[SET_NAME + 1];
	own_fd int fd = -1;

	snprintf(path, sizeof(path), "%s" PRINCIPAL, directory);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || read(fd, principal, sizeof(principal) - 1) <= 0)
		return NULL;
	set_tenant(principal, name);
	return strcmp(name, tenant) == 0 ? xstrdup(principal) : NULL;
}

static void
load_tenant(const char *store, const char *tenant)
{
	own_mem struct owned *all = NULL;
	char path[PATH_MAX];
	struct owner *owner;
	size_t n;

	place_of(store, tenant, path);
	all = owned_look(path, &n);
	for (size_t i = OWNED_MAX; i < n; i++)
		unlink_set(store, tenant, all[i].name);
	if (n == 0)
		return;
	owner = owned_add(tenant);
	owner->principal = read_principal(path, tenant);
	owner->n = n < OWNED_MAX ? n : OWNED_MAX;
	memcpy(owner->set, all, owner->n * sizeof(*all));
}

void
owned_load(const char *store)
{
	char path[PATH_MAX];
	struct dirent *entry;
	own_list DIR *list = NULL;
	int r = 0;

	owned_unload();
	place_of_all(store, path);
	list = openlist(AT_FDCWD, path, &r);
	while ((entry = nextentry(list, &r)))
		if (set_is_name(entry->d_name))
			load_tenant(store, entry->d_name);
	say_unread(r);
}

void
owned_unload(void)
{
	while (!LIST_EMPTY(&owners))
		owned_drop(LIST_FIRST(&owners));
}

/* ---- uses ---- */

/* Makes the set the first of the owner's list. If the list is full, drops the last set, and removes
 * its file. */
static void
put_first(struct owner *owner, const char *store, const struct owned *set)
{
	size_t at = 0;

	while (at < owner->n && strcmp(owner->set[at].name, set->name) != 0)
		at++;
	if (at == OWNED_MAX)
		unlink_set(store, owner->tenant, owner->set[--at].name);
	else if (at == owner->n)
		owner->n++;
	memmove(&owner->set[1], &owner->set[0], at * sizeof(*set));
	owner->set[0] = *set;
}

static void
write_principal(int directory, const char *principal)
{
	own_fd int fd = openat(directory, &PRINCIPAL[1],
			       O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd >= 0)	/* one that is cut is not believed, and is written again after a start */
		(void)!write(fd, principal, strlen(principal));
}

/* principal: NULL if it is written already. */
static void
write_use(const char *store, const char *tenant, const char *principal, const struct owned *set)
{
	const struct timespec times[2] = { set->used, set->used };
	char path[PATH_MAX];
	own_fd int directory = -1, fd = -1;

	place_of_all(store, path);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return;
	place_of(store, tenant, path);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return;
	directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (directory >= 0 && principal)
		write_principal(directory, principal);
	if (directory >= 0)
		fd = openat(directory, set->name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
			    0600);
	if (fd >= 0)
		futimens(fd, times);
}

void
owned_note(const char *store, const char *principal, const char *name)
{
	struct owned set = { .name = "" };
	char tenant[SET_NAME + 1];
	struct owner *owner;

	set_tenant(principal, tenant);
	owner = owned_find(tenant);
	snprintf(set.name, sizeof(set.name), "%s", name);
	clock_gettime(CLOCK_REALTIME, &set.used);
	owner = owner ? owner : owned_add(tenant);
	put_first(owner, store, &set);
	write_use(store, tenant, owner->principal ? NULL : principal, &set);
	if (!owner->principal)
		owner->principal = xstrdup(principal);
}

bool
owned_any(const char *principal)
{
	return !LIST_EMPTY(&owners) && find_principal(principal);
}

size_t
owned_list(const char *principal, struct owned owned_r[OWNED_MAX])
{
	const struct owner *owner = find_principal(principal);

	if (!owner)
		return 0;
	memcpy(owned_r, owner->set, owner->n * sizeof(*owned_r));
	return owner->n;
}

void
owned_each(void (*visit)(void *arg, const char *principal, const struct owned *set),
	   void *arg)
{
	const struct owner *owner;

	LIST_FOREACH(owner, &owners, link)
		for (size_t i = 0; i < owner->n; i++)
			visit(arg, owner->principal, &owner->set[i]);
}

static void
drop_if_empty(const char *store, struct owner *owner)
{
	char path[PATH_MAX];

	if (owner->n > 0)
		return;
	unlink_set(store, owner->tenant, &PRINCIPAL[1]);
	place_of(store, owner->tenant, path);
	rmdir(path);
	owned_drop(owner);
}

static size_t
remove_from(struct owner *owner, const char *store, const char *name)
{
	size_t at = 0;

	while (at < owner->n && strcmp(owner->set[at].name, name) != 0)
		at++;
	if (at == owner->n)
		return 0;
	unlink_set(store, owner->tenant, name);
	memmove(&owner->set[at], &owner->set[at + 1],
		(--owner->n - at) * sizeof(owner->set[0]));
	drop_if_empty(store, owner);
	return 1;
}

size_t
owned_remove(const char *store, const char *principal, const char *name)
{
	struct owner *owner = principal ? find_principal(principal) : NULL, *next;
	size_t removed = owner ? remove_from(owner, store, name) : 0;

	for (owner = principal ? NULL : LIST_FIRST(&owners); owner; owner = next) {
		next = LIST_NEXT(owner, link);
		removed += remove_from(owner, store, name);
	}
	return removed;
}

void
owned_forget(const char *store, time_t oldest)
{
	struct owner *owner, *next;

	for (owner = LIST_FIRST(&owners); owner; owner = next) {
		next = LIST_NEXT(owner, link);
		while (owner->n > 0 && owner->set[owner->n - 1].used.tv_sec < oldest)
			unlink_set(store, owner->tenant, owner->set[--owner->n].name);
		drop_if_empty(store, owner);
	}
}
