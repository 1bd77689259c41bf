/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the reader of a wheel, a process that can only read the wheel and write to a pipe.
 * Owns:    the archive, and the list of its files until the end.
 * Reads:   a wheel, which a stranger made, by libarchive. */
#include "keeper/wheel.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "keeper/digest.h"
#include "keeper/launchers.h"
#include "keeper/path.h"
#include "keeper/record.h"
#include "policy/requirement.h"
#include "policy/version.h"

#define BLOCK 65536
#define SHOWN "%.200s"			/* the shown end of a path */
#define TEXT_MAX (4 << 20)		/* bytes of METADATA and the like */
#define RECORD_MAX (32 << 20)
#define FIRST_LINE_MAX 512		/* bytes of a script's first line that may be rewritten */
/* If the files together have more than RATIO_FREE bytes, they may be at most RATIO_MAX times as
 * large as the wheel. Deflate can reach a thousand times. Real packages stay far below RATIO_MAX,
 * except small ones. */
#define RATIO_MAX 100
#define RATIO_FREE (32 << 20)

/* A file of the wheel, or a generated one. */
struct member {
	char *path;		/* in the wheel; NULL: generated */
	char *place;		/* in the environment; NULL: left out */
	uint64_t size, placed_size;
	unsigned char sum[DIGEST_BYTES], placed_sum[DIGEST_BYTES];
	bool told;		/* RECORD lists it */
};

struct text {
	char *at;
	size_t len;
};

/* Files of *.dist-info that this program reads. */
enum info { INFO_METADATA, INFO_WHEEL, INFO_ENTRY_POINTS, INFO_RECORD, INFO_COUNT };

static const struct {
	const char *name;
	size_t max;
} infos[INFO_COUNT] = {
	[INFO_METADATA] = { "METADATA", TEXT_MAX },
	[INFO_WHEEL] = { "WHEEL", TEXT_MAX },
	[INFO_ENTRY_POINTS] = { "entry_points.txt", TEXT_MAX },
	[INFO_RECORD] = { "RECORD", RECORD_MAX },
};

struct wheel {
	int file;
	uint64_t at, size;		/* in the file */
	char block[BLOCK];		/* the input of libarchive */
	struct archive *archive;
	const struct wheel_asked *asked;
	const struct wheel_sink *sink;
	struct why *why;
	char *info;			/* "NAME-VERSION.dist-info" in the wheel's spelling */
	struct text text[INFO_COUNT];
	struct member *member;
	size_t n_members, room;
	uint64_t bytes;			/* of all its files */
	struct digest digest, placed_digest;
};

