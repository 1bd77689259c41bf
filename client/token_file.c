/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python token.   Owns: the token file while it changes it.
 * The lock is on the directory, because each change replaces the file. */
#include "client/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/why.h"
#include "base/writeall.h"

#define SERVICE_GROUP "mcp-python"

/* Owner and group only: the hashes are not secret, but of no use to others. */
#define MODE_MOST 0640

static int
token_file_say(const struct token_file *file, int error, struct why *why_r)
{
	return why_say(why_r, error, "file", "%s: %s", file->path, strerror(-error));
}

static int
token_file_open_directory(struct token_file *file, bool change)
{
	char path[PATH_MAX];
	const char *slash = strrchr(file->path, '/');
	size_t len = slash ? (size_t)(slash - file->path) : 0;
	int fd;

	if (len >= sizeof(path))
		return -ENAMETOOLONG;
	memcpy(path, file->path, len);
	path[len] = '\0';
	file->name = slash ? slash + 1 : file->path;
	fd = open(len ? path : slash ? "/" : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	file->dir = fd;
	while (change && flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return -errno;
	return *file->name ? 0 : -EISDIR;
}

static int
token_file_read_text(int fd, char **text_r, size_t *len_r)
{
	own_mem char *text = malloc(TOKENS_BYTES_MAX + 1);
	size_t len = 0;
	ssize_t n;

	if (!text)
		return -ENOMEM;
	while ((n = read(fd, text + len, TOKENS_BYTES_MAX + 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		return -errno;
	*text_r = give_ptr(text);
	*len_r = len;
	return 0;
}

/* A link is not followed: the change would replace the link, not its target. */
static int
token_file_read_file(struct token_file *file, struct why *why_r)
{
	own_fd int fd = openat(file->dir, file->name,
			       O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	own_mem char *text = NULL;
	struct stat st;
	struct why why;
	size_t len = 0;
	int r;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return token_file_say(file, -errno, why_r);
	if (!S_ISREG(st.st_mode))
		return token_file_say(file, -EINVAL, why_r);
	file->exists = true;
	file->mode = st.st_mode & MODE_MOST;
	file->uid = st.st_uid;
	file->gid = st.st_gid;
	r = token_file_read_text(fd, &text, &len);
	if (r < 0)
		return token_file_say(file, r, why_r);
	r = tokens_parse(text, len, &file->tokens, &why);
	return r < 0 ? why_say(why_r, r, "file", "%s: %s", file->path, why.text) : 0;
}

int
token_file_open(const char *path, bool change, struct token_file *file_r, struct why *why_r)
{
	struct token_file file = {.path = path, .dir = -1};
	int r = token_file_open_directory(&file, change);

	r = r < 0 ? token_file_say(&file, r, why_r) : token_file_read_file(&file, why_r);
	if (r < 0)
		token_file_close(&file);
	else
		*file_r = file;
	return r;
}

void
token_file_close(struct token_file *file)
{
	tokens_done(&file->tokens);
	if (file->dir >= 0)
		close(file->dir);
	file->dir = -1;
}

/* ---- writing ---- */

static int
set_owner(const struct token_file *file, int fd)
{
	const struct group *group = geteuid() == 0 ? getgrnam(SERVICE_GROUP) : NULL;
	unsigned int mode = file->exists ? file->mode : group ? 0640 : 0600;

	if (file->exists && (file->uid != geteuid() || file->gid != getegid()) &&
	    fchown(fd, file->uid, file->gid) < 0)
		return -errno;
	if (!file->exists && group && fchown(fd, (uid_t)-1, group->gr_gid) < 0)
		return -errno;
	return fchmod(fd, mode) < 0 ? -errno : 0;
}

static int
token_file_replace(const struct token_file *file, const char *name, const char *text)
{
	own_fd int fd = openat(file->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return -errno;
	r = set_owner(file, fd);
	if (r == 0)
		r = write_all(fd, text, strlen(text));
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(file->dir, name, file->dir, file->name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(file->dir, name, 0);
	else if (fsync(file->dir) < 0)
		r = -errno;
	return r;
}

int
token_file_write(struct token_file *file, struct why *why_r)
{
	own_mem char *text = tokens_print(&file->tokens);
	char name[NAME_MAX + 1];
	int r = -ENAMETOOLONG;

	/* The lock is held, so a file with this name was left by a process that was killed. */
	if (snprintf(name, sizeof(name), ".%s.new", file->name) < (int)sizeof(name)) {
		unlinkat(file->dir, name, 0);
		r = token_file_replace(file, name, text);
	}
	return r < 0 ? token_file_say(file, r, why_r) : 0;
}
