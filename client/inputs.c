/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python run and repl, before the call.   Owns: nothing.
 * Reads:   files and directories of the user. */
#include "client/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/sha.h>

#include "base/base64.h"
#include "base/hex.h"
#include "base/nextentry.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "client/call.h"
#include "client/exits.h"
#include "client/options.h"
#include "client/reply.h"
#include "client/say.h"
#include "client/script.h"
#include "client/text.h"

#define DEPTH_MAX 32 /* of directories in each other */

struct inputs {
	json_t *files;
	size_t bytes;
};

static json_t *
base64_of(const struct script_text *content)
{
	char *text = xmalloc(BASE64_LEN(content->len) + 1);
	json_t *json;

	base64_encode(content->bytes, content->len, text);
	json = json_string(text);
	free(text);
	return json;
}

/* Takes ownership of content. */
static void
inputs_append(struct inputs *inputs, const char *path, struct script_text *content)
{
	struct text_position where;
	json_t *file = json_object();

	call_set(file, "path", json_string(path));
	if (text_check(content->bytes, content->len, true, &where))
		call_set(file, "text", json_stringn(content->len ? content->bytes : "",
						    content->len));
	else
		call_set(file, "base64", base64_of(content));
	xassert(json_array_append_new(inputs->files, file) == 0);
	inputs->bytes += content->len;
	script_text_free(content);
}

/* shown: its path here; path: its path there. 0 or an exit code. */
static int
inputs_add_file(struct inputs *inputs, int fd, const char *shown, const char *path)
{
	struct script_text content;
	struct text_position where;
	int r;

	if (!text_check(path, strlen(path), true, &where)) {
		say("%s: the name is not UTF-8", shown);
		return EX_DATAERR;
	}
	if (json_array_size(inputs->files) == INPUTS_FILES_MAX) {
		say("%s: more than %d files; name those that are needed with --file", shown,
		    INPUTS_FILES_MAX);
		return EX_DATAERR;
	}
	r = script_read_fd(fd, INPUTS_BYTES_MAX - inputs->bytes, &content);
	if (r == -EFBIG)
		say("%s: with this file there are more than %zu MiB", shown,
		    INPUTS_BYTES_MAX >> 20);
	else if (r < 0)
		say("%s: %s", shown, strerror(-r));
	if (r < 0)
		return r == -EFBIG ? EX_DATAERR : EX_NOINPUT;
	inputs_append(inputs, path, &content);
	return 0;
}

/* ---- a file ---- */

/* Does a relative path lead only downwards? */
static bool
inputs_is_below(const char *path)
{
	while (*path) {
		size_t len = strcspn(path, "/");

		if (len == 0 || (len == 2 && memcmp(path, "..", 2) == 0))
			return false;
		path += len + (path[len] == '/');
	}
	return true;
}

static const char *
path_there(const char *path)
{
	const char *slash = strrchr(path, '/');

	while (strncmp(path, "./", 2) == 0)
		path += 2;
	return inputs_is_below(path) || !slash ? path : slash + 1;
}

static int
add_named(struct inputs *inputs, const char *path)
{
	own_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat status;

	if (fd >= 0 && fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
		say("%s: it is a directory; --dir hands in what is in it", path);
		return EX_NOINPUT;
	}
	if (fd < 0) {
		say("%s: %s", path, strerror(errno));
		return EX_NOINPUT;
	}
	return inputs_add_file(inputs, fd, path, path_there(path));
}

/* ---- a directory ---- */

#define CACHE "__pycache__"

static bool
inputs_is_left_out(const char *name, size_t len)
{
	return *name == '.' || (len == strlen(CACHE) && memcmp(name, CACHE, len) == 0);
}

const char *
inputs_left_out(const char *path)
{
	while (*path) {
		size_t len = strcspn(path, "/");

		if (inputs_is_left_out(path, len))
			return path;
		path += len + (path[len] == '/');
	}
	return NULL;
}

static int add_directory(struct inputs *inputs, int fd, const char *top, const char *below,
			 unsigned int depth);