static int __attribute__((format(printf, 3, 4)))
refuse(struct wheel *wheel, int code, const char *format, ...)
{
	char text[sizeof(wheel->why->text)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return why_say(wheel->why, code, "", "%s %s: %s", wheel->asked->name,
		       wheel->asked->version, text);
}

/* ---- the archive ---- */

static la_ssize_t
wheel_on_read(struct archive *archive, void *arg, const void **bytes_r)
{
	struct wheel *wheel = arg;
	uint64_t left = wheel->size - wheel->at;
	ssize_t n = pread(wheel->file, wheel->block, left < BLOCK ? (size_t)left : BLOCK,
			  (off_t)wheel->at);

	if (n < 0) {
		archive_set_error(archive, errno, "it cannot be read");
		return ARCHIVE_FATAL;
	}
	wheel->at += (uint64_t)n;
	*bytes_r = wheel->block;
	return n;
}

static la_int64_t
on_seek(struct archive *archive, void *arg, la_int64_t offset, int whence)
{
	struct wheel *wheel = arg;
	la_int64_t from = whence == SEEK_SET ? 0
			: (la_int64_t)(whence == SEEK_END ? wheel->size : wheel->at), to;

	if (__builtin_add_overflow(from, offset, &to) || to < 0 || (uint64_t)to > wheel->size) {
		archive_set_error(archive, EINVAL, "it points beyond its end");
		return ARCHIVE_FATAL;
	}
	wheel->at = (uint64_t)to;
	return to;
}

static int
refuse_archive(struct wheel *wheel)
{
	const char *text = archive_error_string(wheel->archive);

	return refuse(wheel, -EBADMSG, "it is not a sound zip archive: %.200s",
		      text ? text : "unknown");
}

static int
open_archive(struct wheel *wheel)
{
	struct archive *archive = wheel->archive = xalloc_check(archive_read_new());

	if (archive_read_support_format_zip_seekable(archive) != ARCHIVE_OK ||
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	    archive_read_set_options(archive, "zip:ignorecrc32") != ARCHIVE_OK ||
#endif
	    archive_read_set_callback_data(archive, wheel) != ARCHIVE_OK ||
	    archive_read_set_read_callback(archive, wheel_on_read) != ARCHIVE_OK ||
	    archive_read_set_seek_callback(archive, on_seek) != ARCHIVE_OK ||
	    archive_read_open1(archive) != ARCHIVE_OK)
		return refuse_archive(wheel);
	return 0;
}

/* ---- names ---- */

/* Does a name of len bytes end in suffix? */
static bool
ends_in(const char *name, size_t len, const char *suffix)
{
	size_t suffix_len = strlen(suffix);

	return len >= suffix_len && strncasecmp(name + len - suffix_len, suffix, suffix_len) == 0;
}

static size_t
top_of(const char *path)
{
	return strcspn(path, "/");
}

static bool
same_name(const char *text, size_t len, const char *expected)
{
	char name[PATH_BYTES_MAX + 1];

	if (len > PATH_BYTES_MAX)
		return false;
	requirement_normalise(text, len, name);
	return strcmp(name, expected) == 0;
}

/* Is it "NAME-VERSION" of the requested package? File names have '_' for '-'. */
static bool
is_asked(const struct wheel_asked *asked, const char *text, size_t len)
{
	const char *dash = memchr(text, '-', len);
	size_t name_len = dash ? (size_t)(dash - text) : len;
	char version[PATH_BYTES_MAX + 1];
	size_t version_len = dash ? len - name_len - 1 : 0;

	if (!dash || len > PATH_BYTES_MAX)
		return false;
	memcpy(version, dash + 1, version_len);
	return same_name(text, name_len, asked->name) &&
	       version_is(version, version_len, asked->version);
}

/* Does it describe a distribution, by the rules of importlib.metadata? */
static bool
is_metadata(const char *path)
{
	size_t len = top_of(path);

	return ends_in(path, len, ".dist-info") || ends_in(path, len, ".egg-info");
}

static bool
is_cached(const char *path)
{
	static const char name[] = "__pycache__/";
	const char *found = path;

	while ((found = strstr(found, name)) && found > path && found[-1] != '/')
		found++;
	return found != NULL;
}

/* Is it a signature of the original RECORD? */
static bool
is_signature(const struct wheel *wheel, const char *path)
{
	const char *rest = path + top_of(path);

	return wheel->info && strncmp(path, wheel->info, strlen(wheel->info)) == 0 &&
	       (strcmp(rest, "/RECORD.jws") == 0 || strcmp(rest, "/RECORD.p7s") == 0);
}

/* The kind of a file of *.dist-info; INFO_COUNT: this program does not read it. */
static enum info
info_of(const struct wheel *wheel, const char *path)
{
	size_t top = top_of(path), i;

	if (!wheel->info || strlen(wheel->info) != top || strncmp(path, wheel->info, top) != 0)
		return INFO_COUNT;
	for (i = 0; i < INFO_COUNT; i++)
		if (path[top] == '/' && strcmp(path + top + 1, infos[i].name) == 0)
			break;
	return (enum info)i;
}

/* The top of a wheel has its one *.dist-info, in one spelling, and none of another distribution. */
static int
check_top(struct wheel *wheel, const char *path)
{
	size_t top = top_of(path);

	if (!is_metadata(path))
		return 0;
	if (!ends_in(path, top, ".dist-info") || path[top] == '\0' ||
	    !is_asked(wheel->asked, path, top - strlen(".dist-info")))
		return refuse(wheel, -EBADMSG, "it tells of another package: " SHOWN, path);
	if (!wheel->info)
		wheel->info = xmemdup0(path, top);
	if (strlen(wheel->info) != top || strncmp(path, wheel->info, top) != 0)
		return refuse(wheel, -EBADMSG, "it has two *.dist-info: " SHOWN, path);
	return 0;
}

/* ---- places ---- */

/* The target of a file below "NAME-VERSION.data/". *script_r: it is a program. NULL: there is no
 * such part. */
static char *
place_of_data(const struct wheel *wheel, const char *rest, bool *script_r)
{
	static const struct {
		const char *part, *place;
	} parts[] = {
		{ "purelib/", "" }, { "platlib/", "" }, { "data/", "" }, { "scripts/", "bin/" },
		{ "headers/", "include/python/%s/" },
	};
	char *place;

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		size_t len = strlen(parts[i].part);
		int n;

		if (strncmp(rest, parts[i].part, len) != 0)
			continue;
		*script_r = strcmp(parts[i].part, "scripts/") == 0;
		n = strchr(parts[i].place, '%')
			? asprintf(&place, "include/python/%s/%s", wheel->asked->name, rest + len)
			: asprintf(&place, "%s%s", parts[i].place, rest + len);
		return xalloc_check(n < 0 ? NULL : place);
	}
	return NULL;
}

