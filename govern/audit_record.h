/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a record of the audit log: for the file, for the journal and for a line of the log.
 * Pure.
 */
#ifndef GOVERN_AUDIT_RECORD_H
#define GOVERN_AUDIT_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "govern/audit.h"

struct audit_kind {
	const char *name;
	int priority;
	bool minor;			/* a record of something that did not happen, or of
					 * little interest: it may be left out */
	const char *message_id;
};
extern const struct audit_kind audit_kinds[AUDIT_EVENT_COUNT];

/* The length of a text after it is cut to most bytes, if it is longer, in whole characters. */
size_t audit_cut_at(const char *text, size_t len, size_t most);

/* Cuts each text that is longer than most, and notes its length and hash. The caller releases the
 * result, which may be value itself. */
json_t *audit_cut_texts(json_t *value, size_t most);

/* The members of a record as JSON, without braces, in ASCII, because people read it too. The time
 * in it is now. tenant, execution, more: as for audit_write, but borrowed. Malloc'd. */
char *audit_members(enum audit_event event, const char *tenant, const char *execution,
		    json_t *more);

#define AUDIT_LINE_BYTES 512

struct audit_line {
	char text[AUDIT_LINE_BYTES];
	size_t len;
};

/* Writes the members whose values are not objects, as in log lines: key=value. */
void audit_make_line(struct audit_line *line, const char *tenant, const char *execution,
		     json_t *more);

#endif
