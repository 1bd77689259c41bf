/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the taker.   Owns: nothing.
 * Reads:   a worker's results of compiling strangers' sources: any bytes. The worker does not
 * choose the file that a result is for. */
#include "keeper/compile.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/why.h"
#include "base/writeall.h"
#include "keeper/digest.h"
#include "keeper/path.h"

#define SOURCE_MAX (16 << 20)	/* bytes; a longer source is compiled when it is imported */
#define MADE_FACTOR 64		/* code may have this many times its source's length ... */
#define MADE_FREE (64 << 10)	/* ... plus this */
#define TAG_MAX 32
#define LINE_PATH (DIGEST_HEX + strlen("  tree/"))

static int
compile_say(struct why *why_r, int r)
{
	return why_say(why_r, r, "", "the worker that compiles them");
}

static int
take_tag(int worker, char tag_r[TAG_MAX + 1])
{
	unsigned char len;
	int r = intake_bytes(worker, &len, 1);

	if (r < 0)
		return r;
	if (len == 0 || len > TAG_MAX)
		return -EBADMSG;
	r = intake_bytes(worker, tag_r, len);
	tag_r[r < 0 ? 0 : len] = '\0';
	for (const char *c = tag_r; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '-' && *c != '_')
			return -EBADMSG;
	return r < 0 || strlen(tag_r) == len ? r : -EBADMSG;
}

/* "a/b.py" to "a/__pycache__/b.TAG.pyc"; false: too long for a path. */
static bool
name_of_made(const char *path, const char *tag, char to[PATH_BYTES_MAX + 1])
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	int n = snprintf(to, PATH_BYTES_MAX + 1, "%.*s__pycache__/%.*s.%s.pyc",
			 (int)(name - path), path, (int)(strlen(name) - strlen(".py")), name, tag);

	return n > 0 && n <= PATH_BYTES_MAX && path_is_safe(to, (size_t)n);
}

static int
send_source(int worker, int source, const char *path, size_t size)
{
	const size_t len = strlen(path);
	const unsigned char head[] = {
		(unsigned char)(len >> 8), (unsigned char)len, (unsigned char)(size >> 24),
		(unsigned char)(size >> 16), (unsigned char)(size >> 8), (unsigned char)size,
	};
	char bytes[65536];
	int r = write_all(worker, head, sizeof(head));

	if (r == 0)
		r = write_all(worker, path, len);
	while (size && r == 0) {
		size_t now = size < sizeof(bytes) ? size : sizeof(bytes);

		r = intake_bytes(source, bytes, now);
		if (r == 0)
			r = write_all(worker, bytes, now);
		size -= now;
	}
	return r;
}

static int
take_made(struct intake *intake, int worker, const char *path, size_t most, struct why *why_r)
{
	unsigned char head[4];
	uint32_t size;
	int r = intake_bytes(worker, head, sizeof(head));

	if (r < 0)
		return compile_say(why_r, r);
	size = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
	if (size > most)
		return compile_say(why_r, -EBADMSG);
	return size ? intake_file(intake, worker, path, false, size, why_r) : 0;
}

static int
compile_one(struct intake *intake, int worker, const char *path, const char *tag,
	    struct why *why_r)
{
	own_fd int source = openat(intake->tree, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char made[PATH_BYTES_MAX + 1];
	struct stat st;
	int r;

	if (source < 0 || fstat(source, &st) < 0)
		return why_say(why_r, -errno, "", "the file %.300s", path);
	if (st.st_size > SOURCE_MAX || !name_of_made(path, tag, made))
		return 0;
	r = send_source(worker, source, path, (size_t)st.st_size);
	return r < 0 ? compile_say(why_r, r)
		: take_made(intake, worker, made, (size_t)st.st_size * MADE_FACTOR + MADE_FREE,
			    why_r);
}

int
compile_sources(struct intake *intake, int worker, FILE *sources, long bytes,
		struct why *why_r)
{
	char tag[TAG_MAX + 1];
	own_mem char *line = NULL;
	size_t size = 0;
	ssize_t len = 0;
	int r = take_tag(worker, tag);

	if (r < 0)
		return compile_say(why_r, r);
	while (r == 0 && bytes > 0 && (len = getline(&line, &size, sources)) > 0) {
		const char *path = line + LINE_PATH;

		bytes -= len;
		line[len - 1] = '\0';
		if ((size_t)len > LINE_PATH + strlen(".py") &&
		    strcmp(line + len - 1 - strlen(".py"), ".py") == 0)
			r = compile_one(intake, worker, path, tag, why_r);
	}
	return r == 0 && len < 0 && !feof(sources)
		? why_say(why_r, -errno, "", "the list of the files") : r;
}
