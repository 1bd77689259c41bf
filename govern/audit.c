/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the audit log: its file, and the count of lost records.
 * A record is made once and goes to the file and to the journal, and as a log line to standard
 * error if that is not the journal. The file comes first: it alone can refuse a record. */
#include "govern/audit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/uio.h>
#include <time.h>

#include <event2/event.h>
#include <systemd/sd-journal.h>

#include "base/log.h"
#include "base/own.h"
#include "base/utf8.h"
#include "base/xalloc.h"
#include "govern/audit_file.h"
#include "policy/chain.h"
#include "policy/config.h"
#include "policy/shown.h"

#define PENDING_MAX 4096	/* ends of executions that wait for a disk */
#define SOURCES 4096		/* scripts that are remembered: one for each value of the
				 * first three digits of the hash */
#define LOOK_TICKS 60		/* seconds between looks at the disk */
#define ON_FAILURE_STOP 1	/* in the order of the key's choices */

/* The ids are in systemd/mcp-pythond.catalog too, and never change. */
static const struct {
	const char *name;
	int priority;
	bool minor;			/* a record of something that did not happen, or of
					 * little interest: it may be left out */
	const char *message_id;
} events[AUDIT_EVENT_COUNT] = {
	[AUDIT_STARTED] = { "started", LOG_NOTICE, false,
		"b01553c4455741318382ab9837fc2ff8" },
	[AUDIT_STOPPED] = { "stopped", LOG_NOTICE, false,
		"7fb25d197ddc4a95af9fae2f3924e9ce" },
	[AUDIT_RELOADED] = { "reloaded", LOG_NOTICE, false,
		"95da365e092541e3b0c617a72dd598ec" },
	[AUDIT_SESSION_OPENED] = { "session-opened", LOG_INFO, true,
		"e4fb18bcee2f49d0af117fd996c8152c" },
	[AUDIT_SESSION_CLOSED] = { "session-closed", LOG_INFO, true,
		"c56e57a55f3f4c528d8759ce3530d19e" },
	[AUDIT_SESSION_KEPT] = { "session-kept", LOG_INFO, false,
		"e6226d68133d4d829d2862b17c3cdbf1" },
	[AUDIT_SESSION_LOST] = { "session-lost", LOG_NOTICE, false,
		"2a622bbfe6f443c3aef2876d8279c437" },
	[AUDIT_DENIED] = { "denied", LOG_WARNING, true,
		"507940f2d48e4a469da936161bd4e5bd" },
	[AUDIT_QUOTA_HIT] = { "quota-hit", LOG_NOTICE, true,
		"c06f3b5b2ffa4cafa133b46092176a5f" },
	[AUDIT_EXECUTION_STARTED] = { "execution-started", LOG_INFO, false,
		"4eb94ad61c424784aa22ce71996eb14e" },
	[AUDIT_EXECUTION_ENDED] = { "execution-ended", LOG_INFO, false,
		"77b81cd5ef714fd8965558db710cf4f2" },
	[AUDIT_STOPPED_BY_OPERATOR] = { "stopped-by-operator", LOG_NOTICE, false,
		"6a0f27ce1c1f4c5c9f8d5b5e4b0e3d71" },
	[AUDIT_TENANT_SUSPENDED] = { "tenant-suspended", LOG_NOTICE, false,
		"be555546c0cf41b3b0dfcf6d85874e52" },
	[AUDIT_TENANT_RESUMED] = { "tenant-resumed", LOG_NOTICE, false,
		"b726b6c3f15941a88d34643e38687413" },
	[AUDIT_LIMIT_HIT] = { "limit-hit", LOG_NOTICE, false,
		"0e5ddaef543d4373a44f9d51dc86b439" },
	[AUDIT_IMPORT_REFUSED] = { "import-refused", LOG_WARNING, true,
		"a566b3c445c24560b9cb1bcf34c32608" },
	[AUDIT_IMPORT_FOUND] = { "import-found", LOG_INFO, false,
		"ab3625a52d4a430389d8a15a9016eff6" },
	[AUDIT_INPUT_ASKED] = { "input-asked", LOG_INFO, false,
		"c4c27f8286e54ebcb53c634fc608e857" },
	[AUDIT_INPUT_ENDED] = { "input-ended", LOG_INFO, false,
		"6b52f6fe93174603bcf1351020a0fbac" },
	[AUDIT_TOOL_CALLED] = { "tool-called", LOG_INFO, false,
		"7b369df177e9433a85121914989ff6a6" },
	[AUDIT_TOOL_ENDED] = { "tool-ended", LOG_INFO, false,
		"50c396b6d4b5423aac684e60eb403162" },
	[AUDIT_TOOL_REFUSED] = { "tool-refused", LOG_NOTICE, true,
		"6db4dd1d1cd948d9b32dc61ed79e209a" },
	[AUDIT_APPROVAL_ASKED] = { "approval-asked", LOG_NOTICE, false,
		"bde0e3e7753c46daa42bb55d49a92644" },
	[AUDIT_APPROVAL_GRANTED] = { "approval-granted", LOG_NOTICE, false,
		"33644728a1b243368955308a7f3cbd5f" },
	[AUDIT_APPROVAL_REFUSED] = { "approval-refused", LOG_NOTICE, false,
		"c7ad3344a766411abcac3f29d4a1ea50" },
	[AUDIT_APPROVAL_REVOKED] = { "approval-revoked", LOG_NOTICE, false,
		"1c7b184684914794b1489de5cda83b4b" },
	[AUDIT_PACKAGE_INSTALLED] = { "package-installed", LOG_NOTICE, false,
		"b4b2d43b4e714bbc9d449ef3ae4e9dac" },
	[AUDIT_PACKAGE_REFUSED] = { "package-refused", LOG_WARNING, false,
		"8d4f031b4a4240b28154845a724e2a4c" },
	[AUDIT_PACKAGE_BUILT] = { "package-built", LOG_NOTICE, false,
		"9e62012d4f494c2fa618cedbdcc83007" },
	[AUDIT_CONNECTION] = { "connection", LOG_INFO, false,
		"e23a7f79809d469eb09c7fc340c0be63" },
	[AUDIT_CONNECTION_REFUSED] = { "connection-refused", LOG_WARNING, false,
		"d011b466fa09493cb6b16eb494925ccd" },
	[AUDIT_ROTATED] = { "rotated", LOG_INFO, false,
		"48431d5ad1f44ab0b3fa387595834091" },
	[AUDIT_MENDED] = { "mended", LOG_WARNING, false,
		"58b459b273ac4a3b8a5ca35225252e5f" },
	[AUDIT_BROKEN] = { "broken", LOG_ERR, false,
		"b6bfaa1955534b26a898dd346b9bbd7d" },
	[AUDIT_REPLACED] = { "replaced", LOG_ERR, false,
		"5b0f3f0f0a8d4a1e9a7c61b2c3d94e57" },
	[AUDIT_DROPPED] = { "dropped", LOG_NOTICE, false,
		"af8f7461fb54408d8e2e8ec44b52c29d" },
	[AUDIT_LOST] = { "lost", LOG_ERR, false,
		"7b70d8af9f284810a4d2a6040c6c3379" },
	[AUDIT_LEFT_OUT] = { "left-out", LOG_NOTICE, false,
		"8c307b17d19c45b99f7f6227acd79197" },
};

