/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-unpack.   Owns: nothing that outlives a call. */
#include "image/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>
#include <openssl/evp.h>

#include "base/hex.h"
#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"

#define BLOCK 262144
#define SHA256_BYTES (SPOOL_HEX / 2)

int
spool_refuse(struct archive *archive, struct why *why_r)
{
	const char *text = archive_error_string(archive);

	return why_say(why_r, -EBADMSG, "", "it is not a valid archive: %.200s",
		       text ? text : "unknown");
}

int
spool_new(int dir)
{
	/* O_TMPFILE is not known to every file system. */
	static const char name[] = ".spool";
	int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (unlinkat(dir, name, 0) < 0) {
		int error = errno;

		close(fd);
		return -error;
	}
	return fd;
}

/* Writes at an offset. -EFBIG: there is no room for it. */
static int
spool_write(int fd, const void *bytes, size_t len, off_t at, struct spool_room *room)
{
	const char *from = bytes;

	if (len > room->bytes)
		return -EFBIG;
	room->bytes -= len;
	while (len > 0) {
		ssize_t n = pwrite(fd, from, len, at);

		if (n < 0 && errno != EINTR)
			return -errno;
		from += n > 0 ? n : 0;
		at += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

void
spool_hex(const void *bytes, size_t len, char hex_r[SPOOL_HEX + 1])
{
	unsigned char sum[SHA256_BYTES];

	xassert(EVP_Digest(bytes, len, sum, NULL, EVP_sha256(), NULL) == 1);
	hex_write(sum, sizeof(sum), hex_r);
}

static EVP_MD_CTX *
spool_digest_new(void)
{
	EVP_MD_CTX *digest = xalloc_check(EVP_MD_CTX_new());

	xassert(EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1);
	return digest;
}

static void
spool_digest_add(EVP_MD_CTX *digest, const void *bytes, size_t len)
{
	xassert(EVP_DigestUpdate(digest, bytes, len) == 1);
}

static void
spool_digest_end(EVP_MD_CTX *digest, char hex_r[SPOOL_HEX + 1])
{
	unsigned char sum[SHA256_BYTES];

	xassert(EVP_DigestFinal_ex(digest, sum, NULL) == 1);
	hex_write(sum, sizeof(sum), hex_r);
}

/* Copies the data with a digest: reads every byte in its order, and writes holes as zeros. */
static int
copy_hashed(struct archive *archive, int fd, struct spool_room *room, EVP_MD_CTX *digest)
{
	own_mem char *block = xalloc_check(malloc(BLOCK));
	la_ssize_t n;
	off_t at = 0;
	int r = 0;

	while ((n = archive_read_data(archive, block, BLOCK)) > 0 && r == 0) {
		spool_digest_add(digest, block, (size_t)n);
		r = spool_write(fd, block, (size_t)n, at, room);
		at += n;
	}
	return n < 0 ? -EBADMSG : r;
}

static int
copy_blocks(struct archive *archive, int fd, struct spool_room *room)
{
	const void *bytes;
	size_t len;
	la_int64_t at;
	int r, wrote = 0;

	while ((r = archive_read_data_block(archive, &bytes, &len, &at)) == ARCHIVE_OK &&
	       wrote == 0)
		wrote = at < 0 ? -EBADMSG : spool_write(fd, bytes, len, at, room);
	return wrote < 0 ? wrote : r == ARCHIVE_EOF ? 0 : -EBADMSG;
}

int
spool_entry(struct archive *archive, int fd, struct spool_room *room, char hex_r[SPOOL_HEX + 1],
	    struct why *why_r)
{
	EVP_MD_CTX *digest = hex_r ? spool_digest_new() : NULL;
	int r = digest ? copy_hashed(archive, fd, room, digest) : copy_blocks(archive, fd, room);

	if (digest && r == 0)
		spool_digest_end(digest, hex_r);
	EVP_MD_CTX_free(digest);
	if (r == -EBADMSG)
		return spool_refuse(archive, why_r);
	if (r == -EFBIG)
		return why_say(why_r, r, "", "it is too large");
	return r < 0 ? why_say(why_r, r, "", "writing: %s", strerror(-r)) : 0;
}

static int
copy_plain(int from, int to, struct spool_room *room, char hex_r[SPOOL_HEX + 1], struct why *why_r)
{
	own_mem char *block = xalloc_check(malloc(BLOCK));
	EVP_MD_CTX *digest = spool_digest_new();
	off_t at = 0;
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = pread(from, block, BLOCK, at)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n > 0)
			spool_digest_add(digest, block, (size_t)n);
		r = n < 0 ? -errno : spool_write(to, block, (size_t)n, at, room);
		at += n;
	}
	spool_digest_end(digest, hex_r);
	EVP_MD_CTX_free(digest);
	return r < 0 ? why_say(why_r, r, "", "copying: %s", strerror(-r)) : 0;
}

static int
copy_unpacked(int from, int to, struct spool_room *room, char hex_r[SPOOL_HEX + 1],
	      struct why *why_r)
{
	struct archive *archive = xalloc_check(archive_read_new());
	struct archive_entry *entry;
	int r;

	if (!spool_knows_compression(archive) ||
	    archive_read_support_format_raw(archive) != ARCHIVE_OK ||
	    lseek(from, 0, SEEK_SET) < 0 ||
	    archive_read_open_fd(archive, from, BLOCK) != ARCHIVE_OK ||
	    archive_read_next_header(archive, &entry) != ARCHIVE_OK)
		r = spool_refuse(archive, why_r);
	else
		r = spool_entry(archive, to, room, hex_r, why_r);
	archive_read_free(archive);
	return r;
}

bool
spool_knows_compression(struct archive *archive)
{
	return archive_read_support_filter_gzip(archive) == ARCHIVE_OK &&
	       archive_read_support_filter_bzip2(archive) == ARCHIVE_OK &&
	       archive_read_support_filter_xz(archive) == ARCHIVE_OK &&
	       archive_read_support_filter_zstd(archive) == ARCHIVE_OK;
}

int
spool_copy(int from, int dir, bool unpacked, struct spool_room *room, char hex_r[SPOOL_HEX + 1],
	   struct why *why_r)
{
	own_fd int to = spool_new(dir);
	int r = to;

	if (to < 0)
		return why_say(why_r, r, "", "a temporary file: %s", strerror(-r));
	r = unpacked ? copy_unpacked(from, to, room, hex_r, why_r)
		     : copy_plain(from, to, room, hex_r, why_r);
	return r < 0 ? r : give_fd(to);
}
