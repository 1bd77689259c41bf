/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the number of dropped lines, by event.
 * Standard error may be a pipe without a reader. A line is written only when poll(2) says that
 * the pipe takes it, so the loop never waits here. Writers of records (govern/writer.h) log too. */
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/quote.h"

static int most_verbose = LOG_INFO;
static bool to_journal;
static unsigned long dropped;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* of it, and of the allowances */

/* The lines that each event may still write: clients can cause some events as often as they
 * like. There are more slots than events; if there were not, the extra events would share the
 * last slot. */
static struct allowance {
	const char *event;		/* NULL: unused */
	unsigned int lines;
	uint64_t filled_ms;
	unsigned long left_out;
} allowances[256];

/* sd-daemon(3): device and inode tell if this descriptor is the journal's. */
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

bool
log_is_journal(void)
{
	return to_journal;
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

static struct allowance *
allowance_of(const char *event)
{
	size_t i = 0, last = sizeof(allowances) / sizeof(allowances[0]) - 1;

	while (i < last && allowances[i].event && strcmp(allowances[i].event, event) != 0)
		i++;
	if (!allowances[i].event)
		allowances[i] = (struct allowance){ .event = event, .lines = LOG_BURST,
						    .filled_ms = clock_ms() };
	return &allowances[i];
}

/* Takes one line from the event's allowance, if one is left. */
static bool
log_take_line(struct allowance *allowance)
{
	uint64_t seconds = (clock_ms() - allowance->filled_ms) / 1000;

	if (seconds > 0) {
		allowance->lines = seconds > LOG_BURST - allowance->lines
				   ? LOG_BURST : allowance->lines + (unsigned int)seconds;
		allowance->filled_ms += seconds * 1000;
	}
	if (allowance->lines == 0) {
		allowance->left_out++;
		return false;
	}
	allowance->lines--;
	return true;
}

void
log_say(int priority, const char *format, ...)
{
	char text[LOG_LINE_MAX], line[LOG_LINE_MAX];
	va_list args;
	size_t len;

	if (priority > most_verbose)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	len = quote_line(line, sizeof(line) - 1, text, strlen(text));
	line[len++] = '\n';
	pthread_mutex_lock(&lock);
	write_line(line, len);
	pthread_mutex_unlock(&lock);
}

/* allowance NULL: the event has no limit. */
static void __attribute__((format(printf, 4, 0)))
log_args(int priority, const char *event, struct allowance *allowance, const char *format,
	 va_list args)
{
	char text[LOG_LINE_MAX], line[LOG_LINE_MAX];
	size_t len = 0, room = sizeof(text);
	int n;

	if (allowance && !log_take_line(allowance))
		return;
	if (to_journal)
		len += (size_t)snprintf(text, room, "<%d>", priority);
	if (dropped)
		len += (size_t)snprintf(text + len, room - len, "[%lu lines lost] ", dropped);
	len += (size_t)snprintf(text + len, room - len, "%s ", event);
	if (allowance && allowance->left_out) {
		len += (size_t)snprintf(text + len, room - len, "left-out=%lu ",
					allowance->left_out);
		allowance->left_out = 0;
	}
	n = vsnprintf(text + len, room - len, format, args);
	if (n > 0)
		len += (size_t)n < room - len ? (size_t)n : room - len - 1;
	if (text[len - 1] == ' ')	/* an event without any pairs */
		len--;
	/* The second safeguard after log_quote(): the record stays on one line. */
	len = quote_line(line, sizeof(line) - 1, text, len);
	line[len++] = '\n';
	write_line(line, len);
}

void
log_line(int priority, const char *event, const char *format, ...)
{
	va_list args;

	if (priority > most_verbose)
		return;
	va_start(args, format);
	pthread_mutex_lock(&lock);
	log_args(priority, event, allowance_of(event), format, args);
	pthread_mutex_unlock(&lock);
	va_end(args);
}

void
log_unlimited(const char *event, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	pthread_mutex_lock(&lock);
	log_args(LOG_DEBUG, event, NULL, format, args);
	pthread_mutex_unlock(&lock);
	va_end(args);
}

const char *
log_quote(struct log_quoted *quoted, const char *text, size_t len)
{
	quote_word(quoted->text, sizeof(quoted->text), text, len);
	return quoted->text;
}
