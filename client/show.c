/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python run and repl.
 * Shows output as it arrives. The answer's stdout and stderr are complete; only the part that
 * was not shown yet is added at the end. */
#include "client/show.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "client/exits.h"
#include "client/say.h"

static int lost;	/* the errno of the last write to standard output that failed */

int
show_bytes(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno == EAGAIN) {
			struct pollfd p = {.fd = fd, .events = POLLOUT};

			/* Another process that shares this stream has made it non-blocking. */
			(void)poll(&p, 1, -1);
			continue;
		}
		if (n < 0 && errno != EINTR) {
			lost = fd == STDOUT_FILENO ? errno : lost;
			return -errno;
		}
		if (n > 0)
			bytes += n, len -= (size_t)n;
	}
	return 0;
}

int
show_lost(void)
{
	return lost;
}

int
show_conclude(int code)
{
	int error = fflush(stdout) != 0 ? errno : ferror(stdout) ? EIO : code ? 0 : lost;

	if (error == 0)
		return code;
	say("standard output: %s", strerror(error));
	return code ? code : EX_IOERR;
}

int
show_piece(void *arg, const struct reply *piece)
{
	struct shown *s = &((struct shown *)arg)[piece->stream];

	if (piece->offset != s->len)
		s->has_gap = true;
	if (s->has_gap)
		return 0;
	if (s->room - s->len < piece->text_len) {
		s->room = (s->len + piece->text_len) * 2;
		s->bytes = xrealloc(s->bytes, s->room);
	}
	memcpy(s->bytes + s->len, piece->text, piece->text_len);
	s->len += piece->text_len;
	return show_bytes(s->fd, piece->text, piece->text_len);
}

int
show_rest(const struct shown *s, const json_t *outcome, const char *name)
{
	size_t len = 0, same = 0;
	const char *text = reply_string(outcome, name, &len);

	if (!text)
		return 0;
	while (same < len && same < s->len && text[same] == s->bytes[same])
		same++;
	if (same < s->len)
		say("%s: the answer differs from what was shown before; its part from "
		    "byte %zu "
		    "follows",
		    name, same);
	return show_bytes(s->fd, text + same, len - same);
}

int
show_traceback(const json_t *outcome)
{
	size_t len = 0, stderr_len = 0;
	const char *text =
		reply_string(json_object_get(outcome, "error"), "traceback", &len);
	const char *seen = reply_string(outcome, "stderr", &stderr_len);
	int r;

	if (!text || len == 0 || (seen && memmem(seen, stderr_len, text, len)))
		return 0;
	r = show_bytes(STDERR_FILENO, text, len);
	if (r == 0 && text[len - 1] != '\n')
		r = show_bytes(STDERR_FILENO, "\n", 1);
	return r;
}

void
show_done(struct shown shown[REPLY_STREAMS])
{
	for (size_t i = 0; i < REPLY_STREAMS; i++)
		free(shown[i].bytes);
}
