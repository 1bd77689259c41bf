/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python run, before anything is sent. */
#include "client/script.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "client/exits.h"
#include "client/say.h"
#include "client/text.h"

#define PATIENCE_MS 2000 /* then a line says that standard input is being read */

int
script_read_fd(int fd, size_t max, struct script_text *text_r)
{
	size_t len = 0, room = 0;
	char *bytes = NULL;
	int r = 0;

	for (;;) {
		ssize_t n;

		if (len == room) {
			char *more;

			if (len > max) {
				r = -EFBIG;
				break;
			}
			/* One byte above the bound distinguishes a full file from one that is
			 * too large. */
			room = room == 0 ? 65536 : room * 2;
			if (room > max + 1)
				room = max + 1;
			more = xrealloc(bytes, room);
			bytes = more;
		}
		n = read(fd, bytes + len, room - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r = n < 0 ? -errno : 0;
			break;
		}
		len += (size_t)n;
	}
	if (r < 0) {
		free(bytes);
		return r;
	}
	*text_r = (struct script_text){.bytes = bytes, .len = len};
	return 0;
}

static int
script_check(const char *name, const struct script_text *text, bool nul_too)
{
	struct text_position at;
	unsigned char byte;

	if (text_check(text->bytes, text->len, nul_too, &at))
		return 0;
	byte = (unsigned char)text->bytes[at.offset];
	if (byte == 0)
		say("%s: a NUL byte at byte offset %zu (line %zu, column %zu)", name,
		    at.offset, at.line, at.column);
	else
		say("%s: not UTF-8 at byte offset %zu (line %zu, column %zu): 0x%02x",
		    name, at.offset, at.line, at.column, byte);
	return EX_DATAERR;
}

static int
load(int fd, const char *name, size_t max, bool nul_too, struct script_text *text_r)
{
	struct script_text text;
	int r = script_read_fd(fd, max, &text);

	if (r == -EFBIG) {
		say("%s: larger than %zu MiB, the most that is taken", name, max >> 20);
		return EX_DATAERR;
	}
	if (r < 0) {
		say("%s: %s", name, strerror(-r));
		return EX_NOINPUT;
	}
	r = script_check(name, &text, nul_too);
	if (r) {
		script_text_free(&text);
		return r;
	}
	*text_r = text;
	return 0;
}

int
script_load(const char *path, struct script_text *text_r)
{
	int fd, r;

	if (strcmp(path, "-") == 0)
		return load(STDIN_FILENO, "standard input", SCRIPT_FILE_MAX, true,
			    text_r);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0) {
		say("%s: %s", path, strerror(errno));
		return EX_NOINPUT;
	}
	r = load(fd, path, SCRIPT_FILE_MAX, true, text_r);
	close(fd);
	return r;
}

bool
script_has_stdin(void)
{
	struct stat status;

	return fstat(STDIN_FILENO, &status) == 0 &&
	       (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || S_ISREG(status.st_mode));
}

int
script_load_stdin(struct script_text *text_r)
{
	if (isatty(STDIN_FILENO)) {
		say("--stdin: standard input is a terminal; give it a file or a pipe");
		return EX_USAGE;
	}
	if (poll(&(struct pollfd){.fd = STDIN_FILENO, .events = POLLIN}, 1, PATIENCE_MS) == 0)
		say("waits for the end of standard input; --no-stdin leaves it alone");
	return load(STDIN_FILENO, "standard input", SCRIPT_STDIN_MAX, false, text_r);
}

void
script_text_free(struct script_text *text)
{
	free(text->bytes);
	*text = (struct script_text){0};
}
