/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python repl.   Owns: files below a directory of its own, which stay.
 * Reads:   pictures that a script made, and never decodes one. A terminal gets base64 that this
 * program makes of a file that begins like PNG, or sixel that was made in the script's jail, after
 * each character was checked. */
#include "client/pictures.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "client/reply.h"
#include "client/say.h"
#include "client/show.h"
#include "client/sixel.h"

#define CHUNK 4096 /* bytes of base64 in one sequence of kitty's protocol */

#define DIGITS_MAX 4 /* of a number in sixel: a terminal allocates as many pixels as it says */

/* Values of TERM, which may go on with "-", and of TERM_PROGRAM. */
static const char *const kitty[] = { "xterm-kitty", "xterm-ghostty", "WezTerm", NULL };
static const char *const sixel_terminals[] = { "foot", "mlterm", "mintty", "iTerm.app", NULL };

static bool
is_one_of(const char *const *names, const char *variable)
{
	const char *value = getenv(variable);

	for (; value && *names; names++) {
		size_t len = strlen(*names);

		if (strncmp(value, *names, len) == 0 && (value[len] == '\0' || value[len] == '-'))
			return true;
	}
	return false;
}

static bool
terminal_is(const char *const *names)
{
	return is_one_of(names, "TERM") || is_one_of(names, "TERM_PROGRAM");
}

static bool
is_png(const char *bytes, size_t len)
{
	return len > 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

/* Malloc'd, with NUL. */
static char *
encode(const char *bytes, size_t len)
{
	char *text = xmalloc(BASE64_LEN(len) + 1);

	base64_encode(bytes, len, text);
	text[BASE64_LEN(len)] = '\0';
	return text;
}

static void
send_to_kitty(const char *bytes, size_t len)
{
	size_t n = BASE64_LEN(len);
	own_mem char *text = encode(bytes, len);

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

/* Can these characters be in the body of a sixel sequence? The script may have printed them. */
static bool
is_sixel(const char *body, size_t len)
{
	size_t digits = 0;

	for (size_t i = 0; i < len; i++) {
		bool is_digit = body[i] >= '0' && body[i] <= '9';

		digits = is_digit ? digits + 1 : 0;
		if (digits > DIGITS_MAX ||
		    (!is_digit && !strchr("!\"#$-;", body[i]) && (body[i] < '?' || body[i] > '~')))
			return false;
	}
	return len > 0;
}

/* False: the picture could not be converted, for example for lack of Pillow. */
static bool
send_as_sixel(const char *bytes, size_t len, pictures_run *run, void *arg)
{
	own_mem char *text = encode(bytes, len), *code = NULL, *body = NULL;
	size_t n;

	if (asprintf(&code, "PICTURE = '%s'\n%s", text, sixel) < 0)
		xalloc_fail(0);
	body = run(arg, code);
	n = body ? strcspn(body, "\n") : 0;
	if (!body || !is_sixel(body, n))
		return false;
	(void)show_bytes(STDOUT_FILENO, "\033Pq", 3);
	(void)show_bytes(STDOUT_FILENO, body, n);
	(void)show_bytes(STDOUT_FILENO, "\033\\\n", 3);
	return true;
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
		xalloc_fail(0);
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
pictures_show(struct pictures *pictures, const json_t *block, pictures_run *run, void *arg)
{
	const char *type = reply_string(block, "mimeType", NULL);
	size_t text_len = 0, len = 0;
	const char *text = reply_string(block, "data", &text_len);
	own_mem char *bytes = text ? base64_decode(text, text_len, &len) : NULL;
	const bool on_terminal = isatty(STDOUT_FILENO);
	int r;

	if (bytes && on_terminal && is_png(bytes, len) &&
	    (terminal_is(kitty) || getenv("KITTY_WINDOW_ID"))) {
		send_to_kitty(bytes, len);
		return;
	}
	if (bytes && on_terminal && terminal_is(sixel_terminals) &&
	    send_as_sixel(bytes, len, run, arg))
		return;
	r = !bytes ? -EBADMSG
		   : write_picture(pictures, type && strcmp(type, "image/jpeg") == 0 ? "jpeg" : "png",
				   bytes, len);
	if (r < 0)
		say("a picture cannot be saved: %s", strerror(-r));
}
