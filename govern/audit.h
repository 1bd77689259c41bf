/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log: requests, decisions, executions and refusals, each with its subject.
 * Each record goes to the
 * journal, with a MESSAGE_ID by its kind, and to a file of JSON lines in which each one has the
 * hash of the one before it (policy/chain.h, govern/audit_file.h).
 *
 * Its growth by each tenant is bounded. A script is in each file once, and later records refer to
 * that record; long texts are cut; and the gate has a budget for each tenant. Beyond the budget,
 * records of requests that were refused are left out and counted; executions are refused by their
 * quota before there is a record to write.
 *
 * The record of an action is written before the action. If that fails, and [audit] on_failure is
 * stop, the action must not happen.
 */
#ifndef GOVERN_AUDIT_H
#define GOVERN_AUDIT_H

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
	AUDIT_RELOADED,			/* the configuration, or the reason why not */
	AUDIT_SESSION_OPENED,
	AUDIT_SESSION_CLOSED,
	AUDIT_SESSION_KEPT,		/* of run_repl, over a restart of the service */
	AUDIT_SESSION_LOST,		/* one that was not, and why */
	AUDIT_DENIED,			/* a call, by policy */
	AUDIT_QUOTA_HIT,
	AUDIT_EXECUTION_STARTED,
	AUDIT_EXECUTION_ENDED,
	AUDIT_STOPPED_BY_OPERATOR,	/* an execution; or a session was closed */
	AUDIT_LIMIT_HIT,		/* by an execution that has ended */
	AUDIT_IMPORT_REFUSED,		/* of an execution that has ended: modules that it may not
					 * import */
	AUDIT_IMPORT_FOUND,		/* ... modules that were found in a set installed earlier */
	AUDIT_INPUT_ASKED,		/* a script asks its user for a line */
	AUDIT_INPUT_ENDED,		/* ... and the result; without the line itself */
	AUDIT_TOOL_CALLED,		/* of another MCP server, by a script */
	AUDIT_TOOL_ENDED,		/* ... and has an answer, or none comes */
	AUDIT_TOOL_REFUSED,		/* it was not made */
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
	AUDIT_MENDED,			/* an incomplete line, after a crash, was removed */
	AUDIT_BROKEN,			/* the file was not a valid chain, and was renamed */
	AUDIT_DROPPED,			/* the oldest file, to stay within [audit] keep_bytes */
	AUDIT_LOST,			/* records that could not be written */
	AUDIT_LEFT_OUT,			/* records of a tenant that had more than its share */
	AUDIT_EVENT_COUNT
};

/* "execution-started" ... */
const char *audit_event_name(enum audit_event event);

/* Opens the file, if the configuration names one or path is not NULL, and mends it. 0, or
 * -errno and why_r. */
int audit_new(const struct config *config, const char *path, struct audit **audit_r,
	      struct why *why_r);

/* From now on the file is synced each second, unless [audit] sync waits for each record. base:
 * borrowed. */
void audit_start(struct audit *audit, struct event_base *base);

void audit_free(struct audit *audit);		/* NULL is fine; everything is on the disk */

/* The budget of each tenant: whether it may have a further record, and how long each one was. */
struct audit_budget {
	/* minor: the record may be left out. False: it is left out. */
	bool (*may_write)(void *arg, const char *tenant, enum audit_event event, bool minor);
	void (*spend)(void *arg, const char *tenant, uint64_t bytes);
	void *arg;
};
void audit_set_budget(struct audit *audit, const struct audit_budget *budget);

/* May the tenant have records that cannot be left out? */
bool audit_has_room(const struct audit *audit, const char *tenant);

/* Writes one record. tenant: a principal; NULL: none. execution: its id; NULL: none. more: a JSON
 * object with further members, or NULL; it is freed, even on failure. Its member "source" is
 * written only to the file. audit NULL: does nothing. 0, even if the record was left out; or
 * -errno: it could not be written, and the action must not happen (on_failure is stop). */
int audit_write(struct audit *audit, enum audit_event event, const char *tenant,
		const char *execution, json_t *more);

/* Did the last write fail, so that audit_write will probably fail again? */
bool audit_is_failing(const struct audit *audit);

/* Does [audit] source ask for whole texts? */
bool audit_wants_source(const struct audit *audit);

/* Adds a script to a record that has its "sha256", if [audit] source is set: as "source", cut to
 * [audit] text_bytes (then "source_bytes" is its length), or as "source_record", the number of the
 * record in the same file that has it. */
void audit_add_source(struct audit *audit, json_t *more, const char *text, size_t len);

struct audit_counts {
	uint64_t written, lost;		/* records */
	uint64_t left_out;		/* records */
	uint64_t dropped;		/* files */
	uint64_t file_bytes;		/* of the file and those that were put aside */
	uint64_t file_bytes_max;	/* that these may become; 0: without bound, or no file */
	uint64_t disk_free_bytes;	/* beside them; 0: no file, or not known */
};
void audit_count(const struct audit *audit, struct audit_counts *counts_r);

#endif