/* A script that the current file holds. */
struct audit_source {
	char sha256[CHAIN_DIGITS];
	uint64_t n;			/* number of its record; 0: none */
};

/* A record that could not be written yet. */
struct pending {
	STAILQ_ENTRY(pending) link;
	char *members;
};

struct audit {
	struct audit_file file;		/* fd -1: none */
	bool has_file, journal, source, stops;
	bool failing;
	bool gone;			/* the file was removed, and could not be made again */
	bool is_tight;			/* the disk may lack room for the files at their full
					 * size */
	bool is_nearly_full;		/* the oldest file is dropped soon; reported once */
	uint64_t text_bytes, rotate_bytes, keep_bytes;
	struct audit_budget budget;	/* may_write NULL: no budget */
	struct audit_source *sources;	/* by hash; each bucket holds its last script */
	unsigned int ticks;
	struct event *tick;		/* NULL: no loop */
	STAILQ_HEAD(, pending) pending;	/* the ends of executions, the oldest first */
	size_t n_pending;
	uint64_t lost_since;		/* lost records since the last one that was written */
	struct audit_counts counts;
};

const char *
audit_event_name(enum audit_event event)
{
	return events[event].name;
}

/* ---- texts ---- */

/* The length of a text after it is cut to most bytes, if it is longer, in whole characters. */
static size_t
cut_at(const char *text, size_t len, size_t most)
{
	return len <= most ? len : most - utf8_begun(text, most);
}

