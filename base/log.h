/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines on standard error: one event, then key=value.
 *
 *   log_line(LOG_INFO, "keeper-ready", "removed=%u", n);
 *
 * Text of a client or a script must be quoted by log_quote. If the reader of standard error is
 * slow, lines are dropped and counted, so that no function waits. Clients can cause some events. So
 * each event may have LOG_BURST lines at once, and one more for each second that passes. The next
 * line of the event has the number of lines that were left out, as left-out=N.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <syslog.h>

#define LOG_BURST 200
#define LOG_LINE_MAX 2048		/* bytes of a line; longer ones are cut */
#define LOG_QUOTED_MAX 256		/* bytes of a quoted text, its quotes and NUL included */

/* Writes a sentence for people, on a line without an event. Only for use at the start of the
 * service, because the number of such lines is not limited. */
void log_say(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Is standard error the journal? Known after log_init. */
bool log_is_journal(void);

/* Looks at $JOURNAL_STREAM, because prefixes with the level are written only for the journal. most:
 * the lowest priority that is written, a LOG_* of syslog(3). To be called once, at the start. */
void log_init(int most);

/* Writes a line. event: a literal. priority: LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO or
 * LOG_DEBUG. */
void log_line(int priority, const char *event, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* As log_line with LOG_DEBUG, without a limit of their number; for base/trace.h. */
void log_unlimited(const char *event, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

struct log_quoted {
	char text[LOG_QUOTED_MAX];
};

/* Writes a peer's text in double quotes, with escapes, and cut to fit (quote_word), into *quoted.
 * Returns quoted->text. */
const char *log_quote(struct log_quoted *quoted, const char *text, size_t len);

#endif
