/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python run, after the answer.   Owns: files below the directories of --save, --rw.
 * Reads:   names that a script chose. Files are written only inside the directory: a name with ".."
 * is refused, and no link is followed. An existing file is replaced only with --force; with --rw
 * also if it has not changed since it was sent. */
#include "client/results.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/own.h"
#include "client/inputs.h"
#include "client/reply.h"
#include "client/resource.h"
#include "client/say.h"
#include "client/show.h"

/* ---- saying ---- */

static long long
results_number(const json_t *object, const char *key)
{
	return (long long)json_integer_value(json_object_get(object, key));
}

static void
say_picture(const json_t *item, const char *type)
{
	if (json_object_get(item, "width"))
		say("shown: %s, %lld x %lld, %lld bytes", type, results_number(item, "width"),
		    results_number(item, "height"), results_number(item, "bytes"));
	else
		say("shown: %s, %lld bytes", type, results_number(item, "bytes"));
}

void
results_say(const json_t *outcome, bool saves)
{
	const json_t *item;
	bool any = false;
	size_t i;

	json_array_foreach(json_object_get(outcome, "displays"), i, item) {
		const char *type = reply_string(item, "mime_type", NULL);

		if (saves || !type || strncmp(type, "image/", 6) != 0)
			continue;
		say_picture(item, type);
		any = true;
	}
	json_array_foreach(json_object_get(outcome, "files"), i, item) {
		const char *path = reply_string(item, "path", NULL);
		const char *why = reply_string(item, "reason", NULL);
		bool kept = json_object_get(item, "uri");

		if (!path || (saves && kept))
			continue;
		say("left: %s (%lld bytes)%s%s", path, results_number(item, "size"),
		    kept ? "" : "; not kept: ", kept ? "" : why ? why : "it is too large");
		any = any || kept;
	}
	if (results_number(json_object_get(outcome, "omitted"), "files") > 0)
		say("left: %lld more files, which the service does not name or keep",
		    results_number(json_object_get(outcome, "omitted"), "files"));
	if (any)
		say_more("not kept here; --save DIR writes them into a directory");
}

/* ---- writing ---- */

/* Opens the directory for a file, and makes missing directories of its path. name_r: the file's own
 * name, within path. A descriptor or -errno. */
static int
open_parent(int top, const char *path, const char **name_r)
{
	int dir = fcntl(top, F_DUPFD_CLOEXEC, 0), fd;
	char name[256];

	while (dir >= 0) {
		size_t len = strcspn(path, "/");

		if (len == 0 || len >= sizeof(name) || (len == 1 && *path == '.') ||
		    (len == 2 && memcmp(path, "..", 2) == 0)) {
			close(dir);
			return -EINVAL;
		}
		if (path[len] == '\0') {
			*name_r = path;
			return dir;
		}
		memcpy(name, path, len);
		name[len] = '\0';
		if (mkdirat(dir, name, 0777) < 0 && errno != EEXIST)
			fd = -errno;
		else
			fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd == -1)
			fd = -errno;
		close(dir);
		if (fd < 0)
			return fd;
		dir = fd;
		path += len + 1;
	}
	return -errno;
}

/* Makes the name of a temporary file, which is made in the directory of the final file. */
static void
temporary_name(char name[32])
{
	static unsigned int n;

	snprintf(name, 32, ".mcp-python-%d-%u", (int)getpid(), n++);
}

#define ANY_MODE 0		/* for a new file, or one that replaces any other */

/* The file is there as a whole or not at all. A link of that name is replaced and not followed.
 * mode: of the file, if it is not ANY_MODE. */
static int
results_write_file(int dir, const char *name, bool replace, mode_t mode, const char *bytes,
		   size_t len)
{
	char temporary[32];
	int fd, r;

	temporary_name(temporary);
	fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	r = show_bytes(fd, bytes, len);
	if (r == 0 && mode != ANY_MODE && fchmod(fd, mode) < 0)
		r = -errno;
	if (close(fd) < 0 && r == 0)
		r = -errno;
	if (r == 0 && replace)
		r = renameat(dir, temporary, dir, name) < 0 ? -errno : 0;
	else if (r == 0)
		r = linkat(dir, temporary, dir, name, 0) < 0 ? -errno : 0;
	if (r < 0 || !replace)
		unlinkat(dir, temporary, 0);
	return r;
}

/* A directory that files are saved in. */
struct target {
	const struct results_place *place;
	int top;
};

/* Does the file of this name still have the content that was handed in under path? Then *mode_r is
 * its mode. */
