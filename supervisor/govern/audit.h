/* The audit log: what was asked, decided, run and refused, and by whom. Each record goes to
 * the journal, with a MESSAGE_ID by its kind, and to a file of JSON lines in which each one
 * has the hash of the one before it (policy/chain.h, supervisor/govern/audit_file.h).
 *
 * A record that has to be there before something happens is written first: when that fails
 * and [audit] on_failure is stop, it must not happen.
 */
#ifndef SUPERVISOR_AUDIT_H
#define SUPERVISOR_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

struct audit;
struct config;
struct event_base;
struct why;

enum audit_event {
	AUDIT_STARTED,			/* the service */
	AUDIT_STOPPED,
	AUDIT_RELOADED,			/* the configuration, or why it was not */
	AUDIT_SESSION_OPENED,
	AUDIT_SESSION_CLOSED,
	AUDIT_SESSION_KEPT,		/* of run_repl, over a restart of the service */
	AUDIT_SESSION_LOST,		/* one that was not, and why */
	AUDIT_DENIED,			/* a call, by policy */
	AUDIT_QUOTA_HIT,
	AUDIT_EXECUTION_STARTED,
	AUDIT_EXECUTION_ENDED,
	AUDIT_LIMIT_HIT,		/* by an execution that has ended */
	AUDIT_INPUT_ASKED,		/* a script asks its user for a line */
	AUDIT_INPUT_ENDED,		/* ... and has one, or none; not which */
	AUDIT_APPROVAL_ASKED,
	AUDIT_APPROVAL_GRANTED,
	AUDIT_APPROVAL_REFUSED,		/* by an approver, or over without a decision */
	AUDIT_APPROVAL_REVOKED,
	AUDIT_PACKAGE_INSTALLED,
	AUDIT_PACKAGE_REFUSED,
	AUDIT_PACKAGE_BUILT,		/* from source, or its build failed */
	AUDIT_CONNECTION,		/* out of a worker, made */
	AUDIT_CONNECTION_REFUSED,
	/* Of the file itself. */
	AUDIT_ROTATED,
	AUDIT_MENDED,			/* a line that a crash had torn was taken off */
	AUDIT_BROKEN,			/* what was there is no chain; it was put aside */
	AUDIT_LOST,			/* records that could not be written */
	AUDIT_EVENT_COUNT
};

/* "execution-started" ... */
const char *audit_event_name(enum audit_event event);

/* Opens the file, if the configuration names one or path is not NULL, and mends it. 0, or
 * -errno and why_r. */
int audit_new(const struct config *config, const char *path, struct audit **audit_r,
	      struct why *why_r);

/* From now on what was written is sent to the disk each second, unless [audit] sync waits for
 * it anyway. base: borrowed. */
void audit_start(struct audit *audit, struct event_base *base);

void audit_free(struct audit *audit);		/* NULL is fine; everything is on the disk */

/* Writes one record. tenant: a principal; NULL: none. execution: its id; NULL: none. more: a
 * JSON object with what else there is to say, or NULL; taken over, also on failure; its
 * member "source" goes to the file alone. audit NULL: does nothing. 0, or -errno: it could
 * not be written, and nothing may happen without it (on_failure is stop). */
int audit_write(struct audit *audit, enum audit_event event, const char *tenant,
		const char *execution, json_t *more);

/* Could the last record not be written, so that audit_write is likely to fail again? */
bool audit_is_failing(const struct audit *audit);

/* Does [audit] source want scripts as they are? */
bool audit_wants_source(const struct audit *audit);

struct audit_counts {
	uint64_t written, lost;		/* records */
};
void audit_count(const struct audit *audit, struct audit_counts *counts_r);

#endif
