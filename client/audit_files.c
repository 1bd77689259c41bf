/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python audit.   Owns: the audit log's files while it reads them, and a watch of
 *          their directory.
 * Reads:   lines that an attacker may have changed. */
#include "client/audit_files.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/nextentry.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "client/exits.h"
#include "client/say.h"

/* A file that is being read. */
struct audit_file {
	char *path;
	FILE *stream;		/* NULL: it is not there */
	unsigned int number;	/* of the last line */
	bool is_older;		/* a PATH.N, to which nothing is added */
};

/* ---- lines ---- */

static int
say_no_file(const char *path, int error)
{
	if (error == -ENOENT)
		say("%s: there are no records; --file names another file, as [audit] file does in "
		    "the configuration", path);
	else
		say("%s: %s", path, strerror(-error));
	return error == -EACCES ? EX_NOPERM : EX_NOINPUT;
}

/* Reads the lines that there are. whole: leaves a line without line break for later. 0, or an exit
 * code after printing the reason. */
static int
read_lines(const struct audit_files *files, struct audit_file *file, bool whole)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int r = 0;

	clearerr(file->stream);
	while ((len = getline(&line, &size, file->stream)) > 0) {
		bool is_whole = line[len - 1] == '\n';

		if (whole && !is_whole) {
			fseeko(file->stream, -(off_t)len, SEEK_CUR);
			break;
		}
		file->number++;
		files->on_line(files->arg, &(struct audit_line){
			.path = file->path, .number = file->number, .text = line,
			.len = (size_t)len - is_whole, .is_whole = is_whole,
		});
	}
	if (len < 0 && !feof(file->stream))
		r = say_no_file(file->path, -errno);
	free(line);
	return r;
}

static void
close_file(struct audit_file *file)
{
	if (file->stream)
		fclose(file->stream);
	free(file->path);
	*file = (struct audit_file){ .stream = NULL };
}

/* Malloc'd. older: the N of PATH.N; 0: PATH itself. */
static char *
older_path(const char *path, unsigned long older)
{
	return older ? xasprintf("%s.%lu", path, older) : xstrdup(path);
}

static int
open_file(struct audit_file *file, const char *path, unsigned long older)
{
	*file = (struct audit_file){ .is_older = older > 0 };
	file->path = older_path(path, older);
	file->stream = fopen(file->path, "re");
	return file->stream ? 0 : -errno;
}

/* Is the file, which was opened, at this path now? */
static bool
is_at(const struct audit_file *file, const char *path)
{
	struct stat now, held;

	return stat(path, &now) == 0 && fstat(fileno(file->stream), &held) == 0 &&
	       now.st_ino == held.st_ino && now.st_dev == held.st_dev;
}

/* ---- the last lines ---- */

/* Where reading begins. */
struct beginning {
	struct stat file;
	off_t at;
	bool any;		/* false: at the first line of all */
};

/* The text of a file, until munmap. NULL: it has none, or cannot be read. */
static const char *
map_file(const char *path, struct stat *st_r)
{
	own_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *text;

	if (fd < 0 || fstat(fd, st_r) < 0 || st_r->st_size == 0)
		return NULL;
	text = mmap(NULL, (size_t)st_r->st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	return text == MAP_FAILED ? NULL : text;
}

/* Looks through a file from its end, until no more lines are wanted; returns how many are. */
static size_t
look_back(const struct audit_files *files, const char *path, size_t left, struct beginning *begin)
{
	struct stat st;
	const char *text = map_file(path, &st);
	size_t end;

	if (!text)
		return left;
	end = (size_t)st.st_size;
	while (left > 0 && end > 0) {
		size_t len = end - (text[end - 1] == '\n');
		const char *before = len > 0 ? memrchr(text, '\n', len) : NULL;
		size_t at = before ? (size_t)(before - text) + 1 : 0;

		if (files->wants(files->arg, text + at, len - at)) {
			*begin = (struct beginning){ .file = st, .at = (off_t)at, .any = true };
			left--;
		}
		end = at;
	}
	munmap((void *)text, (size_t)st.st_size);
	return left;
}

/* Where the first line of the text begins that is not early. A line that does not say when it was
 * written is none, so reading begins too early at worst. */
static size_t
first_due(const struct audit_files *files, const char *text, size_t size)
{
	size_t low = 0, high = size;	/* beginnings of lines */

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const char *before = memrchr(text + low, '\n', middle - low);
		size_t at = before ? (size_t)(before - text) + 1 : low;
		const char *newline = memchr(text + at, '\n', size - at);
		size_t end = newline ? (size_t)(newline - text) + 1 : size;

		if (files->is_early(files->arg, text + at, end - at))
			low = end;
		else
			high = at;
	}
	return low;
}

/* Does the first line that is not early come after the beginning of this file? */
static bool
look_for_time(const struct audit_files *files, const char *path, struct beginning *begin)
{
	struct stat st;
	const char *text = map_file(path, &st);
	size_t at;

	if (!text)
		return false;
	at = first_due(files, text, (size_t)st.st_size);
	munmap((void *)text, (size_t)st.st_size);
	if (at > 0)
		*begin = (struct beginning){ .file = st, .at = (off_t)at, .any = true };
	return at > 0;
}

/* Does reading begin later than in this file? If it begins in it, goes there. */
static bool
is_before(struct audit_file *file, struct beginning *begin)
{
	struct stat st;

	if (!begin->any)
		return false;
	if (fstat(fileno(file->stream), &st) < 0 || st.st_ino != begin->file.st_ino ||
	    st.st_dev != begin->file.st_dev)
		return true;
	fseeko(file->stream, begin->at, SEEK_SET);
	begin->any = false;
	return false;
}

