/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor: the writer of the audit log, or its loop before there is a writer.
 * Owns: the log's file, and the records that wait for room in it.
 * A record goes to the file and to the journal. The file comes first: it alone can refuse one. */
#include "govern/audit_log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <systemd/sd-journal.h>

#include "base/log.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "govern/audit_record.h"
#include "policy/chain.h"
#include "policy/config.h"

#define PENDING_MAX 4096	/* ends of executions that wait for a disk */
#define LOOK_TICKS 60		/* seconds between looks at the room on the disk */
#define ON_FAILURE_STOP 1	/* in the order of the key's choices */

/* ---- journal ---- */

#define N_FIELDS 9
#define JOURNAL_SOCKET "/run/systemd/journal/socket"

/* The fields of a record, with texts "NAME=value" that are freed with free_fields. */
struct fields {
	struct iovec at[N_FIELDS];
	int n;
};

static void
add_field(struct fields *fields, const char *name, const char *value)
{
	char *text = value ? xasprintf("%s=%s", name, value) : NULL;

	if (text)
		fields->at[fields->n++] = (struct iovec){ text, strlen(text) };
}

static void
make_fields(const struct audit_log *log, enum audit_event event, const char *tenant,
	    const char *execution, const char *line, const char *members, struct fields *fields_r)
{
	char priority[2] = { (char)('0' + audit_kinds[event].priority), '\0' };
	own_mem char *message = xasprintf("%s %s", audit_kinds[event].name, line);
	own_mem char *record = xasprintf("{%s}", members);

	fields_r->n = 0;
	add_field(fields_r, "MESSAGE", message);
	add_field(fields_r, "MESSAGE_ID", audit_kinds[event].message_id);
	add_field(fields_r, "PRIORITY", priority);
	add_field(fields_r, "SYSLOG_IDENTIFIER", program_invocation_short_name);
	add_field(fields_r, "MCP_EVENT", audit_kinds[event].name);
	add_field(fields_r, "MCP_RECORD", record);
	add_field(fields_r, "MCP_TENANT", tenant);
	add_field(fields_r, "MCP_EXECUTION", execution);
	add_field(fields_r, "MCP_HASH", log->has_file ? log->file.last.hash : NULL);
}

static void
free_fields(struct fields *fields)
{
	while (fields->n > 0)
		free(fields->at[--fields->n].iov_base);
}

static void
send_to_journal(const struct audit_log *log, enum audit_event event, const char *tenant,
		const char *execution, const char *line, const char *members)
{
	struct fields fields;
	int r;

	make_fields(log, event, tenant, execution, line, members, &fields);
	do
		r = sd_journal_sendv(fields.at, fields.n);
	while (r == -EINTR);
	free_fields(&fields);
}

/* The journal's own protocol, one datagram of lines, for a record without line breaks. False: the
 * journal does not take it now. A host without a journal gets nothing, as in send_to_journal. */
static bool
send_lines(int fd, const struct fields *fields)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = JOURNAL_SOCKET };
	static char line_break[] = "\n";
	struct iovec parts[2 * N_FIELDS];
	struct msghdr msg = { .msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = parts };

	for (int i = 0; i < fields->n; i++) {
		if (memchr(fields->at[i].iov_base, '\n', fields->at[i].iov_len))
			return false;
		parts[msg.msg_iovlen++] = fields->at[i];
		parts[msg.msg_iovlen++] = (struct iovec){ line_break, 1 };
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 || errno == ENOENT;
}

bool
audit_log_write_now(struct audit_log *log, struct audit_record *record)
{
	struct fields fields;
	bool sent = true;

	if (log->has_file)
		return false;
	if (log->journal) {
		make_fields(log, record->event, record->tenant, record->execution, record->line,
			    record->shown ? record->shown : record->members, &fields);
		sent = send_lines(log->journal_fd, &fields);
		free_fields(&fields);
	}
	if (sent)
		audit_log_state(log, &record->state);
	return sent;
}

/* ---- the file ---- */

static int
log_append(struct audit_log *log, enum audit_event event, json_t *more)
{
	own_mem char *members = audit_members(event, NULL, NULL, more);

	return audit_file_append(&log->file, members, strlen(members));
}

/* The record comes first: after a crash between the two steps the file is dropped again. */
static void
drop_oldest(struct audit_log *log)
{
	struct chain_link last;
	json_t *more;
	int r;

	audit_file_oldest_end(&log->file, &last);
	more = json_pack("{s:I,s:I,s:s}", "file", (json_int_t)log->file.oldest, "last_record",
			 (json_int_t)last.n, "last_hash", last.hash);
	r = log_append(log, AUDIT_DROPPED, more);
	json_decref(more);
	if (r == 0)
		r = audit_file_drop_oldest(&log->file);
	if (r < 0) {
		log_line(LOG_ERR, "audit-drop-failed", "err=%s", strerrorname_np(-r));
		return;
	}
	log->dropped++;
}

