/* Runs in: a child of the keeper that holds no capability.   Owns: the files below tree.
 * Reads:   what a worker sends that unpacked packages which nobody trusts. */
#include "worker/intake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/own.h"
#include "worker/sha256.h"

#define PAGE 4096

static int
read_all(int fd, void *to, size_t len)
{
	size_t at = 0;

	while (at < len) {
		ssize_t n = read(fd, (char *)to + at, len - at);

		if (n == 0)
			return -EPIPE;
		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static uint64_t
number(const unsigned char *at, size_t len)
{
	uint64_t value = 0;

	while (len--)
		value = value << 8 | *at++;
	return value;
}

/* Each part has a name, and none leads up or nowhere. */
static bool
is_path(const char *path, size_t len)
{
	size_t part = 0, depth = 0;

	for (size_t i = 0; i <= len; i++) {
		if (i < len && path[i] != '/') {
			if ((unsigned char)path[i] < ' ' || path[i] == 0x7f)
				return false;
			part++;
			continue;
		}
		if (part == 0 || part > 255 ||
		    (part <= 2 && memcmp(path + i - part, "..", part) == 0))
			return false;
		depth++;
		part = 0;
	}
	return depth <= INTAKE_DEPTH_MAX;
}

/* So much of the disk is used up. */
static int
charge(struct intake *intake, uint64_t bytes)
{
	if (bytes > intake->bytes_max - intake->bytes)
		return -EFBIG;
	intake->bytes += bytes;
	return 0;
}

/* The directories that lead to the file. Nothing below tree is a link: only this makes
 * anything there. */
static int
make_way(struct intake *intake, char *path)
{
	for (char *at = strchr(path, '/'); at; at = strchr(at + 1, '/')) {
		int r;

		*at = '\0';
		r = mkdirat(intake->tree, path, 0755);
		*at = '/';
		if (r < 0 && errno != EEXIST)
			return -errno;
		if (r == 0 && charge(intake, PAGE) < 0)
			return -EFBIG;
	}
	return 0;
}

static void
list_file(FILE *list, struct sha256 *sum, const char *path)
{
	unsigned char digest[SHA256_BYTES];

	sha256_end(sum, digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		fprintf(list, "%02x", digest[i]);
	fprintf(list, "  tree/%s\n", path);
}

static int
copy(int from, int to, uint64_t size, struct sha256 *sum)
{
	char bytes[65536];

	sha256_init(sum);
	while (size) {
		size_t now = size < sizeof(bytes) ? (size_t)size : sizeof(bytes);
		int r = read_all(from, bytes, now);

		if (r == 0)
			sha256_add(sum, bytes, now);
		for (size_t at = 0; r == 0 && at < now;) {
			ssize_t n = write(to, bytes + at, now - at);

			if (n < 0)
				return -errno;
			at += (size_t)n;
		}
		if (r < 0)
			return r;
		size -= now;
	}
	return 0;
}

static int
take_file(struct intake *intake, bool executable, const char **what_r)
{
	unsigned char head[10];
	char path[INTAKE_PATH_MAX + 1];
	own_fd int fd = -1;
	uint64_t size;
	struct sha256 sum;
	size_t len;
	int r = read_all(intake->stream, head, sizeof(head));

	if (r < 0)
		return r;
	len = number(head, 2);
	size = number(head + 2, 8);
	*what_r = "the path of a file";
	if (len == 0 || len > INTAKE_PATH_MAX)
		return -EBADMSG;
	r = read_all(intake->stream, path, len);
	if (r < 0)
		return r;
	path[len] = '\0';
	if (!is_path(path, len))
		return -EBADMSG;
	*what_r = "the size of the packages";
	if (intake->files == intake->files_max || size > intake->bytes_max)
		return -EFBIG;
	r = charge(intake, (size / PAGE + (size % PAGE > 0 || size == 0)) * PAGE);
	if (r == 0)
		r = make_way(intake, path);
	if (r == -EFBIG)
		return r;
	*what_r = "a file of the packages";
	if (r < 0)
		return r;
	fd = openat(intake->tree, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    executable ? 0555 : 0444);
	if (fd < 0)
		return errno == EEXIST || errno == ENOTDIR || errno == EISDIR ? -EBADMSG
									      : -errno;
	r = copy(intake->stream, fd, size, &sum);
	if (r == 0)
		list_file(intake->list, &sum, path);
	intake->files++;
	return r;
}

int
intake_read(struct intake *intake, const char **what_r)
{
	unsigned char kind, count[4];
	int r;

	for (;;) {
		*what_r = "the stream of files";
		r = read_all(intake->stream, &kind, 1);
		if (r < 0)
			return r;
		if (kind == 'E')
			break;
		if (kind != 'F' && kind != 'X')
			return -EBADMSG;
		r = take_file(intake, kind == 'X', what_r);
		if (r < 0)
			return r;
	}
	r = read_all(intake->stream, count, sizeof(count));
	if (r < 0)
		return r;
	return number(count, 4) == intake->files ? 0 : -EBADMSG;
}