/* Cuts each text that is longer than most, and notes its length and hash. */
static json_t *
cut_texts(json_t *value, size_t most)
{
	const char *text = json_string_value(value), *key;
	char hash[CHAIN_DIGITS + 1];
	size_t len, i;
	json_t *one;

	if (text && (len = json_string_length(value)) > most) {
		chain_hash(text, len, hash);
		return json_sprintf("%.*s... (%zu bytes, SHA-256 %s)",
				    (int)cut_at(text, len, most), text, len, hash);
	}
	if (json_is_object(value))
		json_object_foreach(value, key, one)
			json_object_set_new(value, key, cut_texts(one, most));
	json_array_foreach(value, i, one)
		json_array_set_new(value, i, cut_texts(one, most));
	return json_incref(value);
}

/* ---- scripts that are in the file ---- */

static struct audit_source *
source_slot(const struct audit *audit, const char *sha256)
{
	char digits[4] = { sha256[0], sha256[1], sha256[2], '\0' };

	return &audit->sources[strtoul(digits, NULL, 16) % SOURCES];
}

static void
remember_source(struct audit *audit, const json_t *more)
{
	const char *sha256 = json_string_value(json_object_get(more, "sha256"));
	struct audit_source *slot;

	if (!json_object_get(more, "source") || !sha256 || strlen(sha256) != CHAIN_DIGITS)
		return;
	slot = source_slot(audit, sha256);
	memcpy(slot->sha256, sha256, CHAIN_DIGITS);
	slot->n = audit->file.last.n;
}

/* ---- one record ---- */

/* The members of a record as text, without braces; in ASCII, because people read it too. */
static char *
make_members(enum audit_event event, const char *tenant, const char *execution,
	     json_t *more)
{
	struct timespec now;
	struct tm tm;
	char time[64];
	size_t at;
	json_auto_t *root = xalloc_check(json_object());
	char *text, *members;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	at = strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(time + at, sizeof(time) - at, ".%06ldZ", now.tv_nsec / 1000);
	json_object_set_new(root, "time", json_string(time));
	json_object_set_new(root, "event", json_string(events[event].name));
	if (tenant)
		json_object_set_new(root, "tenant", json_string(tenant));
	if (execution)
		json_object_set_new(root, "execution", json_string(execution));
	/* the caller's members cannot replace these */
	json_object_update_missing(root, more);
	json_object_del(root, "n");
	json_object_del(root, "prev");
	json_object_del(root, "hash");
	text = shown_json(root, JSON_COMPACT);
	members = xmemdup0(text + 1, strlen(text) - 2);
	free(text);
	return members;
}

/* ---- one line ---- */

#define LINE_MAX_BYTES 512

struct line {
	char text[LINE_MAX_BYTES];
	size_t len;
};

/* A pair that does not fit is left out. */
static void
add_pair(struct line *line, const char *key, const char *value)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_.,:/@+-";
	const size_t room = sizeof(line->text) - line->len;
	struct log_quoted quoted;
	int n;

	if (*value == '\0' || value[strspn(value, plain)] != '\0')
		value = log_quote(&quoted, value, strlen(value));
	n = snprintf(line->text + line->len, room, "%s%s=%s", line->len > 0 ? " " : "", key, value);
	if (n > 0 && (size_t)n < room)
		line->len += (size_t)n;
	line->text[line->len] = '\0';
}