/* The target of a file; malloc'd, NULL in *place_r: it is left out. */
static int
find_place(struct wheel *wheel, const char *path, char **place_r, bool *script_r)
{
	size_t top = top_of(path);
	bool data = path[top] == '/' && ends_in(path, top, ".data") &&
		    is_asked(wheel->asked, path, top - strlen(".data"));
	own_mem char *place = data ? place_of_data(wheel, path + top + 1, script_r)
				   : xstrdup(path);

	*place_r = NULL;
	if (!place || (data && is_metadata(place)))
		return refuse(wheel, -EBADMSG, "nothing can be at " SHOWN, path);
	if (is_cached(path) || is_signature(wheel, path) ||
	    info_of(wheel, path) == INFO_RECORD)
		return 0;
	if (!path_is_safe(place, strlen(place)))
		return refuse(wheel, -EBADMSG, "it names a file " SHOWN, path);
	*place_r = give_ptr(place);
	return 0;
}

/* ---- one file ---- */

static struct member *
add_member(struct wheel *wheel)
{
	if (wheel->n_members == wheel->room) {
		wheel->room = wheel->room ? 2 * wheel->room : 64;
		wheel->member = xrealloc(wheel->member, wheel->room * sizeof(*wheel->member));
	}
	wheel->member[wheel->n_members] = (struct member){ .path = NULL };
	return &wheel->member[wheel->n_members++];
}

static void
keep_text(struct wheel *wheel, enum info which, const char *bytes, size_t len)
{
	struct text *text = &wheel->text[which];

	text->at = xrealloc(text->at, text->len + len + 1);
	memcpy(text->at + text->len, bytes, len);
	text->len += len;
	text->at[text->len] = '\0';
}

static int
place_bytes(struct wheel *wheel, const char *bytes, size_t len)
{
	digest_add(&wheel->placed_digest, bytes, len);
	return wheel->sink->bytes(wheel->sink->arg, bytes, len);
}

/* A script for Python gets the interpreter's line instead of its own, which has *skip_r bytes. */
static size_t
first_line(const struct wheel *wheel, const char *bytes, size_t len, char *line, size_t size,
	   size_t *skip_r)
{
	static const char asks[] = "#!python";
	const char *end = memchr(bytes, '\n', len < FIRST_LINE_MAX ? len : FIRST_LINE_MAX);

	*skip_r = 0;
	if (!end || (size_t)(end - bytes) < strlen(asks) ||
	    strncmp(bytes, asks, strlen(asks)) != 0)
		return 0;
	*skip_r = (size_t)(end - bytes) + 1;
	return (size_t)snprintf(line, size, "#!%s\n", wheel->asked->python);
}

/* Passes the first block of a file, or its replacement, to the sink. */
static int
place_first(struct wheel *wheel, struct member *member, bool executable, bool script,
	    const char *bytes, size_t len)
{
	char line[FIRST_LINE_MAX];
	size_t skip = 0, n = script ? first_line(wheel, bytes, len, line, sizeof(line), &skip) : 0;
	int r;

	member->placed_size = member->size - skip + n;
	r = wheel->sink->file(wheel->sink->arg, member->place, executable || script,
			      member->placed_size);
	if (r == 0 && n)
		r = place_bytes(wheel, line, n);
	return r == 0 ? place_bytes(wheel, bytes + skip, len - skip) : r;
}

