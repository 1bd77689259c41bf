/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-unpack.   Owns: nothing that outlives a call. */
#include "image/place.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"

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