/* Writes the members whose values are not objects, as in log lines: key=value. */
static void
audit_make_line(struct line *line, const char *tenant, const char *execution, json_t *more)
{
	const char *key;
	json_t *value;

	*line = (struct line){ .len = 0 };
	if (tenant)
		add_pair(line, "tenant", tenant);
	if (execution)
		add_pair(line, "execution", execution);
	json_object_foreach(more, key, value) {
		char number[32];

		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT,
			 json_integer_value(value));
		if (json_is_string(value))
			add_pair(line, key, json_string_value(value));
		else if (json_is_integer(value))
			add_pair(line, key, number);
	}
}

/* ---- journal ---- */

static struct iovec
audit_field(const char *name, const char *value)
{
	char *text = xasprintf("%s=%s", name, value);

	return (struct iovec){ .iov_base = text, .iov_len = strlen(text) };
}

static void
send_to_journal(const struct audit *audit, enum audit_event event, const char *tenant,
		const char *execution, const char *line, const char *members)
{
	struct iovec fields[8];
	char priority[2] = { (char)('0' + events[event].priority), '\0' };
	own_mem char *message = xasprintf("%s %s", events[event].name, line);
	own_mem char *record = xasprintf("{%s}", members);
	int n = 0, r;

	fields[n++] = audit_field("MESSAGE", message);
	fields[n++] = audit_field("MESSAGE_ID", events[event].message_id);
	fields[n++] = audit_field("PRIORITY", priority);
	fields[n++] = audit_field("MCP_EVENT", events[event].name);
	fields[n++] = audit_field("MCP_RECORD", record);
	if (tenant)
		fields[n++] = audit_field("MCP_TENANT", tenant);
	if (execution)
		fields[n++] = audit_field("MCP_EXECUTION", execution);
	if (audit->has_file)
		fields[n++] = audit_field("MCP_HASH", audit->file.last.hash);
	do
		r = sd_journal_sendv(fields, n);
	while (r == -EINTR);
	while (n > 0)
		free(fields[--n].iov_base);
}

/* ---- the file ---- */

static int
audit_append(struct audit *audit, enum audit_event event, const char *tenant,
	     const char *execution, json_t *more)
{
	own_mem char *members = make_members(event, tenant, execution, more);

	return audit_file_append(&audit->file, members, strlen(members));
}

/* The record comes first: after a crash between the two steps the file is dropped again. */
static void
drop_oldest(struct audit *audit)
{
	struct chain_link last;
	json_t *more;
	int r;

	audit_file_oldest_end(&audit->file, &last);
	more = json_pack("{s:I,s:I,s:s}", "file", (json_int_t)audit->file.oldest, "last_record",
			 (json_int_t)last.n, "last_hash", last.hash);
	r = audit_append(audit, AUDIT_DROPPED, NULL, NULL, more);
	json_decref(more);
	if (r == 0)
		r = audit_file_drop_oldest(&audit->file);
	if (r < 0) {
		log_line(LOG_ERR, "audit-drop-failed", "err=%s", strerrorname_np(-r));
		return;
	}
	audit->counts.dropped++;
}

static void
keep_within_bound(struct audit *audit)
{
	uint64_t before = UINT64_MAX;

	if (audit->keep_bytes == 0 || audit->file.rotated_bytes <= audit->keep_bytes ||
	    audit_file_find_rotated(&audit->file) < 0)
		return;
	while (audit->file.rotated_bytes > audit->keep_bytes && audit->file.oldest &&
	       audit->file.rotated_bytes < before) {
		before = audit->file.rotated_bytes;
		drop_oldest(audit);
	}
}

static void
rotate_if_full(struct audit *audit)
{
	json_t *more;
	int r;

	if ((uint64_t)audit->file.size < audit->rotate_bytes)
		return;
	r = audit_file_rotate(&audit->file);
	if (r < 0) {
		log_line(LOG_ERR, "audit-rotate-failed", "err=%s", strerrorname_np(-r));
		return;
	}
	/* Each file holds its own scripts, so that it can be read without the files before it. */
	if (audit->sources)
		memset(audit->sources, 0, SOURCES * sizeof(*audit->sources));
	more = json_pack("{s:I}", "after", (json_int_t)audit->file.rotated);
	audit_append(audit, AUDIT_ROTATED, NULL, NULL, more);
	json_decref(more);
	keep_within_bound(audit);
}

