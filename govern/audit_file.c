/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the audit log's file and its lock.
 * A line is one write(2) at the end of the file. A line that a crash has torn lacks its newline,
 * or ends in zero bytes that the file system shows instead. */
#include "govern/audit_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/nextentry.h"
#include "base/own.h"
#include "base/ownerfile.h"
#include "base/why.h"
#include "base/xalloc.h"

#define MODE 0600

/* ---- names ---- */

/* Opens the directory of path; *name_r: the file's name. */
static int
audit_file_open_directory(const char *path, const char **name_r)
{
	const char *slash = strrchr(path, '/');
	own_mem char *directory = NULL;
	int fd;

	*name_r = slash ? slash + 1 : path;
	directory = slash ? xmemdup0(path, slash == path ? 1 : (size_t)(slash - path))
			  : xstrdup(".");
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int
audit_file_find_rotated(struct audit_file *file)
{
	const char *name;
	own_fd int fd = audit_file_open_directory(file->path, &name);
	int r = fd < 0 ? fd : 0;
	own_list DIR *directory = fd < 0 ? NULL : openlist(fd, ".", &r);
	const struct dirent *entry;
	size_t len = strlen(name);

	if (!directory)
		return r;
	file->oldest = 0;
	file->rotated_bytes = 0;
	while ((entry = nextentry(directory, &r))) {
		const char *number = entry->d_name + len + 1;
		struct stat st;
		char *end;
		unsigned long n;

		if (strncmp(entry->d_name, name, len) != 0 || entry->d_name[len] != '.' ||
		    *number < '1' || *number > '9')
			continue;
		n = strtoul(number, &end, 10);
		if (*end || n >= UINT32_MAX)
			continue;
		if (n > file->rotated)
			file->rotated = (unsigned int)n;
		if (!file->oldest || n < file->oldest)
			file->oldest = (unsigned int)n;
		if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			file->rotated_bytes += (uint64_t)st.st_size;
	}
	return r;
}

static char *
rotated_path(const struct audit_file *file, unsigned int n)
{
	return xasprintf("%s.%u", file->path, n);
}

static void
sync_directory(const char *path)
{
	const char *name;
	int fd = audit_file_open_directory(path, &name);

	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

/* ---- the end of an existing file ---- */

/* The last line, without its newline, of a text that ends with a newline. */
static const char *
last_line(const char *text, size_t len, size_t *len_r)
{
	const char *before = len > 1 ? memrchr(text, '\n', len - 1) : NULL;
	const char *line = before ? before + 1 : text;

	*len_r = len - 1 - (size_t)(line - text);
	return line;
}

/* The length of the whole lines of a text; the rest was torn by a crash. */
static size_t
whole_lines(const char *text, size_t len)
{
	const char *end;

	while (len > 0 && text[len - 1] == '\0')
		len--;
	end = len ? memrchr(text, '\n', len) : NULL;
	return end ? (size_t)(end - text) + 1 : 0;
}

/* Reads the end of a file's chain. *good_r: bytes of whole lines. -EBADMSG: the last line is not
 * a record. An empty file leaves *last unchanged. */
static int
look_at_end(int fd, struct chain_link *last, off_t *size_r, off_t *good_r)
{
	struct stat st;
	const char *text, *line;
	size_t good, len;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	*size_r = st.st_size;
	*good_r = 0;
	if (st.st_size == 0)
		return 0;
	text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED)
		return -errno;
	good = whole_lines(text, (size_t)st.st_size);
	*good_r = (off_t)good;
	r = 0;
	if (good > 0) {
		line = last_line(text, good, &len);
		r = chain_read(line, len, last);
	}
	munmap((void *)text, (size_t)st.st_size);
	return r;
}

/* The chain of an empty file continues that of the youngest file that was put aside. */
static int
continue_rotated(struct audit_file *file)
{
	own_mem char *path = rotated_path(file, file->rotated);
	own_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	off_t size, good;
	int r;

	if (fd < 0)
		return -errno;
	r = look_at_end(fd, &file->last, &size, &good);
	/* if that file ends badly, the first line of this one shows it: it follows nothing */
	return r == -EBADMSG ? 0 : r;
}

/* ---- PATH.last: the number and hash of the last record ---- */

#define NOTE_MAX 128

/* O_NONBLOCK, for a FIFO of that name must not hold the loop. */
#define NOTE_FLAGS (O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY)

static char *
note_path(const struct audit_file *file)
{
	return xasprintf("%s.last", file->path);
}

/* The chain of a file that is missing goes on from the note, if there is one. */
static int
continue_note(struct audit_file *file)
{
	own_mem char *path = note_path(file);
	own_fd int fd = open(path, O_RDONLY | NOTE_FLAGS);
	char text[NOTE_MAX] = "", hash[NOTE_MAX] = "";
	uint64_t n;

	if (fd < 0 ? errno != ENOENT : read(fd, text, sizeof(text) - 1) < 0)
		return -errno;
	if (sscanf(text, "%" SCNu64 " %127[0-9a-f]", &n, hash) != 2 ||
	    strlen(hash) + 1 != sizeof(file->last.hash) || n == 0)
		return 0;
	file->last.n = n;
	memcpy(file->last.hash, hash, sizeof(file->last.hash));
	file->missing = true;
	return 0;
}

/* ---- opening ---- */

static int
open_locked(const char *path, int flags)
{
	own_fd int fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | flags,
			     MODE);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	return give_fd(fd);
}