static bool
is_unchanged(const struct target *to, int dir, const char *name, const char *path, mode_t *mode_r)
{
	own_fd int fd = openat(dir, name,
			       O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
	    !inputs_are_as_handed_in(to->place->handed_in, path, fd))
		return false;
	*mode_r = status.st_mode & 0777;
	return true;
}

/* 0; else the error was printed. With --rw a script does not choose names that programs obey, such
 * as .git/config or .envrc, whether they exist or not. */
static int
save(const struct target *to, const char *path, const char *bytes, size_t len)
{
	const char *directory = to->place->directory;
	const char *name = to->place->handed_in ? inputs_left_out(path) : NULL;
	mode_t mode = ANY_MODE;
	int dir, r;

	if (name) {
		if (*name == '.')	/* a cache is not worth a line */
			say("not written back: %s/%s: --rw leaves out what --dir does", directory,
			    path);
		return 0;
	}
	dir = r = open_parent(to->top, path, &name);
	if (dir >= 0) {
		bool replace = (to->place->handed_in &&
				is_unchanged(to, dir, name, path, &mode)) || to->place->force;

		r = results_write_file(dir, name, replace, mode, bytes, len);
		close(dir);
	}
	if (r == -EEXIST)
		say("cannot save %s/%s: %s%s", directory, path,
		    reply_string(to->place->handed_in, path, NULL) ?
		    "it has changed here since it was handed in" : "it exists",
		    to->place->from_repl ? "" : "; --force replaces it");
	else if (r < 0)
		say("cannot save %s/%s: %s", directory, path, strerror(-r));
	else
		say("saved %s/%s (%zu bytes)", directory, path, len);
	return r;
}

static int
save_base64(const struct target *to, const char *path, const json_t *block, const char *key)
{
	size_t len = 0, n = 0;
	const char *text = reply_string(block, key, &len);
	char *bytes = text ? base64_decode(text, len, &n) : NULL;
	int r;

	if (!bytes) {
		say("cannot save %s: the answer has no content of it", path);
		return -EBADMSG;
	}
	r = save(to, path, bytes, n);
	free(bytes);
	return r;
}

static int
save_pictures(const struct target *to, const json_t *result)
{
	const json_t *block;
	unsigned int n = 0;
	size_t i;
	int r = 0;

	json_array_foreach(json_object_get(result, "content"), i, block) {
		const char *kind = reply_string(block, "type", NULL);
		const char *type = reply_string(block, "mimeType", NULL);
		char name[32];

		if (!kind || !type || strcmp(kind, "image") != 0)
			continue;
		snprintf(name, sizeof(name), "picture-%u.%s", ++n,
			 strcmp(type, "image/jpeg") == 0 ? "jpeg" : "png");
		if (save_base64(to, name, block, "data") < 0)
			r = -EIO;
	}
	return r;
}

static int
save_file(const struct target *to, struct call_channel *channel, int id, const char *path,
	  const char *uri)
{
	char *bytes = NULL;
	size_t len;
	int r = resource_read(channel, id, uri, &bytes, &len);

	if (r < 0)
		say("cannot save %s/%s: the service does not have it any more",
		    to->place->directory, path);
	else
		r = save(to, path, bytes, len);
	free(bytes);
	return r;
}

static int
open_target(struct target *to)
{
	const char *name = to->place->directory;
	int r = mkdir(name, 0777) < 0 && errno != EEXIST ? -errno : 0;

	to->top = r < 0 ? r : open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (to->top >= 0)
		return 0;
	say("%s: %s", name, strerror(r < 0 ? -r : errno));
	return -EIO;
}

int
results_save(const struct results_place *place, struct call_channel *channel, int *id,
	     const struct reply *answer)
{
	struct target to = { .place = place };
	const json_t *file;
	size_t i;
	int r;

	if (open_target(&to) < 0)
		return -EIO;
	r = place->pictures ? save_pictures(&to, answer->result) : 0;
	json_array_foreach(json_object_get(answer->outcome, "files"), i, file) {
		const char *path = reply_string(file, "path", NULL);
		const char *uri = reply_string(file, "uri", NULL);

		if (path && uri && save_file(&to, channel, (*id)++, path, uri) < 0)
			r = -EIO;
	}
	close(to.top);
	return r;
}

int
results_save_one(const char *directory, struct call_channel *channel, int id, const char *path,
		 const char *uri)
{
	const struct results_place place = { .directory = directory, .from_repl = true };
	struct target to = { .place = &place };
	int r = open_target(&to);

	if (r == 0) {
		r = save_file(&to, channel, id, path, uri);
		close(to.top);
	}
	return r;
}
