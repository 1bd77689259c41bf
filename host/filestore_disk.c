/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the file helper and its children.   Owns: nothing for longer than a call.
 * Reads:   bytes of scripts and clients, which are copied and not parsed; and the descriptions that
 * it wrote beside them earlier, which are checked like hostile input.
 *
 *   ROOT/t-HASH/NAME          the bytes
 *   ROOT/t-HASH/NAME.about    STORED_FILE; written last
 *
 * Every name is opened below the descriptor of its directory and follows no link. */
#include "host/filestore_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/hex.h"
#include "base/id.h"
#include "base/log.h"
#include "base/nextentry.h"
#include "base/own.h"
#include "base/writeall.h"
#include "base/xalloc.h"
#include "proto/frame.h"

#define CHUNK (256 * 1024)
#define ABOUT_MAX (FRAME_HEADER + 65536)	/* bytes of STORED_FILE as a frame */
#define LOCK_TRIES 50				/* for the earlier helper to end; 100 ms each */

#define ABOUT ".about"
#define UNFINISHED ".new"

struct tenant_name {
	char text[FILE_DIRECTORY + 1];
};

struct file_name {
	char text[FILE_NAME + sizeof(ABOUT)];
};

/* ---- names ---- */

int
filestore_disk_tenant(const struct msg_str *principal, char name_r[FILE_DIRECTORY + 1])
{
	unsigned char hash[32];

	if (EVP_Digest(principal->at, principal->len, hash, NULL, EVP_sha256(), NULL) != 1)
		return -EIO;
	hex_write(hash, sizeof(hash), stpcpy(name_r, "t-"));
	return 0;
}

static int
name_file(const struct msg_str *name, const char *end, struct file_name *name_r)
{
	if (name->len != FILE_NAME || !id_is_valid(name->at, FILE_NAME))
		return -EBADMSG;
	memcpy(name_r->text, name->at, FILE_NAME);
	strcpy(name_r->text + FILE_NAME, end);
	return 0;
}

