/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor: its loop, and the thread that writes.   Owns: the descriptor of a file,
 * the thread's from its start on. */
#include "govern/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/ownerfile.h"
#include "base/writeall.h"
#include "base/xalloc.h"
#include "govern/writer.h"

struct whole_file {
	char *path;
	const char *what;
	int fd;				/* or -errno */
	int error;			/* of the last time, which was logged */
	struct writer *writer;		/* NULL: there is no thread yet */
};

struct whole_text {
	struct writing writing;
	struct whole_file *file;
	char *text;
};

static int
whole_file_open(struct whole_file *file)
{
	int fd = open(file->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (file->fd >= 0) {
		log_line(LOG_WARNING, "file-replaced", "what=%s made-again=yes", file->what);
		close(file->fd);
	}
	file->fd = fd;
	return 0;
}

static void
whole_file_log(struct whole_file *file, int error)
{
	if (error != 0 && error != file->error)
		log_line(LOG_WARNING, "file-not-written", "what=%s err=%s", file->what,
			 strerrorname_np(-error));
	file->error = error;
}

struct whole_file *
whole_file_new(const char *path, const char *what)
{
	struct whole_file *file;

	if (!path)
		return NULL;
	file = xcalloc(1, sizeof(*file));
	file->path = xstrdup(path);
	file->what = what;
	file->fd = -1;
	whole_file_log(file, whole_file_open(file));
	return file;
}

int
whole_file_start(struct whole_file *file, struct event_base *base)
{
	return file ? writer_new(base, "files", &file->writer) : 0;
}

FILE *
whole_file_read(const struct whole_file *file)
{
	int fd = file ? fcntl(file->fd, F_DUPFD_CLOEXEC, 3) : -1;

	return fd < 0 ? NULL : xalloc_check(fdopen(fd, "r"));
}

static void
whole_text_write(struct writing *writing)
{
	struct whole_text *whole = (struct whole_text *)writing;
	struct whole_file *file = whole->file;
	int r = file->fd >= 0 && samefile(file->fd, file->path) ? 0 : whole_file_open(file);

	if (r == 0 && (ftruncate(file->fd, 0) < 0 || lseek(file->fd, 0, SEEK_SET) < 0))
		r = -errno;
	if (r == 0)
		r = write_all(file->fd, whole->text, strlen(whole->text));
	whole_file_log(file, r);
}

static void
whole_text_free(struct writing *writing)
{
	free(((struct whole_text *)writing)->text);
	free(writing);
}

void
whole_file_write(void *file, char *text)
{
	struct whole_text *whole = xcalloc(1, sizeof(*whole));

	*whole = (struct whole_text){
		.writing = { .write = whole_text_write, .written = whole_text_free },
		.file = file, .text = text,
	};
	writer_put(whole->file->writer, &whole->writing);
}

void
whole_file_free(struct whole_file *file)
{
	/* A thread that a disk holds has the file for good. */
	if (!file || !writer_free(file->writer))
		return;
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	free(file);
}