/* Reports lost records before anything else is written. */
static int
tell_lost(struct audit *audit)
{
	json_auto_t *more = NULL;
	int r;

	if (audit->lost_since == 0)
		return 0;
	more = json_pack("{s:I}", "records", (json_int_t)audit->lost_since);
	r = audit_append(audit, AUDIT_LOST, NULL, NULL, more);
	if (r == 0) {
		send_to_journal(audit, AUDIT_LOST, NULL, NULL, "", "");
		audit->lost_since = 0;
	}
	return r;
}

/* What is known of the records before a file that begins in the middle of the chain. */
static int
tell_replaced(struct audit *audit, const struct chain_link *last)
{
	json_t *more = json_pack("{s:I,s:s}", "last_record", (json_int_t)last->n, "last_hash",
				 last->hash);
	int r = audit_append(audit, AUDIT_REPLACED, NULL, NULL, more);

	json_decref(more);
	if (r == 0)
		send_to_journal(audit, AUDIT_REPLACED, NULL, NULL, "", "");
	return r;
}

/* Notices a file that was removed or replaced by somebody else, and makes a new one, in which the
 * chain goes on. */
static void
look_at_file(struct audit *audit)
{
	const struct chain_link last = audit->file.last;
	int r;

	if (audit_file_is_there(&audit->file)) {
		audit->gone = false;
		return;
	}
	r = audit_file_replace(&audit->file);
	if (r == 0)
		r = tell_replaced(audit, &last);
	if (!audit->gone || r == 0)
		log_line(LOG_ERR, "audit-replaced", "err=ENOENT last=%" PRIu64 " new-file=%s "
			 "text=\"the file was removed or replaced by somebody else\"", last.n,
			 r < 0 ? strerrorname_np(-r) : "made");
	audit->gone = r < 0;
	if (r < 0)
		audit->failing = true;
	if (r == 0 && audit->sources)
		memset(audit->sources, 0, SOURCES * sizeof(*audit->sources));
}

/* An execution that has begun has an end in the log, also if the disk is full when it ends. Its
 * record waits in memory, with the time at which it was made. False: it is lost. */
static bool
keep_pending(struct audit *audit, enum audit_event event, const char *tenant,
	     const char *execution, json_t *more)
{
	struct pending *pending;

	if (event != AUDIT_EXECUTION_ENDED || audit->n_pending == PENDING_MAX)
		return false;
	pending = xcalloc(1, sizeof(*pending));
	pending->members = make_members(event, tenant, execution, more);
	STAILQ_INSERT_TAIL(&audit->pending, pending, link);
	audit->n_pending++;
	return true;
}

static void
drop_pending(struct audit *audit)
{
	struct pending *pending = STAILQ_FIRST(&audit->pending);

	STAILQ_REMOVE_HEAD(&audit->pending, link);
	audit->n_pending--;
	free(pending->members);
	free(pending);
}

/* 0: nothing is pending any more; or -errno. */
static int
write_pending(struct audit *audit)
{
	const struct pending *pending;
	int r = 0;

	while (r == 0 && (pending = STAILQ_FIRST(&audit->pending))) {
		r = audit_file_append(&audit->file, pending->members, strlen(pending->members));
		if (r == 0)
			drop_pending(audit);
	}
	return r;
}

static int
write_to_file(struct audit *audit, enum audit_event event, const char *tenant,
	      const char *execution, json_t *more, uint64_t *bytes_r)
{
	off_t before;
	int r;

	if (!audit->has_file)
		return 0;
	if (audit->gone)
		look_at_file(audit);
	rotate_if_full(audit);
	r = audit->gone ? -ENOENT : write_pending(audit);
	if (r == 0)
		r = tell_lost(audit);
	before = audit->file.size;
	if (r == 0)
		r = audit_append(audit, event, tenant, execution, more);
	*bytes_r = (uint64_t)(audit->file.size - before);
	if (r == 0 && audit->sources)
		remember_source(audit, more);
	if (r < 0) {
		if (!audit->failing)
			log_line(LOG_ERR, "audit-failed", "err=%s then=%s",
				 strerrorname_np(-r), audit->stops ? "stop" : "continue");
		if (!keep_pending(audit, event, tenant, execution, more)) {
			audit->lost_since++;
			audit->counts.lost++;
		}
	}
	audit->failing = r < 0;
	return r;
}