static int
copy_member(struct wheel *wheel, struct member *member, bool executable, bool script)
{
	enum info info = info_of(wheel, member->path);
	uint64_t left = member->size;
	char block[BLOCK];
	bool first = true;
	la_ssize_t n;
	int r = 0;

	if (info != INFO_COUNT && member->size > infos[info].max)
		return refuse(wheel, -EFBIG, "too large: " SHOWN, member->path);
	digest_begin(&wheel->digest);
	digest_begin(&wheel->placed_digest);
	do {
		n = archive_read_data(wheel->archive, block, sizeof(block));
		if (n < 0)
			return refuse_archive(wheel);
		if ((uint64_t)n > left)
			return refuse(wheel, -EBADMSG, "longer than it says: " SHOWN,
				      member->path);
		left -= (uint64_t)n;
		digest_add(&wheel->digest, block, (size_t)n);
		if (info != INFO_COUNT)
			keep_text(wheel, info, block, (size_t)n);
		if (member->place && first)
			r = place_first(wheel, member, executable, script, block, (size_t)n);
		else if (member->place && n)
			r = place_bytes(wheel, block, (size_t)n);
		first = false;
	} while (n > 0 && r == 0);
	if (r == 0 && left)
		return refuse(wheel, -EBADMSG, "shorter than it says: " SHOWN, member->path);
	digest_end(&wheel->digest, member->sum);
	digest_end(&wheel->placed_digest, member->placed_sum);
	return r;
}

/* Checks the stated size, before any byte is read. */
static int
wheel_charge(struct wheel *wheel, const char *path, const la_int64_t size)
{
	if (size < 0)
		return refuse(wheel, -EBADMSG, "no size is said of " SHOWN, path);
	if (wheel->n_members >= wheel->asked->files_max)
		return refuse(wheel, -EFBIG, "it has more files than may be installed");
	if ((uint64_t)size > wheel->asked->bytes_max - wheel->bytes)
		return refuse(wheel, -EFBIG, "its files are larger than may be installed");
	wheel->bytes += (uint64_t)size;
	if (wheel->bytes > RATIO_FREE && wheel->bytes / RATIO_MAX > wheel->size)
		return refuse(wheel, -EFBIG, "its files are more than %d times as large as it is",
			      RATIO_MAX);
	return 0;
}

/* Deflated or stored: Python's tools write nothing else. */
static bool
is_compressed_as_usual(struct archive *archive)
{
	const char *name = archive_format_name(archive);

	return name && (strstr(name, "(deflation)") || strstr(name, "(uncompressed)"));
}

static int
take_entry(struct wheel *wheel, struct archive_entry *entry)
{
	const char *path = archive_entry_pathname(entry);
	bool executable = (archive_entry_perm(entry) & 0111) != 0, script = false;
	struct member *member;
	char *place;
	int r;

	if (!path || strlen(path) > PATH_BYTES_MAX + 1)
		return refuse(wheel, -EBADMSG, "the name of a file cannot be read");
	if (archive_entry_filetype(entry) == AE_IFDIR)
		return 0;
	if (!path_is_safe(path, strlen(path)))
		return refuse(wheel, -EBADMSG, "it names a file outside of it, or one that "
			      "cannot be shown");
	if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) ||
	    archive_entry_is_encrypted(entry) || !is_compressed_as_usual(wheel->archive))
		return refuse(wheel, -EBADMSG, "no plain file: " SHOWN, path);
	r = wheel_charge(wheel, path,
			 archive_entry_size_is_set(entry) ? archive_entry_size(entry) : -1);
	if (r == 0)
		r = check_top(wheel, path);
	if (r == 0)
		r = find_place(wheel, path, &place, &script);
	if (r < 0)
		return r;
	member = add_member(wheel);
	member->path = xstrdup(path);
	member->place = place;
	member->size = (uint64_t)archive_entry_size(entry);
	return copy_member(wheel, member, executable, script);
}

static int
take_entries(struct wheel *wheel)
{
	struct archive_entry *entry;
	int r;

	for (;;) {
		r = archive_read_next_header(wheel->archive, &entry);
		if (r == ARCHIVE_EOF)
			return 0;
		if (r != ARCHIVE_OK)
			return refuse_archive(wheel);
		r = take_entry(wheel, entry);
		if (r < 0)
			return r;
	}
}

/* ---- metadata ---- */

