/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the directory "requests" of the store: one small file per
 * request, with the name of an environment.
 * The files are written without waiting for the disk. After a crash a file may not hold a name;
 * then it is ignored. */
#include "tools/sets/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/nextentry.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "proto/message.h"

#define REQUESTS_MAX 4096

static ssize_t
store_read_file(const char *path, char *text, size_t size)
{
	own_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	size_t at = 0;
	ssize_t n = 1;

	while (fd >= 0 && n > 0 && at < size) {
		n = read(fd, text + at, size - at);
		at += n > 0 ? (size_t)n : 0;
	}
	return fd < 0 || n < 0 || at == size ? -1 : (ssize_t)at;
}

json_t *
store_manifest(const char *store, const char *name)
{
	own_mem char *text = xalloc_check(malloc(MANIFEST_MAX + 1));
	json_t *manifest = NULL;
	char path[PATH_MAX];
	ssize_t len;

	snprintf(path, sizeof(path), "%s/%s/manifest", store, name);
	len = store_read_file(path, text, MANIFEST_MAX + 1);
	if (len > 0)
		manifest = json_loadb(text, (size_t)len, JSON_REJECT_DUPLICATES, NULL);
	if (set_of_manifest(manifest))
		return manifest;
	json_decref(manifest);
	return NULL;
}

static bool
store_is_there(const char *path, mode_t kind)
{
	struct stat st;

	return lstat(path, &st) == 0 && (st.st_mode & S_IFMT) == kind;
}

bool
store_has_module(const char *store, const char *name, const char *module,
		 const char *extension)
{
	const char *const endings[] = { ".py", extension, ".abi3.so", ".so" };
	char path[PATH_MAX];

	/* The keeper puts programs there. */
	if (strcmp(module, "bin") == 0)
		return false;
	snprintf(path, sizeof(path), "%s/%s/tree/%s", store, name, module);
	if (store_is_there(path, S_IFDIR))
		return true;
	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		snprintf(path, sizeof(path), "%s/%s/tree/%s%s", store, name, module, endings[i]);
		if (store_is_there(path, S_IFREG))
			return true;
	}
	return false;
}

static void
request_path(const char *store, const char *request, char path_r[PATH_MAX])
{
	snprintf(path_r, PATH_MAX, "%s/requests/%s", store, request);
}

json_t *
store_find(const char *store, const char *request, char name_r[SET_NAME + 1])
{
	char path[PATH_MAX], text[SET_NAME + 2];

	request_path(store, request, path);
	if (store_read_file(path, text, sizeof(text)) != SET_NAME)
		return NULL;
	text[SET_NAME] = '\0';
	if (!set_is_name(text))
		return NULL;
	memcpy(name_r, text, SET_NAME + 1);
	return store_manifest(store, name_r);
}

void
store_remember(const char *store, const char *request, const char *name)
{
	char path[PATH_MAX], half[PATH_MAX + 4];
	own_fd int fd = -1;

	snprintf(path, sizeof(path), "%s/requests", store);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return;
	request_path(store, request, path);
	snprintf(half, sizeof(half), "%s.new", path);
	fd = open(half, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || write(fd, name, SET_NAME) != SET_NAME || rename(half, path) < 0)
		unlink(half);
}

void
store_forget(const char *store, time_t oldest)
{
	char path[PATH_MAX];
	struct dirent *entry;
	struct stat st;
	own_list DIR *list = NULL;
	size_t n = 0;
	int r = 0;

	snprintf(path, sizeof(path), "%s/requests", store);
	list = openlist(AT_FDCWD, path, &r);
	while ((entry = nextentry(list, &r)))
		if (*entry->d_name != '.' &&
		    fstatat(dirfd(list), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    (st.st_mtime < oldest || ++n > REQUESTS_MAX))
			unlinkat(dirfd(list), entry->d_name, 0);
}
