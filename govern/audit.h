/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log: records of requests, decisions, executions and refusals, each with its subject. A
 * record goes to the journal, with a MESSAGE_ID for its kind, and to a file of JSON lines, in which
 * each line has the hash of the line before it (policy/chain.h, govern/audit_file.h).
 *
 * The growth of the log by each tenant is bounded. A script is in each file once, and later records
 * refer to the record that has it. Long texts are cut. The gate has a budget for each tenant:
 * beyond it, records of requests that were refused are left out and counted. Executions beyond it
 * are refused by their quota before there is a record to write.
 *
 * The record of an action is written before the action. If the record cannot be written, and
 * [audit] on_failure is stop, the action must not happen.
 */
#ifndef GOVERN_AUDIT_H
#define GOVERN_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "govern/writer.h"

struct audit;
struct config;
struct event_base;
struct why;

enum audit_event {
#define EVENT(event, ...) AUDIT_##event,
#include "govern/audit_events.def"
	AUDIT_EVENT_COUNT
};

/* The name of an event, "execution-started" ... */
const char *audit_event_name(enum audit_event event);

/* Opens the file, if the configuration names one or path is not NULL, and repairs it after a crash.
 * 0, or -errno with why_r. */
int audit_new(const struct config *config, const char *path, struct audit **audit_r,
	      struct why *why_r);

/* From now on a thread writes the records (govern/writer.h has the order of start and fences), and
 * the file is synced each second, unless [audit] sync waits for each record. base: borrowed. 0 or
 * -errno. */
int audit_start(struct audit *audit, struct event_base *base);

void audit_free(struct audit *audit);		/* waits until all is on the disk; NULL is fine */

/* The functions for the budget of each tenant. attempt: a record is to be written, or left out.
 * may_write: may the tenant have one more record? spend: a record of so many bytes was written. */
struct audit_budget {
	void (*attempt)(void *arg, const char *tenant, enum audit_event event);
	/* minor: the record may be left out. False: it is left out. */
	bool (*may_write)(void *arg, const char *tenant, enum audit_event event, bool minor);
	void (*spend)(void *arg, const char *tenant, uint64_t bytes);
	void *arg;
};
void audit_set_budget(struct audit *audit, const struct audit_budget *budget);

/* May the tenant have records that cannot be left out? */
bool audit_has_room(const struct audit *audit, const char *tenant);

/* Makes one record, which is written soon. tenant: a principal; NULL: none. execution: an id; NULL:
 * none. more: a JSON object with further members, or NULL; it is released, even on failure. Its
 * members "source" and "output" are only in the file. audit NULL: does nothing. 0, also if the
 * record was left out; or -errno: no record can be written now, and as on_failure is stop, the
 * action must not happen. */
int audit_write(struct audit *audit, enum audit_event event, const char *tenant,
		const char *execution, json_t *more);

/* As audit_write, for an action that needs its record first. -EINPROGRESS: wait->on_written
 * follows. Any other value: on_written is not called; 0: the action may happen; -EAGAIN: too many
 * records wait for the disk. wait NULL: the record is of something that has happened. */
int audit_write_first(struct audit *audit, enum audit_event event, const char *tenant,
		      const char *execution, json_t *more, struct writing_wait *wait);

/* Did the last write fail, or does the disk not answer? Then the next write may fail or wait. */
bool audit_is_failing(const struct audit *audit);

/* Does [audit] source ask for whole texts? */
bool audit_wants_source(const struct audit *audit);

/* Adds what an execution has put out to the record of its end. A part that is not empty is there as
 * NAME_bytes and NAME_sha256; with [audit] outputs = whole also, at most [audit] text_bytes of it,
 * as the member NAME of "output", which is written only to the file. bytes: those that were put
 * out, of which text has as much as the answer. */
void audit_add_output(const struct audit *audit, json_t *more, const char *name, const char *text,
		      size_t len, uint64_t bytes);

/* Adds a script to a record that has its "sha256", if [audit] source is set. The first time in a
 * file it is the member "source"; if it is longer than [audit] text_bytes, it is cut, and
 * "source_bytes" is its length. After that it is "source_record": the number of the record that has
 * the script. */
void audit_add_source(struct audit *audit, json_t *more, const char *text, size_t len);

struct audit_counts {
	uint64_t written, lost;		/* records */
	uint64_t left_out;		/* records */
	uint64_t dropped;		/* files */
	uint64_t file_bytes;		/* of the file and of the rotated ones */
	uint64_t file_bytes_max;	/* the bound of file_bytes; 0: no bound, or no file */
	uint64_t disk_free_bytes;	/* free on their disk; 0: no file, or not known */
};
void audit_count(const struct audit *audit, struct audit_counts *counts_r);

#endif