/* The single value of a field, in a text like a message's head. */
static int
find_field(const struct text *text, const char *name, struct text *value_r)
{
	size_t name_len = strlen(name);
	bool found = false;

	*value_r = (struct text){ NULL, 0 };
	for (char *line = text->at; line && *line && *line != '\n' && *line != '\r';) {
		size_t len = strcspn(line, "\n");

		if (strncasecmp(line, name, name_len) == 0 && line[name_len] == ':') {
			char *from = line + name_len + 1, *end = line + len;

			if (found)
				return -EBADMSG;
			while (from < end && isspace((unsigned char)*from))
				from++;
			while (end > from && isspace((unsigned char)end[-1]))
				end--;
			*value_r = (struct text){ from, (size_t)(end - from) };
			found = true;
		}
		line += len + (line[len] == '\n');
	}
	return found ? 0 : -EBADMSG;
}

static int
check_infos(struct wheel *wheel)
{
	const struct wheel_asked *asked = wheel->asked;
	struct text name, version, layout;

	if (!wheel->text[INFO_METADATA].at || !wheel->text[INFO_WHEEL].at ||
	    !wheel->text[INFO_RECORD].at)
		return refuse(wheel, -EBADMSG, "it has no METADATA, WHEEL or RECORD");
	if (find_field(&wheel->text[INFO_WHEEL], "Wheel-Version", &layout) < 0 ||
	    layout.len < 3 || strncmp(layout.at, "1.", 2) != 0)
		return refuse(wheel, -EBADMSG, "its Wheel-Version is unknown");
	if (find_field(&wheel->text[INFO_METADATA], "Name", &name) < 0 ||
	    find_field(&wheel->text[INFO_METADATA], "Version", &version) < 0 ||
	    !same_name(name.at, name.len, asked->name) ||
	    !version_is(version.at, version.len, asked->version))
		return refuse(wheel, -EBADMSG, "its METADATA is of another package");
	return 0;
}

/* ---- RECORD ---- */

static int
by_path(const void *a, const void *b)
{
	return strcmp(((const struct member *)a)->path, ((const struct member *)b)->path);
}

/* May RECORD leave out the hash of this file? */
static bool
is_unhashed(const struct wheel *wheel, const struct member *member)
{
	return info_of(wheel, member->path) == INFO_RECORD || is_signature(wheel, member->path) ||
	       is_cached(member->path);
}

static bool
row_fits(const struct wheel *wheel, const struct record_row *row, const struct member *member)
{
	char hash[sizeof(row->hash)], size[sizeof(row->size)];

	record_hash(member->sum, hash);
	snprintf(size, sizeof(size), "%llu", (unsigned long long)member->size);
	if (!*row->hash && is_unhashed(wheel, member))
		return true;
	return strcmp(row->hash, hash) == 0 && (!*row->size || strcmp(row->size, size) == 0);
}

static int
check_row(struct wheel *wheel, struct record_row *row)
{
	const struct member key = { .path = row->path };
	struct member *member = bsearch(&key, wheel->member, wheel->n_members, sizeof(key),
					by_path);

	if (!path_is_safe(row->path, strlen(row->path)))
		return refuse(wheel, -EBADMSG, "its RECORD names a file outside of it");
	if (!member)
		return refuse(wheel, -EBADMSG, "its RECORD lists a missing file: "
			      SHOWN, row->path);
	if (member->told)
		return refuse(wheel, -EBADMSG, "its RECORD tells twice of " SHOWN, row->path);
	if (!row_fits(wheel, row, member))
		return refuse(wheel, -EBADMSG, "not as its RECORD says: " SHOWN, row->path);
	member->told = true;
	return 0;
}

