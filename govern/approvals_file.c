/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor: the writer of the approvals.   Owns: nothing. */
#include "govern/approvals_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own.h"
#include "base/ownerfile.h"
#include "base/why.h"
#include "base/xalloc.h"

int
approvals_file_read(const char *path, void (*on_line)(void *arg, const json_t *line),
		    void *arg, struct why *why_r)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t size = 0;
	ssize_t len = 0;
	int r = 0;

	if (!file)
		return errno == ENOENT ? 0 : why_say(why_r, -errno, "approvals",
						     "[admin] approvals = %.300s: %s", path,
						     strerror(errno));
	while ((len = getline(&text, &size, file)) > 0 && text[len - 1] == '\n') {
		json_t *line = json_loadb(text, (size_t)len, JSON_REJECT_DUPLICATES, NULL);

		if (!json_is_object(line))
			r = why_say(why_r, -EBADMSG, "approvals",
				    "[admin] approvals = %.300s: is not a file of approvals", path);
		else
			on_line(arg, line);
		json_decref(line);
		if (r < 0)
			break;
	}
	if (r == 0 && len < 0 && !feof(file))
		r = why_say(why_r, -errno, "approvals", "[admin] approvals = %.300s: %s", path,
			    strerror(errno));
	free(text);
	fclose(file);
	return r;
}

static int
sync_directory_of(const char *path)
{
	own_mem char *directory = xstrdup(path);
	char *slash = strrchr(directory, '/');
	own_fd int fd = -1;

	if (slash)
		slash[slash == directory] = '\0';
	fd = open(slash ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

/* Makes a new file at the path, which fill writes. */
static int
approvals_file_make(struct approvals_file *file,
		    int (*fill)(int fd, int from, const char *text, size_t len), const char *text,
		    size_t len)
{
	own_mem char *made = xasprintf("%s.new", file->path);
	own_fd int fd = open(made, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
			     0600);
	int r = fd < 0 ? -errno : fill(fd, file->fd, text, len);

	if (r == 0 && (fsync(fd) < 0 || rename(made, file->path) < 0))
		r = -errno;
	if (r < 0) {
		unlink(made);
		return r;
	}
	r = sync_directory_of(file->path);
	if (r < 0)
		return r;
	if (file->fd >= 0)
		close(file->fd);
	file->fd = give_fd(fd);
	return 0;
}

static int
put_text(int fd, int, const char *text, size_t len)
{
	ssize_t n;

	do
		n = write(fd, text, len);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)len ? 0 : n < 0 ? -errno : -ENOSPC;
}

static int
put_copy(int fd, int from, const char *, size_t)
{
	char part[16384];
	off_t at = 0;
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = pread(from, part, sizeof(part), at)) > 0) {
		r = put_text(fd, -1, part, (size_t)n);
		at += n;
	}
	return r < 0 || n == 0 ? r : -errno;
}

int
approvals_file_replace(struct approvals_file *file, const char *text, size_t len)
{
	int r = approvals_file_make(file, put_text, text, len);

	file->behind = r < 0;
	return r;
}

void
approvals_file_look(struct approvals_file *file)
{
	int r;

	if (file->behind || samefile(file->fd, file->path))
		return;
	r = approvals_file_make(file, put_copy, NULL, 0);
	file->behind = r < 0;
	log_line(LOG_ERR, "approvals-replaced", "text=\"the file was removed or replaced by "
		 "somebody else\" made-again=%s", r < 0 ? strerrorname_np(-r) : "yes");
}

/* After a failure the end of the file is not known, and what follows would refer to what is
 * missing. */
int
approvals_file_append(struct approvals_file *file, const char *text, size_t len)
{
	int r;

	approvals_file_look(file);
	if (file->behind)
		return -EIO;
	r = put_text(file->fd, -1, text, len);
	if (r == 0 && fdatasync(file->fd) < 0)
		r = -errno;
	file->behind = r < 0;
	return r;
}