void
audit_log_bound(struct audit_log *log)
{
	uint64_t before = UINT64_MAX;

	if (log->keep_bytes == 0 || log->file.rotated_bytes <= log->keep_bytes ||
	    audit_file_find_rotated(&log->file) < 0)
		return;
	while (log->file.rotated_bytes > log->keep_bytes && log->file.oldest &&
	       log->file.rotated_bytes < before) {
		before = log->file.rotated_bytes;
		drop_oldest(log);
	}
}

static void
log_rotate(struct audit_log *log)
{
	json_t *more;
	int r;

	r = audit_file_rotate(&log->file);
	if (r < 0) {
		log_line(LOG_ERR, "audit-rotate-failed", "err=%s", strerrorname_np(-r));
		return;
	}
	log->files++;
	more = json_pack("{s:I}", "after", (json_int_t)log->file.rotated);
	log_append(log, AUDIT_ROTATED, more);
	json_decref(more);
	audit_log_bound(log);
}

/* Reports lost records before anything else is written. */
static int
tell_lost(struct audit_log *log)
{
	json_auto_t *more = NULL;
	int r;

	if (log->lost_since == 0)
		return 0;
	more = json_pack("{s:I}", "records", (json_int_t)log->lost_since);
	r = log_append(log, AUDIT_LOST, more);
	if (r == 0) {
		send_to_journal(log, AUDIT_LOST, NULL, NULL, "", "");
		log->lost_since = 0;
	}
	return r;
}

/* What is known of the records before a file that begins in the middle of the chain. */
int
audit_log_tell_replaced(struct audit_log *log, const struct chain_link *last)
{
	json_t *more = json_pack("{s:I,s:s}", "last_record", (json_int_t)last->n, "last_hash",
				 last->hash);
	int r = log_append(log, AUDIT_REPLACED, more);

	json_decref(more);
	if (r == 0)
		send_to_journal(log, AUDIT_REPLACED, NULL, NULL, "", "");
	return r;
}

/* Notices a file that was removed or replaced by somebody else, and makes a new one, in which the
 * chain goes on. */
static void
look_at_file(struct audit_log *log)
{
	const struct chain_link last = log->file.last;
	int r;

	if (audit_file_is_there(&log->file)) {
		log->gone = false;
		return;
	}
	r = audit_file_replace(&log->file);
	if (r == 0)
		r = audit_log_tell_replaced(log, &last);
	if (!log->gone || r == 0)
		log_line(LOG_ERR, "audit-replaced", "err=ENOENT last=%" PRIu64 " new-file=%s "
			 "text=\"the file was removed or replaced by somebody else\"", last.n,
			 r < 0 ? strerrorname_np(-r) : "made");
	log->gone = r < 0;
	if (r < 0)
		log->failing = true;
	else
		log->files++;
}

/* An execution that has begun has an end in the log, also if the disk is full when it ends. Its
 * record waits in memory, with the time at which it was made. False: it is lost. */
static bool
keep_pending(struct audit_log *log, struct audit_record *record)
{
	struct audit_pending *pending;

	if (record->event != AUDIT_EXECUTION_ENDED || log->n_pending == PENDING_MAX)
		return false;
	pending = xcalloc(1, sizeof(*pending));
	pending->members = xstrdup(record->members);
	STAILQ_INSERT_TAIL(&log->pending, pending, link);
	log->n_pending++;
	return true;
}

static void
drop_pending(struct audit_log *log)
{
	struct audit_pending *pending = STAILQ_FIRST(&log->pending);

	STAILQ_REMOVE_HEAD(&log->pending, link);
	log->n_pending--;
	free(pending->members);
	free(pending);
}

/* 0: nothing is pending any more; or -errno. */
static int
write_pending(struct audit_log *log)
{
	const struct audit_pending *pending;
	int r = 0;

	while (r == 0 && (pending = STAILQ_FIRST(&log->pending))) {
		r = audit_file_append(&log->file, pending->members, strlen(pending->members));
		if (r == 0)
			drop_pending(log);
	}
	return r;
}

