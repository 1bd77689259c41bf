/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Decisions are made by people, so it does not matter that each one waits for the disk. */
#include "govern/approvals_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"

int
approvals_file_read(const char *path, void (*on_line)(void *arg, const json_t *line),
		    void *arg, struct why *why_r)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t size = 0;
	ssize_t len;
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

int
approvals_file_replace(const char *path, int (*write_lines)(void *arg, int fd), void *arg,
		       struct why *why_r)
{
	own_mem char *made = NULL;
	own_fd int fd = -1;
	int r;

	made = xasprintf("%s.new", path);
	fd = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	r = fd < 0 ? -errno : write_lines(arg, fd);
	if (r == 0 && (fsync(fd) < 0 || rename(made, path) < 0))
		r = -errno;
	if (r == 0)
		r = sync_directory_of(path);
	if (r < 0)
		return why_say(why_r, r, "approvals", "[admin] approvals = %.300s: %s", path,
			       strerror(-r));
	return give_fd(fd);
}

int
approvals_file_write(int fd, json_t *line)
{
	own_mem char *text = json_dumps(line, JSON_COMPACT);
	off_t end = lseek(fd, 0, SEEK_END);
	size_t len;
	ssize_t n;

	json_decref(line);
	if (!text)
		return -ENOMEM;
	len = strlen(text);
	text[len++] = '\n';		/* replaces its NUL */
	do
		n = write(fd, text, len);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)len)
		return 0;
	return n > 0 && ftruncate(fd, end) < 0 ? -errno : -EIO;
}

int
approvals_file_append(int fd, json_t *line)
{
	off_t end = lseek(fd, 0, SEEK_END);
	int r = approvals_file_write(fd, line);

	if (r < 0 || fdatasync(fd) == 0)
		return r;
	return ftruncate(fd, end) < 0 ? -errno : -EIO;
}