static bool
may_write(const struct audit *audit, const char *tenant, enum audit_event event, bool minor)
{
	const struct audit_budget *budget = &audit->budget;

	return !tenant || !budget->may_write ||
	       budget->may_write(budget->arg, tenant, event, minor);
}

int
audit_write(struct audit *audit, enum audit_event event, const char *tenant,
	    const char *execution, json_t *more)
{
	uint64_t bytes = 0;
	struct line line;
	int r;

	if (!audit || (events[event].minor && !may_write(audit, tenant, event, true))) {
		if (audit)
			audit->counts.left_out++;
		json_decref(more);
		return 0;
	}
	if (more)
		json_decref(cut_texts(more, audit->text_bytes));
	r = write_to_file(audit, event, tenant, execution, more, &bytes);
	json_object_del(more, "source");
	audit_make_line(&line, tenant, execution, more);
	if (!log_is_journal())
		log_line(events[event].priority, events[event].name, "%s", line.text);
	if (audit->journal) {
		own_mem char *members = make_members(event, tenant, execution, more);

		send_to_journal(audit, event, tenant, execution, line.text, members);
		if (bytes == 0)
			bytes = strlen(members);
	}
	json_decref(more);
	if (r == 0)
		audit->counts.written++;
	if (tenant && audit->budget.spend)
		audit->budget.spend(audit->budget.arg, tenant, bytes);
	return audit->stops ? r : 0;
}

/* ---- room ---- */

/* The largest size of all files together; 0: unbounded. A file can exceed rotate_bytes by one
 * record. */
static uint64_t
bytes_max(const struct audit *audit)
{
	return audit->keep_bytes ? audit->keep_bytes + audit->rotate_bytes : 0;
}

/* Warns long before a write fails: when the disk has too few free bytes for the growth that the
 * bound on the files still allows; without a bound, for two files of full size. Also warns, once,
 * when the files have reached 80 % of their bound. */
static void
look_at_disk(struct audit *audit)
{
	uint64_t bytes = audit->file.rotated_bytes + (uint64_t)audit->file.size;
	uint64_t needed = 2 * audit->rotate_bytes, free_bytes;
	bool is_tight;

	if (audit_file_free_bytes(&audit->file, &free_bytes) < 0)
		return;
	if (bytes_max(audit))
		needed = bytes_max(audit) > bytes ? bytes_max(audit) - bytes : 0;
	is_tight = free_bytes < needed;
	if (is_tight && !audit->is_tight)
		log_line(LOG_WARNING, "audit-disk-tight", "bytes=%" PRIu64 " may-still-take=%" PRIu64
			 " free=%" PRIu64 " when-full=%s", bytes, needed, free_bytes,
			 audit->stops ? "stop" : "continue");
	audit->is_tight = is_tight;
	if (bytes > bytes_max(audit) / 10 * 8 && bytes_max(audit) && !audit->is_nearly_full) {
		log_line(LOG_WARNING, "audit-nearly-full", "bytes=%" PRIu64 " most=%" PRIu64
			 " then=oldest-file-is-removed", bytes, bytes_max(audit));
		audit->is_nearly_full = true;
	}
}

/* ---- start, budgets and end of the log ---- */

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct audit *audit = arg;

	(void)fd;
	(void)what;
	audit_file_flush(&audit->file);
	look_at_file(audit);
	if (!audit->gone)
		(void)write_pending(audit);
	if (++audit->ticks % LOOK_TICKS == 0)
		look_at_disk(audit);
}

