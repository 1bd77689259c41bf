/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-unpack.   Owns: nothing that outlives a call. */
#include "image/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"

#define DEPTH_MAX 200		/* of a tree that is removed: each level is an open directory */

int
place_name(const char *text, struct place_name *name_r)
{
	char *to = name_r->text;

	name_r->last = to;
	while (*text) {
		size_t len = strcspn(text, "/");

		if (len == 2 && text[0] == '.' && text[1] == '.')
			return -EINVAL;
		if (len > NAME_MAX ||
		    len + 2 > sizeof(name_r->text) - (size_t)(to - name_r->text))
			return -ENAMETOOLONG;
		if (len > 0 && !(len == 1 && text[0] == '.')) {
			if (to > name_r->text)
				*to++ = '/';
			name_r->last = memcpy(to, text, len);
			to += len;
		}
		text += len;
		text += *text == '/';
	}
	*to = '\0';
	return 0;
}

static int
open_below(int top, const char *path)
{
	const struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
	};
	int fd = (int)syscall(SYS_openat2, top, *path ? path : ".", &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

int
place_open(int top, const struct place_name *name, bool make)
{
	size_t len = (size_t)(name->last - name->text), at = 0;
	char path[PATH_MAX];
	int fd;

	memcpy(path, name->text, len);
	path[len > 0 ? len - 1 : 0] = '\0';
	fd = open_below(top, path);
	if (fd != -ENOENT || !make)
		return fd;
	fd = open_below(top, "");
	while (fd >= 0 && path[at]) {
		size_t part = strcspn(path + at, "/");
		own_fd int dir = fd;
		char after = path[at + part];

		path[at + part] = '\0';
		fd = open_below(top, path);
		if (fd == -ENOENT)
			fd = mkdirat(dir, path + at, 0755) < 0 ? -errno : open_below(top, path);
		path[at + part] = after;
		at += part + (after == '/');
	}
	return fd;
}

static int remove_below(int dir, const char *name, unsigned int depth);

static int
empty_below(int dir, unsigned int depth)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!list) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	while (r == 0 && (entry = readdir(list)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = remove_below(fd, entry->d_name, depth + 1);
	closedir(list);
	return r;
}

static int
remove_below(int dir, const char *name, unsigned int depth)
{
	own_fd int below = -1;
	int r;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if ((errno != EISDIR && errno != EPERM) || depth > DEPTH_MAX)
		return -errno;
	below = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = below < 0 ? -errno : empty_below(below, depth);
	if (r == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}

int
place_remove(int dir, const char *name)
{
	return remove_below(dir, name, 0);
}

int
place_empty(int dir)
{
	return empty_below(dir, 0);
}
