/* Runs in: the supervisor.   Owns: nothing but a count of dropped lines.
 * Standard error may be a pipe that nobody reads: a line is written only when poll(2)
 * says that it can be taken, so the loop never waits here. */
#include "supervisor/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int most_verbose = LOG_INFO;
static bool to_journal;
static unsigned long dropped;

/* sd-daemon(3): the device and inode say whether this very descriptor is the journal's. */
static bool
stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device &&
	       st.st_ino == inode;
}

void
log_init(int most)
{
	most_verbose = most;
	to_journal = stderr_is_journal();
}

static void
write_line(const char *line, size_t len)
{
	struct pollfd fd = { .fd = STDERR_FILENO, .events = POLLOUT };
	ssize_t n;

	if (poll(&fd, 1, 0) != 1 || !(fd.revents & POLLOUT)) {
		dropped++;
		return;
	}
	do
		n = write(STDERR_FILENO, line, len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		dropped++;
	else
		dropped = 0;
}

void
log_line(int priority, const char *event, const char *format, ...)
{
	char line[LOG_LINE_MAX];
	size_t len = 0, room = sizeof(line) - 1;
	va_list args;
	int n;

	if (priority > most_verbose)
		return;
	if (to_journal)
		len += (size_t)snprintf(line, room, "<%d>", priority);
	if (dropped)
		len += (size_t)snprintf(line + len, room - len, "[%lu lines lost] ", dropped);
	len += (size_t)snprintf(line + len, room - len, "%s ", event);
	va_start(args, format);
	n = vsnprintf(line + len, room - len, format, args);
	va_end(args);
	if (n > 0)
		len += (size_t)n < room - len ? (size_t)n : room - len - 1;
	/* The second wall after log_quote: a line is one line. */
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	line[len++] = '\n';
	write_line(line, len);
}

const char *
log_quote(struct log_quoted *quoted, const char *text, size_t len)
{
	const size_t last = sizeof(quoted->text) - 1;	/* room for NUL */
	size_t out = 0;

	quoted->text[out++] = '"';
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (out + 4 + strlen("...\"") > last) {
			memcpy(quoted->text + out, "...", 3);
			out += 3;
			break;
		}
		if (c == '"' || c == '\\') {
			quoted->text[out++] = '\\';
			quoted->text[out++] = (char)c;
		} else if (c < ' ' || c >= 0x7f) {
			out += (size_t)snprintf(quoted->text + out, 5, "\\x%02x", c);
		} else {
			quoted->text[out++] = (char)c;
		}
	}
	quoted->text[out++] = '"';
	quoted->text[out] = '\0';
	return quoted->text;
}
