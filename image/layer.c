/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-unpack.   Owns: the archive, while it is read.
 * Reads:   archives that a stranger may have made, by libarchive. */
#include "image/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "base/own.h"
#include "base/remove.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "image/place.h"

#define BLOCK 262144
#define SHOWN "%.200s"
#define MODE_MASK 0755		/* what is kept of a mode */
#define WHITEOUT ".wh."		/* before the name of what is removed */
#define OPAQUE ".wh..wh..opq"	/* all that the layers before have in this directory */
#define RESERVED ".wh..wh."

/* The state of a pass. */
struct pass {
	struct layer_tree *tree;
	struct archive *archive;
	struct archive_entry *entry;
	struct place_name name;		/* of the entry */
	int dir;			/* the entry's directory; -1: not open */
	char *dir_path;			/* and its path in name */
	bool whiteouts;
	struct why *why;
};

static int
layer_refuse(struct pass *pass, int code, const char *what)
{
	return why_say(pass->why, code, "", SHOWN ": %s", pass->name.text,
		       what ? what : strerror(-code));
}

/* ---- directories ---- */

static void
forget_dir(struct pass *pass)
{
	if (pass->dir >= 0)
		close(pass->dir);
	free(pass->dir_path);
	pass->dir_path = NULL;
	pass->dir = -1;
}

/* Archives have a directory's entries one after the other, so the last one is kept open. */
static int
enter_dir(struct pass *pass, bool make)
{
	size_t len = (size_t)(pass->name.last - pass->name.text);

	if (pass->dir >= 0 && strlen(pass->dir_path) == len &&
	    memcmp(pass->dir_path, pass->name.text, len) == 0)
		return 0;
	forget_dir(pass);
	pass->dir = place_open(pass->tree->top, &pass->name, make);
	if (pass->dir < 0)
		return pass->dir;
	pass->dir_path = xmemdup0(pass->name.text, len);
	return 0;
}

/* Removes what has the entry's name. If that is not a regular file, the directory may have been
 * reached through it, and is opened again. */
static int
make_free(struct pass *pass)
{
	struct stat st;
	int r;

	if (fstatat(pass->dir, pass->name.last, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISREG(st.st_mode))
		return unlinkat(pass->dir, pass->name.last, 0) < 0 ? -errno : 0;
	r = remove_tree(pass->dir, pass->name.last, PLACE_DEPTH_MAX);
	forget_dir(pass);
	return r < 0 ? r : enter_dir(pass, true);
}

/* ---- entries ---- */

static int
put_file(struct pass *pass)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_OMIT } };
	own_fd int fd = -1;
	int r = make_free(pass);

	if (r < 0)
		return layer_refuse(pass, r, NULL);
	fd = openat(pass->dir, pass->name.last,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return layer_refuse(pass, -errno, NULL);
	r = spool_entry(pass->archive, fd, &pass->tree->room, NULL, pass->why);
	if (r < 0)
		return r;
	/* Compiled modules are held against the times of their sources. */
	if (archive_entry_mtime_is_set(pass->entry)) {
		times[1].tv_sec = archive_entry_mtime(pass->entry);
		times[1].tv_nsec = archive_entry_mtime_nsec(pass->entry);
	}
	/* A hole at the end is not among the blocks. */
	if (archive_entry_size_is_set(pass->entry) &&
	    (uint64_t)archive_entry_size(pass->entry) <= LAYER_BYTES_MAX &&
	    ftruncate(fd, archive_entry_size(pass->entry)) < 0)
		return layer_refuse(pass, -errno, NULL);
	if (fchmod(fd, archive_entry_perm(pass->entry) & MODE_MASK) < 0 || futimens(fd, times) < 0)
		return layer_refuse(pass, -errno, NULL);
	return 0;
}

static int
put_hard_link(struct pass *pass, const char *target)
{
	struct place_name other;
	own_fd int dir = -1;
	struct stat to, here;
	int r = place_name(target, &other);

	if (r == 0)
		r = dir = place_open(pass->tree->top, &other, false);
	if (r < 0 || fstatat(dir, other.last, &to, AT_SYMLINK_NOFOLLOW) < 0)
		return layer_refuse(pass, r < 0 ? r : -errno, "a hard link to nothing");
	if (!S_ISREG(to.st_mode) && !S_ISLNK(to.st_mode))
		return layer_refuse(pass, -EBADMSG, "a hard link whose target is not a file");
	if (fstatat(pass->dir, pass->name.last, &here, AT_SYMLINK_NOFOLLOW) == 0 &&
	    here.st_ino == to.st_ino && here.st_dev == to.st_dev)
		return 0;
	r = make_free(pass);
	if (r == 0 && linkat(dir, other.last, pass->dir, pass->name.last, 0) < 0)
		r = -errno;
	return r < 0 ? layer_refuse(pass, r, NULL) : 0;
}

