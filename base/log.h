/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines on standard error: one event, then key=value.
 *
 *   log_line(LOG_INFO, "keeper-ready", "removed=%u", n);
 *
 * Text of a client or a script goes through log_quote first. When the reader of standard error is
 * slow, lines are dropped and counted: nothing waits. Clients can cause some events, so each event
 * may have LOG_BURST lines, and one more each second; the next line of the event then has the
 * number of lines left out, as left-out=N.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <syslog.h>

#define LOG_BURST 200
#define LOG_LINE_MAX 2048		/* bytes of a line; longer ones are cut */
#define LOG_QUOTED_MAX 256		/* bytes of a quoted text, its quotes and NUL included */

/* A sentence for people, on a line without an event. Only for use at start, because such lines are
 * not limited. */
void log_say(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Is standard error the journal? After log_init. */
bool log_is_journal(void);

/* Looks at $JOURNAL_STREAM: level prefixes are written for the journal only. Lines below
 * the priority most (a LOG_* of syslog(3)) are not written. Call once, at start. */
void log_init(int most);

/* event: a literal. priority: LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO or LOG_DEBUG. */
void log_line(int priority, const char *event, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

struct log_quoted {
	char text[LOG_QUOTED_MAX];
};

/* A peer's text in double quotes, with escapes, cut to fit (quote_word); returns quoted->text. */
const char *log_quote(struct log_quoted *quoted, const char *text, size_t len);

#endif