static void
tell_found(struct audit *audit)
{
	if (audit->file.broken)
		audit_write(audit, AUDIT_BROKEN, NULL, NULL,
			    json_pack("{s:I}", "aside", (json_int_t)audit->file.rotated));
	if (audit->file.missing && tell_replaced(audit, &audit->file.last) == 0)
		log_line(LOG_ERR, "audit-missing", "after=%" PRIu64, audit->file.last.n - 1);
	if (audit->file.torn)
		audit_write(audit, AUDIT_MENDED, NULL, NULL,
			    json_pack("{s:I}", "bytes", (json_int_t)audit->file.torn));
}

int
audit_new(const struct config *config, const char *path, struct audit **audit_r,
	  struct why *why_r)
{
	struct audit *audit = xcalloc(1, sizeof(*audit));
	int r = 0;

	audit->file.fd = -1;
	STAILQ_INIT(&audit->pending);
	audit->journal = config->audit.journal;
	audit->source = config->audit.source;
	audit->stops = config->audit.on_failure == ON_FAILURE_STOP;
	audit->text_bytes = config->audit.text_bytes;
	audit->rotate_bytes = config->audit.rotate_bytes;
	audit->keep_bytes = config->audit.keep_bytes;
	if (!path)
		path = config->audit.file;
	if (path)
		r = audit_file_open(path, config->audit.sync, &audit->file, why_r);
	if (r < 0) {
		free(audit);
		return r;
	}
	audit->has_file = path != NULL;
	if (audit->has_file && audit->source)
		audit->sources = xcalloc(SOURCES, sizeof(*audit->sources));
	tell_found(audit);
	if (audit->has_file)
		keep_within_bound(audit);
	*audit_r = audit;
	return 0;
}

void
audit_start(struct audit *audit, struct event_base *base)
{
	static const struct timeval second = { 1, 0 };

	if (!audit->has_file)
		return;
	audit->tick = xalloc_check(event_new(base, -1, EV_PERSIST, on_tick, audit));
	evtimer_add(audit->tick, &second);
	look_at_disk(audit);
}

void
audit_free(struct audit *audit)
{
	if (!audit)
		return;
	if (audit->tick)
		event_free(audit->tick);
	if (audit->has_file && write_pending(audit) < 0)
		log_line(LOG_ERR, "audit-lost", "records=%zu", audit->n_pending);
	while (!STAILQ_EMPTY(&audit->pending))
		drop_pending(audit);
	audit_file_close(&audit->file);
	free(audit->sources);
	free(audit);
}

void
audit_set_budget(struct audit *audit, const struct audit_budget *budget)
{
	audit->budget = *budget;
}

bool
audit_has_room(const struct audit *audit, const char *tenant)
{
	return !audit || may_write(audit, tenant, AUDIT_EXECUTION_STARTED, false);
}

bool
audit_is_failing(const struct audit *audit)
{
	return audit && audit->failing;
}

bool
audit_wants_source(const struct audit *audit)
{
	return audit && audit->source && audit->has_file;
}

void
audit_add_source(struct audit *audit, json_t *more, const char *text, size_t len)
{
	const char *sha256 = json_string_value(json_object_get(more, "sha256"));
	const struct audit_source *slot;
	size_t cut;

	if (!audit_wants_source(audit))
		return;
	/* Before the script's position is noted. */
	rotate_if_full(audit);
	slot = source_slot(audit, sha256);
	if (slot->n && memcmp(slot->sha256, sha256, CHAIN_DIGITS) == 0) {
		json_object_set_new(more, "source_record", json_integer((json_int_t)slot->n));
		return;
	}
	cut = cut_at(text, len, audit->text_bytes);
	json_object_set_new(more, "source", json_stringn(text, cut));
	if (cut < len)
		json_object_set_new(more, "source_bytes", json_integer((json_int_t)len));
}

void
audit_count(const struct audit *audit, struct audit_counts *counts_r)
{
	*counts_r = audit ? audit->counts : (struct audit_counts){ .written = 0 };
	if (!audit || !audit->has_file)
		return;
	counts_r->file_bytes = audit->file.rotated_bytes + (uint64_t)audit->file.size;
	counts_r->file_bytes_max = bytes_max(audit);
	if (audit_file_free_bytes(&audit->file, &counts_r->disk_free_bytes) < 0)
		counts_r->disk_free_bytes = 0;
}
