/* SPDX-License-Identifier: Apache-2.0 */
/* Where the records of the audit log go: the file and the journal. Both may hold up who writes to
 * them, so after audit_start these functions are called only in the thread of the writer
 * (govern/writer.h), to which a struct audit_log belongs then; but for audit_log_write_now.
 */
#ifndef GOVERN_AUDIT_LOG_H
#define GOVERN_AUDIT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "govern/audit.h"
#include "govern/audit_file.h"

struct config;
struct why;

/* A record that could not be written yet. */
struct audit_pending {
	STAILQ_ENTRY(audit_pending) link;
	char *members;
};

struct audit_log {
	struct audit_file file;		/* fd -1: none */
	bool has_file, journal, stops;
	int journal_fd;			/* for audit_log_write_now; -1: none */
	bool failing;
	bool gone;			/* the file was removed, and could not be made again */
	bool is_tight;			/* the disk may lack room for the files at their full
					 * size */
	bool is_nearly_full;		/* the oldest file is dropped soon; reported once */
	uint64_t rotate_bytes, keep_bytes;
	unsigned int ticks;
	unsigned int files;		/* new files that were begun */
	STAILQ_HEAD(, audit_pending) pending;	/* the ends of executions, the oldest first */
	size_t n_pending;
	uint64_t lost_since;		/* lost records since the last one that was written */
	uint64_t lost, dropped;		/* since the start: records, files */
	uint64_t disk_free_bytes;	/* at the last look; 0: not known */
};

/* What the loop knows of the log. */
struct audit_state {
	bool failing;
	unsigned int files;
	uint64_t file_bytes;		/* of the file */
	uint64_t rotated_bytes;
	uint64_t lost, dropped, disk_free_bytes;
};

/* A record that is to be written. Texts are malloc'd, and belong to the record. */
struct audit_record {
	enum audit_event event;
	char *tenant, *execution;	/* NULL: none */
	char *members;
	char *shown;			/* the members for the journal; NULL: the same ones */
	char *line;			/* for the journal and the log */
	bool rotates;			/* the file is full, and is put aside first */
	uint64_t lost;			/* records before this one that never came so far */
	/* Afterwards. */
	int error;			/* 0 or -errno */
	uint64_t n;			/* its number in the file */
	struct audit_state state;
};

/* Opens and repairs the file. 0, or -errno with why_r. */
int audit_log_open(const struct config *config, const char *path, struct audit_log *log_r,
		   struct why *why_r);
void audit_log_close(struct audit_log *log);	/* waits until all is on the disk */

void audit_log_write(struct audit_log *log, struct audit_record *record);

/* For the loop, while the writer has no work: the same, without a wait. False: that is not
 * possible, and nothing is done. */
bool audit_log_write_now(struct audit_log *log, struct audit_record *record);

/* Looks after the file, once in a second: writes what is pending, notices a file that somebody else
 * has removed, warns of a disk that gets full. */
void audit_log_tick(struct audit_log *log);

/* Removes old files beyond [audit] keep_bytes. */
void audit_log_bound(struct audit_log *log);

/* Writes what is known of the records before a file that begins in the middle of the chain. */
int audit_log_tell_replaced(struct audit_log *log, const struct chain_link *last);

void audit_log_state(const struct audit_log *log, struct audit_state *state_r);

#endif