static int
put_link(struct pass *pass)
{
	const char *target = archive_entry_symlink(pass->entry);
	int r = make_free(pass);

	if (!target || !*target)
		return layer_refuse(pass, -EBADMSG, "a link to nothing");
	if (r == 0 && symlinkat(target, pass->dir, pass->name.last) < 0)
		r = -errno;
	return r < 0 ? layer_refuse(pass, r, NULL) : 0;
}

/* The owner can always write to a directory, because entries are still put into it. */
static int
put_directory(struct pass *pass)
{
	mode_t mode = (archive_entry_perm(pass->entry) & MODE_MASK) | 0700;
	struct stat st;
	int r = 0;

	if (fstatat(pass->dir, pass->name.last, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISDIR(st.st_mode)) {
		r = make_free(pass);
		if (r == 0 && mkdirat(pass->dir, pass->name.last, 0700) < 0)
			r = -errno;
	}
	if (r == 0 && fchmodat(pass->dir, pass->name.last, mode, 0) < 0)
		r = -errno;
	return r < 0 ? layer_refuse(pass, r, NULL) : 0;
}

static int
layer_put(struct pass *pass)
{
	const char *hard = archive_entry_hardlink(pass->entry);
	mode_t type = archive_entry_filetype(pass->entry);
	int r;

	if (!*pass->name.last ||
	    (pass->whiteouts && strncmp(pass->name.last, WHITEOUT, strlen(WHITEOUT)) == 0))
		return 0;
	if (!hard && type != AE_IFREG && type != AE_IFDIR && type != AE_IFLNK) {
		pass->tree->left_out++;
		return 0;
	}
	r = enter_dir(pass, true);
	if (r < 0)
		return layer_refuse(pass, r, NULL);
	return hard ? put_hard_link(pass, hard) : type == AE_IFREG ? put_file(pass)
		: type == AE_IFDIR ? put_directory(pass) : put_link(pass);
}

/* ---- whiteouts ---- */

static int
take_out(struct pass *pass)
{
	const char *last = pass->name.last, *gone = last + strlen(WHITEOUT);
	int r;

	if (strncmp(last, WHITEOUT, strlen(WHITEOUT)) != 0)
		return 0;
	if (strcmp(last, OPAQUE) != 0 && strncmp(last, RESERVED, strlen(RESERVED)) == 0)
		return 0;
	if (!*gone || strcmp(gone, ".") == 0 || strcmp(gone, "..") == 0)
		return layer_refuse(pass, -EBADMSG, "it removes nothing that has a name");
	r = enter_dir(pass, false);
	if (r == 0)
		r = strcmp(last, OPAQUE) == 0 ? remove_below(pass->dir, PLACE_DEPTH_MAX)
					      : remove_tree(pass->dir, gone, PLACE_DEPTH_MAX);
	forget_dir(pass);
	return r == 0 || r == -ENOENT || r == -ENOTDIR ? 0 : layer_refuse(pass, r, NULL);
}

/* ---- the archive ---- */

static int
read_name(struct pass *pass)
{
	const char *text = archive_entry_pathname(pass->entry);
	int r = text ? place_name(text, &pass->name) : -EINVAL;

	if (r < 0)
		return why_say(pass->why, -EBADMSG, "", "a name that leads out of it, or that is not a "
			       "valid name: " SHOWN, text ? text : "");
	if (pass->tree->entries-- == 0)
		return why_say(pass->why, -EFBIG, "", "it has too many files");
	return 0;
}

static int
open_archive(struct pass *pass, int file)
{
	struct archive *archive = pass->archive;

	if (!spool_knows_compression(archive) ||
	    archive_read_support_format_tar(archive) != ARCHIVE_OK ||
	    archive_read_support_format_empty(archive) != ARCHIVE_OK ||
	    lseek(file, 0, SEEK_SET) < 0 ||
	    archive_read_open_fd(archive, file, BLOCK) != ARCHIVE_OK)
		return spool_refuse(archive, pass->why);
	return 0;
}

static int
layer_walk(struct layer_tree *tree, int file, bool whiteouts, int (*each)(struct pass *),
	   struct why *why_r)
{
	struct pass pass = {
		.tree = tree, .archive = xalloc_check(archive_read_new()), .dir = -1,
		.whiteouts = whiteouts, .why = why_r,
	};
	int r = open_archive(&pass, file);

	while (r == 0) {
		int next = archive_read_next_header(pass.archive, &pass.entry);

		if (next == ARCHIVE_EOF)
			break;
		r = next == ARCHIVE_OK || next == ARCHIVE_WARN ? read_name(&pass)
			: spool_refuse(pass.archive, why_r);
		if (r == 0)
			r = each(&pass);
	}
	forget_dir(&pass);
	archive_read_free(pass.archive);
	return r;
}

/* Whiteouts of a layer remove entries of the layers before, so they are read first. */
int
layer_unpack(struct layer_tree *tree, int file, bool whiteouts, struct why *why_r)
{
	int r = whiteouts ? layer_walk(tree, file, true, take_out, why_r) : 0;

	return r < 0 ? r : layer_walk(tree, file, whiteouts, layer_put, why_r);
}
