/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-unpack.   Owns: the copies of an archive's files.
 * Reads:   an archive that a stranger may have made, by libarchive, and JSON, by jansson. */
#include "image/blobs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>
#include <jansson.h>

#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "image/place.h"

#define BLOCK 262144
#define LINKS_MAX 8		/* from a name to a file */

struct blob {
	char *name;
	char *link;		/* the name of another one; NULL: fd is its file */
	int fd;
};

/* ---- reading an archive ---- */

/* Reads a link's target, as a name from the top of the archive. A "../" at its start removes one
 * directory from the text of the name; other ".." are refused. */
static int
read_target(const struct place_name *from, const char *target, bool from_top, char **name_r)
{
	char text[2 * PATH_MAX] = "";
	struct place_name name;
	int r;

	if (!from_top)
		snprintf(text, sizeof(text), "%.*s", (int)(from->last - from->text), from->text);
	while (strncmp(target, "../", 3) == 0) {
		char *slash;

		target += 3;
		if (*text)
			text[strlen(text) - 1] = '\0';
		slash = strrchr(text, '/');
		*(slash ? slash + 1 : text) = '\0';
	}
	if (strlen(text) + strlen(target) >= sizeof(text))
		return -ENAMETOOLONG;
	strcat(text, target);
	r = place_name(text, &name);
	*name_r = r == 0 ? xstrdup(name.text) : NULL;
	return r;
}

static int
read_one(struct blobs *blobs, struct archive *archive, struct archive_entry *entry,
	 struct why *why_r)
{
	const char *text = archive_entry_pathname(entry), *hard = archive_entry_hardlink(entry);
	const char *link = hard ? hard : archive_entry_symlink(entry);
	struct blob blob = { .fd = -1 };
	struct place_name name;
	int r = text ? place_name(text, &name) : -EINVAL;

	if (r < 0)
		return why_say(why_r, -EBADMSG, "", "it has a file without a usable name");
	if (!link && archive_entry_filetype(entry) != AE_IFREG)
		return 0;
	if (blobs->n == BLOBS_MAX)
		return why_say(why_r, -EFBIG, "", "it has more than %d files", BLOBS_MAX);
	if (link && read_target(&name, link, hard, &blob.link) < 0)
		return 0;	/* nothing that is asked for is behind it */
	blob.fd = link ? -1 : spool_new(blobs->dir);
	if (!link && blob.fd < 0)
		return why_say(why_r, blob.fd, "", "a temporary file: %s", strerror(-blob.fd));
	blob.name = xstrdup(name.text);
	blobs->blob = xrealloc(blobs->blob, (blobs->n + 1) * sizeof(blob));
	blobs->blob[blobs->n++] = blob;
	return link ? 0 : spool_entry(archive, blob.fd, blobs->room, NULL, why_r);
}

int
blobs_read(struct blobs *blobs, int file, struct why *why_r)
{
	struct archive *archive = xalloc_check(archive_read_new());
	struct archive_entry *entry;
	int r = 0, next = ARCHIVE_EOF;

	if (!spool_knows_compression(archive) ||
	    archive_read_support_format_tar(archive) != ARCHIVE_OK ||
	    archive_read_open_fd(archive, file, BLOCK) != ARCHIVE_OK)
		r = spool_refuse(archive, why_r);
	blobs->blob = xcalloc(1, sizeof(*blobs->blob));
	while (r == 0 && (next = archive_read_next_header(archive, &entry)) != ARCHIVE_EOF)
		r = next == ARCHIVE_OK || next == ARCHIVE_WARN
			? read_one(blobs, archive, entry, why_r) : spool_refuse(archive, why_r);
	archive_read_free(archive);
	return r;
}

void
blobs_free(struct blobs *blobs)
{
	for (size_t i = 0; i < blobs->n; i++) {
		if (blobs->blob[i].fd >= 0)
			close(blobs->blob[i].fd);
		free(blobs->blob[i].name);
		free(blobs->blob[i].link);
	}
	free(blobs->blob);
	blobs->blob = NULL;
	blobs->n = 0;
}

/* ---- one of them ---- */

static int
open_in_directory(const struct blobs *blobs, const char *name)
{
	const struct open_how how = {
		.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	own_fd int fd = (int)syscall(SYS_openat2, blobs->dir, name, &how, sizeof(how));
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? give_fd(fd) : -ENOENT;
}

static const struct blob *
blobs_find(const struct blobs *blobs, const char *name)
{
	for (size_t i = blobs->n; i > 0; i--)	/* of two with a name the last one is meant */
		if (strcmp(blobs->blob[i - 1].name, name) == 0)
			return &blobs->blob[i - 1];
	return NULL;
}

int
blobs_open(const struct blobs *blobs, const char *name)
{
	struct place_name wanted;
	const struct blob *blob;
	int links = 0, fd;

	if (place_name(name, &wanted) < 0 || !*wanted.text)
		return -EINVAL;
	if (!blobs->blob)
		return open_in_directory(blobs, wanted.text);
	blob = blobs_find(blobs, wanted.text);
	while (blob && blob->link)
		blob = links++ < LINKS_MAX ? blobs_find(blobs, blob->link) : NULL;
	fd = blob ? fcntl(blob->fd, F_DUPFD_CLOEXEC, 0) : -1;
	return fd >= 0 ? fd : blob ? -errno : -ENOENT;
}

json_t *
blobs_json(const struct blobs *blobs, const char *name, const char *hex, struct why *why_r)
{
	own_mem char *text = NULL;
	own_fd int fd = blobs_open(blobs, name);
	char sum[SPOOL_HEX + 1];
	json_error_t error;
	json_t *json;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		why_say(why_r, 0, "", "%.200s: %s", name, strerror(fd < 0 ? -fd : errno));
		return NULL;
	}
	if (st.st_size > BLOBS_JSON_MAX) {
		why_say(why_r, 0, "", "%.200s is too large", name);
		return NULL;
	}
	text = xalloc_check(malloc((size_t)st.st_size + 1));
	if (pread(fd, text, (size_t)st.st_size, 0) != st.st_size) {
		why_say(why_r, 0, "", "%.200s cannot be read", name);
		return NULL;
	}
	spool_hex(text, (size_t)st.st_size, sum);
	if (hex && strcmp(sum, hex) != 0) {
		why_say(why_r, 0, "", "%.200s is not what its SHA-256 says: it is %s", name, sum);
		return NULL;
	}
	json = json_loadb(text, (size_t)st.st_size, JSON_REJECT_DUPLICATES, &error);
	if (!json)
		why_say(why_r, 0, "", "%.200s: line %d: %s", name, error.line, error.text);
	return json;
}