static int
write_to_file(struct audit_log *log, struct audit_record *record)
{
	int r;

	if (log->gone)
		look_at_file(log);
	if (record->rotates && (uint64_t)log->file.size >= log->rotate_bytes)
		log_rotate(log);
	log->lost_since += record->lost;
	log->lost += record->lost;
	r = log->gone ? -ENOENT : write_pending(log);
	if (r == 0)
		r = tell_lost(log);
	if (r == 0)
		r = audit_file_append(&log->file, record->members, strlen(record->members));
	record->n = log->file.last.n;
	if (r < 0) {
		if (!log->failing)
			log_line(LOG_ERR, "audit-failed", "err=%s then=%s",
				 strerrorname_np(-r), log->stops ? "stop" : "continue");
		if (!keep_pending(log, record)) {
			log->lost_since++;
			log->lost++;
		}
	}
	log->failing = r < 0;
	return r;
}

void
audit_log_write(struct audit_log *log, struct audit_record *record)
{
	record->error = log->has_file ? write_to_file(log, record) : 0;
	if (log->journal)
		send_to_journal(log, record->event, record->tenant, record->execution,
				record->line, record->shown ? record->shown : record->members);
	audit_log_state(log, &record->state);
}

/* ---- room ---- */

/* The largest size of all files together; 0: unbounded. A file can exceed rotate_bytes by the
 * records that waited when it became full. */
static uint64_t
bytes_max(const struct audit_log *log)
{
	return log->keep_bytes ? log->keep_bytes + log->rotate_bytes : 0;
}

/* Warns long before a write fails: when the disk has too few free bytes for the growth that the
 * bound on the files still allows; without a bound, for two files of full size. Also warns, once,
 * when the files have reached 80 % of their bound. */
static void
look_at_disk(struct audit_log *log)
{
	uint64_t bytes = log->file.rotated_bytes + (uint64_t)log->file.size;
	uint64_t needed = 2 * log->rotate_bytes, free_bytes = log->disk_free_bytes;
	bool is_tight;

	if (free_bytes == 0)
		return;
	if (bytes_max(log))
		needed = bytes_max(log) > bytes ? bytes_max(log) - bytes : 0;
	is_tight = free_bytes < needed;
	if (is_tight && !log->is_tight)
		log_line(LOG_WARNING, "audit-disk-tight", "bytes=%" PRIu64 " may-still-take=%" PRIu64
			 " free=%" PRIu64 " when-full=%s", bytes, needed, free_bytes,
			 log->stops ? "stop" : "continue");
	log->is_tight = is_tight;
	if (bytes > bytes_max(log) / 10 * 8 && bytes_max(log) && !log->is_nearly_full) {
		log_line(LOG_WARNING, "audit-nearly-full", "bytes=%" PRIu64 " most=%" PRIu64
			 " then=oldest-file-is-removed", bytes, bytes_max(log));
		log->is_nearly_full = true;
	}
}

void
audit_log_tick(struct audit_log *log)
{
	if (!log->has_file)
		return;
	if (log->ticks > 0) {
		audit_file_flush(&log->file);
		look_at_file(log);
		if (!log->gone)
			(void)write_pending(log);
	}
	if (audit_file_free_bytes(&log->file, &log->disk_free_bytes) < 0)
		log->disk_free_bytes = 0;
	if (log->ticks++ % LOOK_TICKS == 0)
		look_at_disk(log);
}

void
audit_log_state(const struct audit_log *log, struct audit_state *state_r)
{
	*state_r = (struct audit_state){
		.failing = log->failing,
		.files = log->files,
		.file_bytes = log->has_file ? (uint64_t)log->file.size : 0,
		.rotated_bytes = log->file.rotated_bytes,
		.lost = log->lost,
		.dropped = log->dropped,
		.disk_free_bytes = log->disk_free_bytes,
	};
}

/* ---- its beginning and its end ---- */

int
audit_log_open(const struct config *config, const char *path, struct audit_log *log_r,
	       struct why *why_r)
{
	*log_r = (struct audit_log){
		.file.fd = -1,
		.journal_fd = path ? -1 : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0),
		.has_file = path != NULL,
		.journal = config->audit.journal,
		.stops = config->audit.on_failure == ON_FAILURE_STOP,
		.rotate_bytes = config->audit.rotate_bytes,
		.keep_bytes = config->audit.keep_bytes,
	};
	STAILQ_INIT(&log_r->pending);
	return path ? audit_file_open(path, config->audit.sync, &log_r->file, why_r) : 0;
}

void
audit_log_close(struct audit_log *log)
{
	if (log->has_file && write_pending(log) < 0)
		log_line(LOG_ERR, "audit-lost", "records=%zu", log->n_pending);
	while (!STAILQ_EMPTY(&log->pending))
		drop_pending(log);
	audit_file_close(&log->file);
	if (log->journal_fd >= 0)
		close(log->journal_fd);
}