static int
filestore_disk_open_directory(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int
open_tenant(int root, const struct msg_str *principal, bool make)
{
	struct tenant_name name;
	int r = filestore_disk_tenant(principal, name.text);

	if (r == 0 && make && mkdirat(root, name.text, 0700) < 0 && errno != EEXIST)
		return -errno;
	return r < 0 ? r : filestore_disk_open_directory(root, name.text);
}

int
filestore_disk_open(const char *directory)
{
	const struct timespec pause = { .tv_nsec = 100 * 1000 * 1000 };
	own_fd int fd = -1;
	struct stat st;

	if (mkdir(directory, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = filestore_disk_open_directory(AT_FDCWD, directory);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return -EPERM;
	for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
		if (errno != EWOULDBLOCK || i == LOCK_TRIES)
			return -errno;
		nanosleep(&pause, NULL);
	}
	return give_fd(fd);
}

/* ---- in ---- */

/* Copies len bytes from in to out, and adds them to sum (NULL: none). */
static int
filestore_disk_copy(int in, int out, uint64_t len, EVP_MD_CTX *sum)
{
	static unsigned char chunk[CHUNK];

	while (len > 0) {
		ssize_t n = read(in, chunk, len < sizeof(chunk) ? (size_t)len : sizeof(chunk));
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ESTALE;
		if (sum && EVP_DigestUpdate(sum, chunk, (size_t)n) != 1)
			return -EIO;
		r = write_all(out, chunk, (size_t)n);
		if (r < 0)
			return r;
		len -= (uint64_t)n;
	}
	return 0;
}

static int
copy_summed(int in, int out, uint64_t len, unsigned char sha256_r[FILESTORE_SHA256])
{
	EVP_MD_CTX *sum = EVP_MD_CTX_new();
	int r = sum && EVP_DigestInit_ex(sum, EVP_sha256(), NULL) == 1 ? 0 : -ENOMEM;

	if (r == 0)
		r = filestore_disk_copy(in, out, len, sum);
	if (r == 0 && EVP_DigestFinal_ex(sum, sha256_r, NULL) != 1)
		r = -EIO;
	EVP_MD_CTX_free(sum);
	return r;
}

static int
filestore_disk_make_file(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

static int
keep_bytes(int dir, const struct msg_store_file *file, int in,
	   unsigned char sha256_r[FILESTORE_SHA256])
{
	struct file_name name;
	own_fd int fd = -1;
	int r = name_file(&file->name, "", &name);

	if (r == 0)
		r = fd = filestore_disk_make_file(dir, name.text);
	if (r < 0)
		return r;
	/* Finds a full disk before the bytes come; not every file system supports this. */
	if (fallocate(fd, 0, 0, (off_t)file->size) < 0 && errno != EOPNOTSUPP &&
	    errno != ENOSYS)
		return -errno;
	/* Workers, which have other uids, read it through a mount. Other users cannot pass the
	 * directories above it. */
	if (fchmod(fd, 0644) < 0)
		return -errno;
	r = copy_summed(in, fd, file->size, sha256_r);
	return r == 0 && fdatasync(fd) < 0 ? -errno : r;
}

static int
keep_about(int dir, const struct msg_store_file *file, const unsigned char *sha256)
{
	struct msg msg = { .type = MSG_STORED_FILE, .stored_file = {
		.name = file->name, .principal = file->principal, .uri = file->uri,
		.path = file->path, .size = file->size, .until = file->until,
		.sha256 = { (const char *)sha256, FILESTORE_SHA256 } } };
	struct codec_buffer buffer = { 0 };
	struct file_name name, unfinished;
	own_fd int fd = -1;
	int r = frame_encode(&msg, 0, &buffer);

	if (r == 0)
		r = name_file(&file->name, ABOUT, &name);
	if (r == 0)
		r = name_file(&file->name, UNFINISHED, &unfinished);
	if (r == 0)
		r = fd = filestore_disk_make_file(dir, unfinished.text);
	if (r >= 0)
		r = write_all(fd, buffer.at, buffer.len);
	if (r == 0 && (fdatasync(fd) < 0 || renameat(dir, unfinished.text, dir, name.text) < 0 ||
		       fsync(dir) < 0))
		r = -errno;
	codec_buffer_done(&buffer);
	return r;
}

int
filestore_disk_keep(int root, const struct msg_store_file *file, int in,
		    unsigned char sha256_r[FILESTORE_SHA256])
{
	own_fd int dir = open_tenant(root, &file->principal, true);
	int r;

	if (dir < 0)
		return dir;
	/* The tenant's directory must exist after a crash as well. */
	r = fsync(root) < 0 ? -errno : 0;
	if (r == 0)
		r = keep_bytes(dir, file, in, sha256_r);
	if (r == 0)
		r = keep_about(dir, file, sha256_r);
	if (r < 0)
		filestore_disk_remove(root, &file->principal, &file->name);
	return r;
}

/* ---- a file outside of the store ---- */

/* Opens what lies below a directory, which is named by its real path. O_PATH: to open a device may
 * have effects. A descriptor, or -errno. */
static int
open_below(const char *top, const char *below)
{
	struct open_how whole = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
			   RESOLVE_NO_XDEV,
	};
	own_fd int dir = (int)syscall(SYS_openat2, AT_FDCWD, top, &whole, sizeof(whole));
	int fd = dir < 0 ? -1 : (int)syscall(SYS_openat2, dir, below, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

int
filestore_disk_open_local(const struct msg_str *root, const struct msg_str *path, uint64_t *size_r)
{
	own_mem char *top = xmemdup0(root->at, root->len), *below = xmemdup0(path->at, path->len);
	own_fd int found = open_below(top, below);
	char again[32];
	struct stat st;
	int fd;

	if (found < 0)
		return found;
	if (fstat(found, &st) < 0)
		return -errno;
	/* What O_PATH finds at a link is the link. */
	if (!S_ISREG(st.st_mode))
		return S_ISLNK(st.st_mode) ? -ELOOP : -EINVAL;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", found);
	fd = open(again, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*size_r = (uint64_t)st.st_size;
	return fd;
}

/* ---- out ---- */

static int
open_stored(int root, const struct msg_str *principal, const struct msg_str *file)
{
	own_fd int dir = open_tenant(root, principal, false), fd = -1;
	struct file_name name;
	struct stat st;
	int r = dir < 0 ? dir : name_file(file, "", &name);

	if (r < 0)
		return r;
	fd = openat(dir, name.text, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? give_fd(fd) : -ESTALE;
}

int
filestore_disk_fetch(int root, const struct msg_fetch_file *part, int out)
{
	own_fd int fd = open_stored(root, &part->principal, &part->name);

	if (fd < 0)
		return fd;
	if (lseek(fd, (off_t)part->offset, SEEK_SET) < 0)
		return -errno;
	return filestore_disk_copy(fd, out, part->len, NULL);
}

/* Fills a new file that has no name yet, and then gives it one that nothing has: nobody sees a part
 * of it, and nothing is left if this process is killed. */
static int
give_bytes(int dir, const char *name, int in, uint64_t size,
	   unsigned char sha256_r[FILESTORE_SHA256])
{
	own_fd int out = openat(dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
	char made[32];
	int r;

	if (out < 0)
		return errno == EISDIR ? -EOPNOTSUPP : -errno;
	r = copy_summed(in, out, size, sha256_r);
	snprintf(made, sizeof(made), "/proc/self/fd/%d", out);
	if (r == 0 && (fdatasync(out) < 0 ||
		       linkat(AT_FDCWD, made, dir, name, AT_SYMLINK_FOLLOW) < 0))
		r = -errno;
	return r;
}

int
filestore_disk_give(int root, const struct msg_give_file *file, int in,
		    unsigned char sha256_r[FILESTORE_SHA256])
{
	own_mem char *top = xmemdup0(file->root.at, file->root.len);
	own_mem char *to = xmemdup0(file->to.at, file->to.len);
	char *slash = strrchr(to, '/');
	const char *name = slash ? slash + 1 : to;
	own_fd int dir = -1, stored = -1;
	struct stat st;

	if (slash)
		*slash = '\0';
	dir = open_below(top, slash ? to : ".");
	if (dir < 0)
		return dir;
	/* Early, because the bytes may be many. */
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	if (file->has_name) {
		in = stored = open_stored(root, &file->principal, &file->name);
		if (stored < 0)
			return stored;
	}
	return give_bytes(dir, name, in, file->size, sha256_r);
}

void
filestore_disk_remove(int root, const struct msg_str *principal, const struct msg_str *file)
{
	/* First what makes it a file of the store. */
	static const char *const ends[] = { ABOUT, UNFINISHED, "" };
	own_fd int dir = open_tenant(root, principal, false);
	struct file_name name;

	for (size_t i = 0; dir >= 0 && i < sizeof(ends) / sizeof(*ends); i++)
		if (name_file(file, ends[i], &name) == 0)
			unlinkat(dir, name.text, 0);
}

/* ---- at the start ---- */

struct listing {
	uint64_t now_s;
	int (*on_file)(void *arg, const struct msg_stored_file *file);
	void *arg;
};

/* Reads the description beside a file. 1: *frame_r holds it; 0: it is not a file of the store; or
 * -errno. */
static int
read_about(int dir, const char *name, struct frame *frame_r)
{
	own_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	own_mem unsigned char *text = xcalloc(1, ABOUT_MAX + 1);
	struct frame_reader reader;
	struct stat st;
	ssize_t n;
	size_t used;
	int r = 0;

	if (fd < 0 && (errno == ENOENT || errno == ELOOP || errno == ENXIO))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	n = S_ISREG(st.st_mode) ? read(fd, text, ABOUT_MAX + 1) : 0;
	if (n <= 0 || n > ABOUT_MAX)
		return n < 0 ? -errno : 0;
	frame_reader_init(&reader, FROM_FILESTORE);
	r = frame_reader_feed(&reader, text, (size_t)n, &used, frame_r);
	frame_reader_done(&reader);
	return r == 1 && used == (size_t)n && frame_r->msg.type == MSG_STORED_FILE;
}

/* 1: the file agrees with its description, and is in the right directory; 0: no; or -errno. */
static int
is_whole(int dir, const char *tenant, const char *name, const struct msg_stored_file *file)
{
	struct tenant_name expected;
	struct stat st;
	int r = filestore_disk_tenant(&file->principal, expected.text);

	if (r < 0)
		return r;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return memcmp(name, file->name.at, FILE_NAME) == 0 && strcmp(expected.text, tenant) == 0 &&
	       S_ISREG(st.st_mode) && (uint64_t)st.st_size == file->size;
}

/* What an error hides stays on the disk, and the next helper looks at it again. */
static void
say_unread(const char *name, int error)
{
	log_line(LOG_ERR, "files-unread", "name=%s error=%s", name, strerrorname_np(-error));
}

/* 1: the file is kept; 0: it has to be removed; or -errno of on_file. */
static int
filestore_disk_judge(const struct listing *listing, int dir, const char *tenant, const char *name)
{
	char bare[FILE_NAME + 1] = "";
	struct file_name about;
	struct frame frame = { 0 };
	int r, sent = 0;

	if (strlen(name) < FILE_NAME || !id_is_valid(name, FILE_NAME))
		return 0;
	memcpy(bare, name, FILE_NAME);
	if (name_file(&(struct msg_str){ bare, FILE_NAME }, ABOUT, &about) < 0)
		return 0;
	/* Reported once, with its bytes. */
	if (strcmp(name, bare) != 0 && strcmp(name, about.text) != 0)
		return 0;
	r = read_about(dir, about.text, &frame);
	if (r > 0)
		r = is_whole(dir, tenant, bare, &frame.msg.stored_file);
	if (r < 0)
		say_unread(bare, r);
	else if (r > 0 && frame.msg.stored_file.until <= listing->now_s)
		r = 0;
	else if (r > 0 && strcmp(name, bare) == 0)
		sent = listing->on_file(listing->arg, &frame.msg.stored_file);
	frame_done(&frame);
	return sent < 0 ? sent : r != 0;
}

static int
list_tenant(const struct listing *listing, int root, const char *tenant)
{
	int r = 0, error = 0;
	own_list DIR *dir = openlist(root, tenant, &error);
	const struct dirent *entry;

	while (r >= 0 && (entry = nextentry(dir, &error))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		r = filestore_disk_judge(listing, dirfd(dir), tenant, entry->d_name);
		if (r == 0)
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
	if (error < 0)
		say_unread("directory", error);
	/* If it is empty. */
	unlinkat(root, tenant, AT_REMOVEDIR);
	return r < 0 ? r : 0;
}

int
filestore_disk_list(int root, uint64_t now_s,
		    int (*on_file)(void *arg, const struct msg_stored_file *file), void *arg)
{
	const struct listing listing = { .now_s = now_s, .on_file = on_file, .arg = arg };
	int r = 0;
	own_list DIR *dir = openlist(root, ".", &r);
	const struct dirent *entry;

	while (r == 0 && (entry = nextentry(dir, &r)))
		if (strncmp(entry->d_name, "t-", 2) == 0)
			r = list_tenant(&listing, root, entry->d_name);
	return r;
}
