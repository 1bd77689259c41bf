/* Runs in: mcp-python run, after the answer.   Owns: files below the directory of --save.
 * Reads:   names that a script chose. Files are written only inside that directory: a name leads
 * downwards only, through no link, and never to an existing file. */
#include "client/results.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "client/call.h"
#include "client/reply.h"
#include "client/say.h"
#include "client/show.h"

/* ---- saying ---- */

static long long
number(const json_t *object, const char *key)
{
	return (long long)json_integer_value(json_object_get(object, key));
}

void
results_say(const json_t *outcome)
{
	const json_t *item;
	size_t i;

	json_array_foreach(json_object_get(outcome, "displays"), i, item) {
		const char *type = reply_string(item, "mime_type", NULL);

		if (!type || strncmp(type, "image/", 6) != 0)
			continue;
		if (json_object_get(item, "width"))
			say("shown: %s, %lld x %lld, %lld bytes", type, number(item, "width"),
			    number(item, "height"), number(item, "bytes"));
		else
			say("shown: %s, %lld bytes", type, number(item, "bytes"));
	}
	json_array_foreach(json_object_get(outcome, "files"), i, item) {
		const char *path = reply_string(item, "path", NULL);

		if (!path)
			continue;
		say("left: %s (%lld bytes)%s", path, number(item, "size"),
		    json_object_get(item, "uri") ? "" : ", not kept");
	}
}

/* ---- writing ---- */

/* Opens a new file, and makes the directories on the way. A descriptor or -errno. */
static int
make_file(int top, const char *path)
{
	int dir = fcntl(top, F_DUPFD_CLOEXEC, 0), fd;
	char name[256];

	while (dir >= 0) {
		size_t len = strcspn(path, "/");
		bool last = path[len] == '\0';

		if (len == 0 || len >= sizeof(name) || (len == 1 && *path == '.') ||
		    (len == 2 && memcmp(path, "..", 2) == 0)) {
			close(dir);
			return -EINVAL;
		}
		memcpy(name, path, len);
		name[len] = '\0';
		if (!last && mkdirat(dir, name, 0777) < 0 && errno != EEXIST) {
			fd = -errno;
			close(dir);
			return fd;
		}
		fd = openat(dir, name, last ? O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
					    : O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
			    0666);
		if (fd < 0)
			fd = -errno;
		close(dir);
		if (last || fd < 0)
			return fd;
		dir = fd;
		path += len + 1;
	}
	return -errno;
}

/* 0; else the error was printed. */
static int
save(int top, const char *path, const char *bytes, size_t len)
{
	int fd = make_file(top, path), r = fd;

	if (fd >= 0) {
		r = show_bytes(fd, bytes, len);
		if (close(fd) < 0 && r == 0)
			r = -errno;
	}
	if (r < 0)
		say("cannot save %s: %s", path, strerror(-r));
	return r;
}

static int
save_base64(int top, const char *path, const json_t *block, const char *key)
{
	size_t len = 0, n = 0;
	const char *text = reply_string(block, key, &len);
	char *bytes = text ? base64_decode(text, len, &n) : NULL;
	int r;

	if (!bytes) {
		say("cannot save %s: the answer has no content of it", path);
		return -EBADMSG;
	}
	r = save(top, path, bytes, n);
	free(bytes);
	return r;
}

static int
save_pictures(int top, const json_t *result)
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
		if (save_base64(top, name, block, "data") < 0)
			r = -EIO;
	}
	return r;
}

static int
nothing(void *arg, const struct reply *piece)
{
	(void)arg;
	(void)piece;
	return 0;
}

static int
save_file(int top, struct call_channel *channel, int id, const json_t *file)
{
	const char *path = reply_string(file, "path", NULL);
	const char *uri = reply_string(file, "uri", NULL);
	const json_t *content;
	const char *text;
	struct reply answer;
	size_t len;
	int r;

	call_send(channel, call_read_message(channel, id, uri));
	r = call_wait(channel, id, nothing, NULL, &answer);
	if (r < 0)
		return r;
	content = json_array_get(json_object_get(answer.result, "contents"), 0);
	text = reply_string(content, "text", &len);
	r = text ? save(top, path, text, len) : save_base64(top, path, content, "blob");
	reply_free(&answer);
	return r;
}

int
results_save(const char *directory, struct call_channel *channel, int id,
	     const struct reply *answer)
{
	const json_t *file;
	size_t i;
	int top, r;

	if (mkdir(directory, 0777) < 0 && errno != EEXIST)
		r = -errno;
	else
		r = 0;
	top = r < 0 ? r : open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0) {
		say("%s: %s", directory, strerror(r < 0 ? -r : errno));
		return -EIO;
	}
	r = save_pictures(top, answer->result);
	json_array_foreach(json_object_get(answer->outcome, "files"), i, file)
		if (reply_string(file, "path", NULL) && reply_string(file, "uri", NULL) &&
		    save_file(top, channel, id++, file) < 0)
			r = -EIO;
	close(top);
	return r;
}
