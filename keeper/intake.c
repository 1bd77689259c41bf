/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a child of the keeper without capabilities.   Owns: the files below tree.
 * Reads:   messages of the reader of a wheel, which a wheel may have taken over. */
#include "keeper/intake.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/quote.h"
#include "base/why.h"
#include "base/writeall.h"
#include "keeper/digest.h"
#include "keeper/path.h"

#define PAGE 4096
#define BLOCK 65536

int
intake_bytes(int from, void *to, size_t len)
{
	size_t at = 0;

	while (at < len) {
		ssize_t n = read(from, (char *)to + at, len - at);

		if (n == 0)
			return -EPIPE;
		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static uint64_t
intake_number(const unsigned char *at, size_t len)
{
	uint64_t value = 0;

	while (len--)
		value = value << 8 | *at++;
	return value;
}

/* ---- bounds ---- */

static uint64_t
pages_of(uint64_t size)
{
	return (size / PAGE + (size % PAGE > 0 || size == 0)) * PAGE;
}

/* Counts used bytes of the disk. */
static int
intake_charge(struct intake *intake, uint64_t bytes, struct why *why_r)
{
	if (bytes > intake->bytes_max - intake->bytes)
		return why_say(why_r, -EFBIG, "", "the size of the packages");
	intake->bytes += bytes;
	return 0;
}

/* Makes the directories that lead to the file. No entry below tree is a link: only this process
 * makes entries there. */
static int
make_way(struct intake *intake, char *path, struct why *why_r)
{
	for (char *at = strchr(path, '/'); at; at = strchr(at + 1, '/')) {
		int r;

		*at = '\0';
		r = mkdirat(intake->tree, path, 0755);
		*at = '/';
		if (r < 0 && errno != EEXIST)
			return why_say(why_r, -errno, "", "a directory for %.300s", path);
		if (r == 0 && intake_charge(intake, PAGE, why_r) < 0)
			return -EFBIG;
	}
	return 0;
}

/* ---- one file ---- */

static int
intake_copy(int from, int to, uint64_t size, struct digest *digest)
{
	char bytes[BLOCK];
	int r = 0;

	while (size && r == 0) {
		size_t now = size < sizeof(bytes) ? (size_t)size : sizeof(bytes);

		r = intake_bytes(from, bytes, now);
		if (r == 0) {
			digest_add(digest, bytes, now);
			r = write_all(to, bytes, now);
		}
		size -= now;
	}
	return r;
}

/* 1: the bytes from the descriptor equal the file. 0: they differ. */
static int
is_same(int from, int file, uint64_t size)
{
	char bytes[BLOCK], there[BLOCK];
	struct stat st;
	int r;

	if (fstat(file, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != size)
		return 0;
	while (size) {
		size_t now = size < sizeof(bytes) ? (size_t)size : sizeof(bytes);

		r = intake_bytes(from, bytes, now);
		if (r == 0)
			r = intake_bytes(file, there, now);
		if (r < 0 || memcmp(bytes, there, now) != 0)
			return r;
		size -= now;
	}
	return 1;
}

/* Packages that share a namespace may each bring the same __init__.py. */
static int
intake_compare(struct intake *intake, int from, const char *path, uint64_t size, struct why *why_r)
{
	own_fd int file = openat(intake->tree, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int r = file < 0 ? -errno : is_same(from, file, size);

	if (r == 1)
		return 0;
	return why_say(why_r, r < 0 && r != -ELOOP ? r : -EEXIST, "",
		       "two packages have different files %.300s", path);
}

static void
list_file(struct intake *intake, struct digest *digest, const char *path)
{
	unsigned char sum[DIGEST_BYTES];
	char text[DIGEST_HEX + 1];

	digest_end(digest, sum);
	digest_hex(sum, text);
	fprintf(intake->list, "%s  tree/%s\n", text, path);
	intake->files++;
}

static int
intake_write_file(struct intake *intake, int from, int file, const char *path, uint64_t size,
		  struct why *why_r)
{
	struct digest digest = { NULL };
	int r;

	digest_begin(&digest);
	r = intake_copy(from, file, size, &digest);
	if (r == 0)
		list_file(intake, &digest, path);
	digest_free(&digest);
	return r < 0 ? why_say(why_r, r, "", "the file %.300s", path) : 0;
}

static int
put_file(struct intake *intake, int from, char *path, bool executable, uint64_t size,
	 bool may_be_there, struct why *why_r)
{
	own_fd int file = -1;
	int r;

	if (intake->files == intake->files_max)
		return why_say(why_r, -EFBIG, "", "the number of files of the packages");
	if (size > intake->bytes_max)
		return why_say(why_r, -EFBIG, "", "the size of the packages");
	r = make_way(intake, path, why_r);
	if (r < 0)
		return r;
	file = openat(intake->tree, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		      executable ? 0555 : 0444);
	if (file < 0 && errno == EEXIST && may_be_there)
		return intake_compare(intake, from, path, size, why_r);
	if (file < 0)
		return why_say(why_r, -errno, "", "the file %.300s", path);
	r = intake_charge(intake, pages_of(size), why_r);
	return r < 0 ? r : intake_write_file(intake, from, file, path, size, why_r);
}

int
intake_file(struct intake *intake, int from, const char *path, bool executable,
	    uint64_t size, struct why *why_r)
{
	char way[PATH_BYTES_MAX + 1];

	if (!path_is_safe(path, strlen(path)))
		return why_say(why_r, -EBADMSG, "", "the path of a file");
	strcpy(way, path);
	return put_file(intake, from, way, executable, size, false, why_r);
}

/* ---- a stream ---- */

static int
take_file(struct intake *intake, int stream, bool executable, struct why *why_r)
{
	unsigned char head[10];
	char path[PATH_BYTES_MAX + 1];
	size_t len;
	int r = intake_bytes(stream, head, sizeof(head));

	if (r < 0)
		return why_say(why_r, r, "", "the stream of files");
	len = intake_number(head, 2);
	if (len == 0 || len > PATH_BYTES_MAX)
		return why_say(why_r, -EBADMSG, "", "the path of a file");
	r = intake_bytes(stream, path, len);
	if (r < 0)
		return why_say(why_r, r, "", "the stream of files");
	path[len] = '\0';
	if (!path_is_safe(path, len))
		return why_say(why_r, -EBADMSG, "", "the path of a file");
	return put_file(intake, stream, path, executable, intake_number(head + 2, 8), true, why_r);
}

static int
take_reason(int stream, struct why *why_r)
{
	unsigned char head[2];
	char text[INTAKE_REASON_MAX], shown[INTAKE_REASON_MAX];
	size_t len;
	int r = intake_bytes(stream, head, sizeof(head));

	len = r == 0 ? intake_number(head, 2) : 0;
	if (r == 0 && (len == 0 || len > INTAKE_REASON_MAX))
		r = -EBADMSG;
	if (r == 0)
		r = intake_bytes(stream, text, len);
	if (r < 0)
		return why_say(why_r, r, "", "the stream of files");
	quote_line(shown, sizeof(shown), text, len);
	return why_say(why_r, -EBADMSG, "", "%s", shown);
}

int
intake_read(struct intake *intake, int stream, struct why *why_r)
{
	uint32_t files = 0;
	unsigned char kind, count[4];
	int r;

	for (;; files++) {
		r = intake_bytes(stream, &kind, 1);
		if (r < 0)
			return why_say(why_r, r, "", "the stream of files");
		if (kind == 'E')
			break;
		if (kind == 'R')
			return take_reason(stream, why_r);
		if (kind != 'F' && kind != 'X')
			return why_say(why_r, -EBADMSG, "", "the stream of files");
		r = take_file(intake, stream, kind == 'X', why_r);
		if (r < 0)
			return r;
	}
	r = intake_bytes(stream, count, sizeof(count));
	if (r == 0 && intake_number(count, 4) != files)
		r = -EBADMSG;
	return r < 0 ? why_say(why_r, r, "", "the stream of files") : 0;
}
