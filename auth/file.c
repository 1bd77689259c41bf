/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, only after it has dropped privilege. So a file that can be read once can
 * also be read again later.   Owns: nothing.
 * Reads:   a file of the administrator. */
#include "auth/file.h"

#include <errno.h>
#include <unistd.h>

#include "base/own.h"
#include "base/ownerfile.h"
#include "base/xalloc.h"

static bool
same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool
file_is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mode == b->st_mode && same_time(a->st_mtim, b->st_mtim) &&
	       same_time(a->st_ctim, b->st_ctim);
}

/* Reads the whole file. Asks for one byte more than it may have, and must not get it. */
static int
file_read_all(int fd, size_t bytes_max, char **text_r, size_t *len_r)
{
	own_mem char *text = xalloc_check(malloc(bytes_max + 1));
	size_t len = 0;
	ssize_t n;

	while (len <= bytes_max) {
		n = read(fd, text + len, bytes_max + 1 - len);
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	if (len > bytes_max)
		return -EFBIG;
	text[len] = '\0';
	*text_r = xrealloc(give_ptr(text), len + 1);
	*len_r = len;
	return 0;
}

static int
file_look(struct auth_file *file, char **text_r, size_t *len_r)
{
	struct stat st;
	own_fd int fd = ownerfile_open(file->path, &st);
	int r;

	if (fd < 0)
		return fd;
	if (file->looked && file->error == 0 && file_is_same(&st, &file->stat))
		return 0;
	r = file_read_all(fd, file->bytes_max, text_r, len_r);
	if (r < 0)
		return r;
	file->stat = st;
	return 1;
}

int
auth_file_read(struct auth_file *file, uint64_t now_ms, char **text_r, size_t *len_r)
{
	int before = file->error, r;

	if (file->looked && now_ms - file->looked_ms < AUTH_FILE_LOOK_MS)
		return 0;
	r = file_look(file, text_r, len_r);
	file->error = r < 0 ? r : 0;
	file->looked = true;
	file->looked_ms = now_ms;
	return r < 0 && r == before ? 0 : r;
}