/* ---- older files ---- */

static int
by_number(const void *a, const void *b)
{
	unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;

	return (x > y) - (x < y);
}

/* The directory of path, with its slash; malloc'd. */
static char *
directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");

	if (!directory)
		xalloc_fail(0);
	return directory;
}

/* The numbers N of all PATH.N, ascending; malloc'd. Returns their count or -errno. The oldest
 * files may be gone, and numbers between them may be missing. */
static int
find_numbers(const char *path, unsigned long **number_r)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	own_mem char *directory = directory_of(path);
	own_mem unsigned long *number = NULL;
	const struct dirent *entry;
	size_t len = strlen(name), n = 0;
	own_list DIR *list = opendir(directory);
	int r = list ? 0 : -errno;

	while ((entry = nextentry(list, &r))) {
		char *end;

		if (strncmp(entry->d_name, name, len) != 0 || entry->d_name[len] != '.' ||
		    !isdigit((unsigned char)entry->d_name[len + 1]))
			continue;
		number = reallocarray(number, n + 1, sizeof(*number));
		if (!number)
			xalloc_fail(0);
		number[n] = strtoul(entry->d_name + len + 1, &end, 10);
		n += *end == '\0';
	}
	if (n > 0)
		qsort(number, n, sizeof(*number), by_number);
	*number_r = give_ptr(number);
	return r < 0 ? r : (int)n;
}

/* *last_r: the number of the last one; 0: none. */
static int
read_older(const struct audit_files *files, struct beginning *begin, unsigned long *last_r)
{
	own_mem unsigned long *number = NULL;
	struct audit_file file;
	size_t left = files->last ? look_back(files, files->path, files->last, begin) : 0;
	int n = find_numbers(files->path, &number), r = 0;

	if (n < 0 && n != -ENOENT) {
		say("the directory of %s: %s", files->path, strerror(-n));
		return EX_NOINPUT;
	}
	for (int i = n; i > 0 && left > 0; i--) {
		own_mem char *path = older_path(files->path, number[i - 1]);

		left = look_back(files, path, left, begin);
	}
	begin->any &= left == 0;	/* there are not so many: all are read */
	if (!begin->any && files->is_early && !look_for_time(files, files->path, begin))
		for (int i = n; i > 0 && !begin->any; i--) {
			own_mem char *path = older_path(files->path, number[i - 1]);

			look_for_time(files, path, begin);
		}
	for (int i = 0; i < n && r == 0; i++) {
		r = open_file(&file, files->path, number[i]);
		if (r < 0)
			r = say_no_file(file.path, r);
		else if (!is_before(&file, begin))
			r = read_lines(files, &file, false);
		close_file(&file);
	}
	*last_r = n > 0 ? number[n - 1] : 0;
	return r;
}

/* ---- the newest file ---- */

/* Opens the file that follows PATH.last: PATH itself; or PATH.N with N = last + 1, if the service
 * has renamed PATH meanwhile. 0 or -errno. */
static int
open_next(const struct audit_files *files, struct audit_file *file, unsigned long last)
{
	struct audit_file renamed;
	int r = open_file(file, files->path, 0);

	/* later than PATH: a file that is renamed in between is found by its new name */
	if (open_file(&renamed, files->path, last + 1) < 0) {
		close_file(&renamed);
		return r;
	}
	close_file(file);
	*file = renamed;
	return 0;
}

/* Reads on, also in the files that have taken the place of full ones. whole and result: as
 * read_lines. */
static int
read_on(const struct audit_files *files, struct audit_file *file, unsigned long *last, bool whole)
{
	for (;;) {
		own_mem char *renamed = older_path(files->path, *last + 1);
		int r = file->stream ? 0 : open_next(files, file, *last);

		if (r < 0) {
			close_file(file);
			return r == -ENOENT ? 0 : say_no_file(files->path, r);
		}
		r = read_lines(files, file, whole);
		if (r || (!file->is_older && is_at(file, files->path)))
			return r;
		/* written between the last read and the renaming */
		r = read_lines(files, file, whole);
		if (r)
			return r;
		*last += is_at(file, renamed);
		close_file(file);
	}
}

/* Waits until something changes in the directory. */
static bool
wait_for_change(int watch)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n;

	do
		n = read(watch, events, sizeof(events));
	while (n < 0 && errno == EINTR);
	return n > 0;
}

static int
watch_directory(const char *path)
{
	own_mem char *directory = directory_of(path);
	own_fd int watch = inotify_init1(IN_CLOEXEC);

	if (watch < 0 ||
	    inotify_add_watch(watch, directory, IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0) {
		say("%s: cannot be watched: %s", directory, strerror(errno));
		return -1;
	}
	return give_fd(watch);
}

int
audit_files_read(const struct audit_files *files, bool follow)
{
	struct beginning begin = { .any = false };
	struct audit_file file;
	unsigned long last;
	own_fd int watch = -1;
	int r;

	/* before anything is read, so that no change is missed */
	if (follow && access(files->path, F_OK) == 0) {
		watch = watch_directory(files->path);
		if (watch < 0)
			return EX_OSERR;
	}
	r = read_older(files, &begin, &last);
	if (r)
		return r;
	r = open_next(files, &file, last);
	if (r < 0) {
		close_file(&file);
		return say_no_file(files->path, r);
	}
	(void)is_before(&file, &begin);
	r = read_on(files, &file, &last, follow);
	while (!r && files->on_end(files->arg) && follow && wait_for_change(watch))
		r = read_on(files, &file, &last, true);
	close_file(&file);
	return r;
}