static int
put_aside(struct audit_file *file)
{
	own_mem char *aside = rotated_path(file, file->rotated + 1);

	/* no file has that number, and no other process writes here */
	if (rename(file->path, aside) < 0)
		return -errno;
	file->rotated++;
	if (!file->oldest)
		file->oldest = file->rotated;
	file->rotated_bytes += (uint64_t)file->size;
	return 0;
}

static int
start_new(struct audit_file *file)
{
	int fd = open_locked(file->path, O_CREAT | O_EXCL);

	if (fd < 0)
		return fd;
	if (file->fd >= 0)
		close(file->fd);
	file->fd = fd;
	file->size = 0;
	sync_directory(file->path);
	return 0;
}

static int
audit_file_take_over(struct audit_file *file)
{
	off_t size, good;
	int r = look_at_end(file->fd, &file->last, &size, &good);

	if (r == -EBADMSG) {
		file->broken = true;
		file->size = size;
		chain_init(&file->last);
		r = put_aside(file);
		return r < 0 ? r : start_new(file);
	}
	if (r < 0)
		return r;
	if (good < size) {
		if (ftruncate(file->fd, good) < 0)
			return -errno;
		file->torn = (uint64_t)(size - good);
	}
	file->size = good;
	if (good == 0 && file->rotated > 0)
		return continue_rotated(file);
	return good == 0 ? continue_note(file) : 0;
}

int
audit_file_open(const char *path, bool sync, struct audit_file *file_r, struct why *why_r)
{
	struct audit_file file = { .path = xstrdup(path), .fd = -1, .sync = sync };
	int r = audit_file_find_rotated(&file);

	chain_init(&file.last);
	if (r == 0)
		r = file.fd = open_locked(path, O_CREAT);
	if (r >= 0)
		r = audit_file_take_over(&file);
	if (r < 0) {
		why_say(why_r, r, "file", "[audit] file = %.300s: %s", path,
			r == -EWOULDBLOCK ? "another service writes it" : strerror(-r));
		audit_file_close(&file);
		return r;
	}
	*file_r = file;
	return 0;
}

void
audit_file_close(struct audit_file *file)
{
	if (file->fd >= 0) {
		audit_file_flush(file);
		fdatasync(file->fd);
		close(file->fd);
	}
	free(file->path);
	*file = (struct audit_file){ .fd = -1 };
}

/* ---- writing ---- */

int
audit_file_append(struct audit_file *file, const char *members, size_t len)
{
	struct chain_link next = file->last;
	size_t line_len;
	own_mem char *line = chain_append(&next, members, len, &line_len);
	ssize_t n;
	int r = 0;

	do
		n = write(file->fd, line, line_len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		r = -errno;
	else if ((size_t)n < line_len)
		r = -ENOSPC;
	else if (file->sync && fdatasync(file->fd) < 0)
		r = -errno;
	if (r < 0) {
		/* If this fails too, the next start finds a torn line. */
		if (n > 0 && ftruncate(file->fd, file->size) < 0)
			return r;
		return r;
	}
	file->size += n;
	file->last = next;
	file->dirty = !file->sync;
	return 0;
}

int
audit_file_rotate(struct audit_file *file)
{
	own_mem char *aside = rotated_path(file, file->rotated + 1);
	int r;

	if (fdatasync(file->fd) < 0)
		return -errno;
	r = put_aside(file);
	if (r < 0)
		return r;
	r = start_new(file);
	if (r < 0 && rename(aside, file->path) == 0) {
		file->rotated_bytes -= (uint64_t)file->size;
		if (file->oldest == file->rotated)
			file->oldest = 0;
		file->rotated--;
	}
	return r;
}

bool
audit_file_is_there(const struct audit_file *file)
{
	return file->fd < 0 || samefile(file->fd, file->path);
}

int
audit_file_replace(struct audit_file *file)
{
	struct stat there;
	int r = audit_file_find_rotated(file);

	if (r == 0 && lstat(file->path, &there) == 0)
		r = put_aside(file);
	return r == 0 ? start_new(file) : r;
}

void
audit_file_oldest_end(const struct audit_file *file, struct chain_link *last_r)
{
	own_mem char *path = rotated_path(file, file->oldest);
	own_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	off_t size, good;

	chain_init(last_r);
	if (fd >= 0 && look_at_end(fd, last_r, &size, &good) < 0)
		chain_init(last_r);
}

int
audit_file_drop_oldest(struct audit_file *file)
{
	own_mem char *path = rotated_path(file, file->oldest);

	if (unlink(path) < 0)
		return -errno;
	return audit_file_find_rotated(file);
}

int
audit_file_free_bytes(const struct audit_file *file, uint64_t *bytes_r)
{
	struct statvfs fs;

	if (fstatvfs(file->fd, &fs) < 0)
		return -errno;
	*bytes_r = (uint64_t)fs.f_bavail * fs.f_frsize;
	return 0;
}

void
audit_file_flush(struct audit_file *file)
{
	if (file->fd >= 0 && file->dirty)
		sync_file_range(file->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	file->dirty = false;
	if (file->fd >= 0 && file->last.n != file->noted) {
		own_mem char *path = note_path(file);
		own_fd int fd = open(path, O_WRONLY | O_CREAT | NOTE_FLAGS, MODE);
		char text[NOTE_MAX];
		int len = snprintf(text, sizeof(text), "%020" PRIu64 " %s\n", file->last.n,
				   file->last.hash);

		/* All of it is one write of a fixed length. A failure costs only the warning at the
		 * next start. */
		if (fd >= 0 && pwrite(fd, text, (size_t)len, 0) == len)
			file->noted = file->last.n;
	}
}