/* Checks that each file occurs once in the archive and once in RECORD, with its hash. */
static int
check_record(struct wheel *wheel)
{
	const char *at = wheel->text[INFO_RECORD].at, *end = at + wheel->text[INFO_RECORD].len;
	struct record_row row;
	int r;

	qsort(wheel->member, wheel->n_members, sizeof(*wheel->member), by_path);
	for (size_t i = 1; i < wheel->n_members; i++)
		if (by_path(&wheel->member[i - 1], &wheel->member[i]) == 0)
			return refuse(wheel, -EBADMSG, "it has twice " SHOWN,
				      wheel->member[i].path);
	while ((r = record_read(&at, end, &row)) > 0) {
		r = check_row(wheel, &row);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return refuse(wheel, -EBADMSG, "its RECORD cannot be read");
	for (size_t i = 0; i < wheel->n_members; i++)
		if (!wheel->member[i].told && !is_unhashed(wheel, &wheel->member[i]))
			return refuse(wheel, -EBADMSG, "its RECORD does not tell of " SHOWN,
				      wheel->member[i].path);
	return 0;
}

/* ---- generated files ---- */

static int
wheel_make_file(struct wheel *wheel, char *place, bool executable, const char *text, size_t len)
{
	struct member *member = add_member(wheel);
	int r;

	member->place = place;
	member->placed_size = len;
	digest_begin(&wheel->placed_digest);
	r = wheel->sink->file(wheel->sink->arg, place, executable, len);
	if (r == 0)
		r = place_bytes(wheel, text, len);
	digest_end(&wheel->placed_digest, member->placed_sum);
	return r;
}

static int
on_launcher(void *arg, const char *name, const char *text, size_t len, struct why *why_r)
{
	struct wheel *wheel = arg;
	char *place;

	if (wheel->n_members >= wheel->asked->files_max)
		return why_say(why_r, -EFBIG, "", "it has more scripts than may be installed");
	if (asprintf(&place, "bin/%s", name) < 0)
		xalloc_fail(0);
	return wheel_make_file(wheel, place, true, text, len);
}

static int
make_launchers(struct wheel *wheel)
{
	const struct text *text = &wheel->text[INFO_ENTRY_POINTS];
	struct why why = { .text = "" };
	int r = launchers_make(text->at, text->len, wheel->asked->python, on_launcher, wheel,
			       &why);

	return r < 0 && *why.text ? refuse(wheel, r, "%s", why.text) : r;
}

static int
by_place(const void *a, const void *b)
{
	const char *left = ((const struct member *)a)->place;
	const char *right = ((const struct member *)b)->place;

	if (!left || !right)
		return (left != NULL) - (right != NULL);
	return strcmp(left, right);
}

/* No two files, from the top, from *.data or generated, may have the same target. */
static int
check_places(struct wheel *wheel)
{
	qsort(wheel->member, wheel->n_members, sizeof(*wheel->member), by_place);
	for (size_t i = 1; i < wheel->n_members; i++)
		if (wheel->member[i].place &&
		    by_place(&wheel->member[i - 1], &wheel->member[i]) == 0)
			return refuse(wheel, -EBADMSG, "two of its files would be at " SHOWN,
				      wheel->member[i].place);
	return 0;
}

static int
make_record(struct wheel *wheel)
{
	own_mem char *text = NULL;
	char *place;
	size_t len;
	FILE *to = xalloc_check(open_memstream(&text, &len));

	if (asprintf(&place, "%s/RECORD", wheel->info) < 0)
		xalloc_fail(0);
	for (size_t i = 0; i < wheel->n_members; i++)
		if (wheel->member[i].place)
			record_write(to, wheel->member[i].place, wheel->member[i].placed_sum,
				     wheel->member[i].placed_size);
	record_write(to, place, NULL, 0);
	xassert(fclose(to) == 0);
	return wheel_make_file(wheel, place, false, text, len);
}

/* ---- the whole wheel ---- */

static void
free_wheel(struct wheel *wheel)
{
	archive_read_free(wheel->archive);
	for (size_t i = 0; i < wheel->n_members; i++) {
		free(wheel->member[i].path);
		free(wheel->member[i].place);
	}
	free(wheel->member);
	for (size_t i = 0; i < INFO_COUNT; i++)
		free(wheel->text[i].at);
	free(wheel->info);
	digest_free(&wheel->digest);
	digest_free(&wheel->placed_digest);
	free(wheel);
}

int
wheel_read(int file, uint64_t size, const struct wheel_asked *asked,
	   const struct wheel_sink *sink, struct why *why_r)
{
	static int (*const steps[])(struct wheel *) = {
		open_archive, take_entries, check_infos, check_record, make_launchers,
		check_places, make_record,
	};
	struct wheel *wheel = xcalloc(1, sizeof(*wheel));
	int r = 0;

	wheel->file = file;
	wheel->size = size;
	wheel->asked = asked;
	wheel->sink = sink;
	wheel->why = why_r;
	for (size_t i = 0; r == 0 && i < sizeof(steps) / sizeof(*steps); i++)
		r = steps[i](wheel);
	free_wheel(wheel);
	return r;
}
