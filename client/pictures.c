/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python repl.   Owns: files below a directory of its own, which stay.
 * Reads:   pictures that a script made. Only a picture that begins like a PNG file is sent to the
 * terminal, and only as base64 that this program makes. */
#include "client/pictures.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/own.h"
#include "client/reply.h"
#include "client/say.h"
#include "client/show.h"

#define CHUNK 4096 /* bytes of base64 in one sequence of kitty's protocol */

static bool
terminal_shows_pictures(void)
{
	const char *term = getenv("TERM"), *program = getenv("TERM_PROGRAM");

	return isatty(STDOUT_FILENO) &&
	       (getenv("KITTY_WINDOW_ID") || (term && strcmp(term, "xterm-kitty") == 0) ||
		(term && strcmp(term, "xterm-ghostty") == 0) ||
		(program && strcmp(program, "WezTerm") == 0));
}

static bool
is_png(const char *bytes, size_t len)
{
	return len > 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static void
send_to_terminal(const char *bytes, size_t len)
{
	size_t n = BASE64_LEN(len);
	own_mem char *text = malloc(n + 1);

	if (!text)
		abort();
	base64_encode(bytes, len, text);
	for (size_t at = 0; at < n; at += CHUNK) {
		size_t more = n - at > CHUNK ? CHUNK : n - at;
		char start[48];

		snprintf(start, sizeof(start), "\033_G%sm=%d;", at == 0 ? "a=T,f=100," : "",
			 at + more < n);
		(void)show_bytes(STDOUT_FILENO, start, strlen(start));
		(void)show_bytes(STDOUT_FILENO, text + at, more);
		(void)show_bytes(STDOUT_FILENO, "\033\\", 2);
	}
	(void)show_bytes(STDOUT_FILENO, "\n", 1);
}

static bool
make_directory(struct pictures *pictures)
{
	const char *top = getenv("TMPDIR");
	int n;

	if (*pictures->directory)
		return true;
	n = snprintf(pictures->directory, sizeof(pictures->directory), "%s/mcp-python.XXXXXX",
		     top && *top == '/' ? top : "/tmp");
	if ((size_t)n >= sizeof(pictures->directory))
		errno = ENAMETOOLONG;
	else if (mkdtemp(pictures->directory))
		return true;
	pictures->directory[0] = '\0';
	return false;
}

static int
write_picture(struct pictures *pictures, const char *ending, const char *bytes, size_t len)
{
	own_mem char *path = NULL;
	int fd, r;

	if (!make_directory(pictures))
		return -errno;
	if (asprintf(&path, "%s/picture-%u.%s", pictures->directory, ++pictures->n, ending) < 0)
		abort();
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = show_bytes(fd, bytes, len);
	if (close(fd) < 0 && r == 0)
		r = -errno;
	if (r == 0)
		say("a picture: %s (%zu bytes)", path, len);
	return r;
}

void
pictures_show(struct pictures *pictures, const json_t *block)
{
	const char *type = reply_string(block, "mimeType", NULL);
	size_t text_len = 0, len = 0;
	const char *text = reply_string(block, "data", &text_len);
	own_mem char *bytes = text ? base64_decode(text, text_len, &len) : NULL;
	int r;

	if (bytes && is_png(bytes, len) && terminal_shows_pictures()) {
		send_to_terminal(bytes, len);
		return;
	}
	r = !bytes ? -EBADMSG
		   : write_picture(pictures, type && strcmp(type, "image/jpeg") == 0 ? "jpeg" : "png",
				   bytes, len);
	if (r < 0)
		say("a picture cannot be saved: %s", strerror(-r));
}