/* Adds one entry of a directory. below: the path of the directory within top, "" or "a/b/". */
static int
add_entry(struct inputs *inputs, int directory, const char *top, const char *below,
	  const char *name, unsigned int depth)
{
	char path[PATH_MAX], shown[2 * PATH_MAX];
	own_fd int fd = openat(directory, name,
			       O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK);
	const int error = fd < 0 ? errno : 0;
	struct stat status;
	int n = snprintf(path, sizeof(path) - 1, "%s%s", below, name);

	snprintf(shown, sizeof(shown), "%s/%s", top, path);
	if (error == ELOOP || error == ENXIO || error == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &status) < 0 || n < 0 || (size_t)n >= sizeof(path) - 1) {
		say("%s: %s", shown, error ? strerror(error) : "its path is too long");
		return EX_NOINPUT;
	}
	if (S_ISREG(status.st_mode))
		return inputs_add_file(inputs, fd, shown, path);
	if (!S_ISDIR(status.st_mode))
		return 0;
	strcat(path, "/");
	return add_directory(inputs, give_fd(fd), top, path, depth + 1);
}

/* Takes ownership of fd. */
static int
add_directory(struct inputs *inputs, int fd, const char *top, const char *below,
	      unsigned int depth)
{
	DIR *directory = depth <= DEPTH_MAX ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	int code = 0, r = 0;

	if (!directory) {
		say("%s/%s: %s", top, below,
		    depth > DEPTH_MAX ? "the directories are nested too deeply" : strerror(errno));
		close(fd);
		return EX_NOINPUT;
	}
	while (code == 0 && (entry = nextentry(directory, &r)))
		if (!inputs_is_left_out(entry->d_name, strlen(entry->d_name)))
			code = add_entry(inputs, dirfd(directory), top, below, entry->d_name,
					 depth);
	if (r < 0) {
		say("%s/%s: %s", top, below, strerror(-r));
		code = EX_NOINPUT;
	}
	closedir(directory);
	return code;
}

static int
add_top(struct inputs *inputs, const char *top)
{
	int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0) {
		say("%s: %s", top, strerror(errno));
		return EX_NOINPUT;
	}
	return add_directory(inputs, fd, top, "", 0);
}

int
inputs_add(json_t *arguments, const struct options *options)
{
	struct inputs inputs = { .files = json_array() };
	int code = 0;

	for (size_t i = 0; code == 0 && i < options->dirs.n; i++)
		code = add_top(&inputs, options->dirs.at[i]);
	for (size_t i = 0; code == 0 && i < options->files.n; i++)
		code = add_named(&inputs, options->files.at[i]);
	if (code == 0 && json_array_size(inputs.files) > 0)
		call_set(arguments, "files", json_incref(inputs.files));
	json_decref(inputs.files);
	return code;
}

/* ---- what has not changed ---- */

#define HASH_TEXT (2 * SHA256_DIGEST_LENGTH + 1)

static void
hash_text(const char *bytes, size_t len, char text_r[HASH_TEXT])
{
	unsigned char hash[SHA256_DIGEST_LENGTH];

	SHA256((const unsigned char *)bytes, len, hash);
	hex_write(hash, sizeof(hash), text_r);
}

static json_t *
hash_of(const json_t *file)
{
	char hex[HASH_TEXT];
	size_t len = 0, n = 0;
	const char *text = reply_string(file, "text", &len);
	char *bytes = NULL;

	if (!text) {
		text = reply_string(file, "base64", &len);
		text = bytes = base64_decode(text, len, &n);
		len = n;
	}
	hash_text(text, len, hex);
	free(bytes);
	return json_string(hex);
}

json_t *
inputs_hashes(const json_t *arguments)
{
	json_t *hashes = json_object();
	const json_t *file;
	size_t i;

	json_array_foreach(json_object_get(arguments, "files"), i, file)
		call_set(hashes, reply_string(file, "path", NULL), hash_of(file));
	return hashes;
}

bool
inputs_are_as_handed_in(const json_t *hashes, const char *path, int fd)
{
	const char *was = reply_string(hashes, path, NULL);
	struct script_text content;
	char hex[HASH_TEXT];

	if (!was || script_read_fd(fd, INPUTS_BYTES_MAX, &content) < 0)
		return false;
	hash_text(content.bytes, content.len, hex);
	script_text_free(&content);
	return strcmp(hex, was) == 0;
}

void
inputs_forget(const json_t *hashes, json_t *outcome)
{
	json_t *files = json_object_get(outcome, "files");

	for (size_t i = json_array_size(files); i-- > 0;) {
		const json_t *file = json_array_get(files, i);
		const char *path = reply_string(file, "path", NULL);
		const char *hash = reply_string(file, "sha256", NULL);
		const char *was = path ? reply_string(hashes, path, NULL) : NULL;

		if (hash && was && strcmp(hash, was) == 0)
			json_array_remove(files, i);
	}
}
