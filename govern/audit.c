/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the records that wait for the writer.
 * A record is made once and goes to the file and to the journal (govern/audit_log.h), and as a log
 * line to standard error if that is not the journal. A thread writes to both, because a disk or the
 * journal may be slow: the loop goes on meanwhile, and only what needs its record first waits. If
 * there is no file, the loop itself sends to a journal that takes the record at once. */
#include "govern/audit.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "govern/audit_log.h"
#include "govern/audit_record.h"
#include "govern/writer.h"
#include "policy/chain.h"
#include "policy/config.h"

#define LATE_S 5			/* a disk that takes longer is reported */
#define SOURCES 4096		/* scripts that are remembered: one for each value of the
				 * first three digits of the hash */
#define ON_FAILURE_STOP 1	/* in the order of the key's choices */

/* A script that the current file holds. */
struct audit_source {
	char sha256[CHAIN_DIGITS];
	uint64_t n;			/* number of its record; 0: none */
};

/* A record from audit_write until it is written. */
struct audit_waiting {
	struct writing writing;
	struct audit *audit;
	struct audit_record record;
	char source[CHAIN_DIGITS];	/* the hash of the script in it */
	bool has_source;
	struct writing_wait *wait;	/* NULL: nothing waits for it */
};

/* A look after the file. */
struct audit_look {
	struct writing writing;
	struct audit *audit;
	bool runs;
	struct audit_state state;	/* afterwards */
};

struct audit {
	struct audit_log log;		/* the writer's, once there is one */
	struct audit_state state;	/* of the log, after the last record or look */
	struct writer *writer;		/* NULL: records are written at once */
	bool has_file, journal, source, outputs, stops;
	uint64_t text_bytes, rotate_bytes, bytes_max;
	struct audit_budget budget;	/* may_write NULL: no budget */
	struct audit_source *sources;	/* by hash; each bucket holds its last script */
	uint64_t lost;			/* records that found no room, and are not reported yet */
	struct event *tick;		/* NULL: no loop */
	struct audit_look look;		/* with each tick, unless the last one is not done */
	unsigned int late_s;		/* since the look that is not done began */
	struct audit_counts counts;
};

/* ---- scripts that are in the file ---- */

static struct audit_source *
source_slot(const struct audit *audit, const char *sha256)
{
	char digits[4] = { sha256[0], sha256[1], sha256[2], '\0' };

	return &audit->sources[strtoul(digits, NULL, 16) % SOURCES];
}

/* Each file holds its own scripts, so that it can be read without the files before it. */
static void
forget_sources(struct audit *audit)
{
	if (audit->sources)
		memset(audit->sources, 0, SOURCES * sizeof(*audit->sources));
}

static void
remember_source(struct audit *audit, const struct audit_waiting *waiting)
{
	struct audit_source *slot;

	if (!waiting->has_source || waiting->record.error < 0)
		return;
	slot = source_slot(audit, waiting->source);
	memcpy(slot->sha256, waiting->source, CHAIN_DIGITS);
	slot->n = waiting->record.n;
}

/* ---- what the writer has done ---- */

static void
take_state(struct audit *audit, const struct audit_state *state)
{
	if (state->files != audit->state.files)
		forget_sources(audit);
	audit->state = *state;
}

static struct audit_waiting *
waiting_of(struct writing *writing)
{
	return (struct audit_waiting *)(void *)((char *)writing -
						offsetof(struct audit_waiting, writing));
}

static void
write_record(struct writing *writing)
{
	struct audit_waiting *waiting = waiting_of(writing);

	audit_log_write(&waiting->audit->log, &waiting->record);
}

static bool
write_record_now(struct writing *writing)
{
	struct audit_waiting *waiting = waiting_of(writing);

	return audit_log_write_now(&waiting->audit->log, &waiting->record);
}

static void
on_record(struct writing *writing)
{
	struct audit_waiting *waiting = waiting_of(writing);
	struct audit *audit = waiting->audit;
	const struct audit_kind *kind = &audit_kinds[waiting->record.event];
	struct writing_wait *wait = waiting->wait;
	bool at_once = writing->at_once;
	int error = waiting->record.error;

	/* Whoever reads the line finds the record. */
	if (!log_is_journal())
		log_line(kind->priority, kind->name, "%s", waiting->record.line);
	take_state(audit, &waiting->record.state);
	remember_source(audit, waiting);
	if (error == 0)
		audit->counts.written++;
	free(waiting->record.tenant);
	free(waiting->record.execution);
	free(waiting->record.members);
	free(waiting->record.shown);
	free(waiting->record.line);
	free(waiting);
	writing_end_wait(wait, error, at_once);
}

/* ---- writing ---- */

static bool
may_write(const struct audit *audit, const char *tenant, enum audit_event event, bool minor)
{
	const struct audit_budget *budget = &audit->budget;

	return !tenant || !budget->may_write ||
	       budget->may_write(budget->arg, tenant, event, minor);
}

static void
note_source(struct audit_waiting *waiting, const json_t *more)
{
	const char *sha256 = json_string_value(json_object_get(more, "sha256"));

	if (!waiting->audit->sources || !json_object_get(more, "source") || !sha256 ||
	    strlen(sha256) != CHAIN_DIGITS)
		return;
	waiting->has_source = true;
	memcpy(waiting->source, sha256, CHAIN_DIGITS);
}

/* Is the file put aside before the next record? */
static bool
is_to_rotate(const struct audit *audit)
{
	return audit->has_file && audit->state.file_bytes >= audit->rotate_bytes;
}

static void
audit_put(struct audit *audit, struct audit_waiting *waiting)
{
	struct audit_record *record = &waiting->record;

	waiting->audit = audit;
	waiting->writing.write = write_record;
	waiting->writing.write_now = write_record_now;
	waiting->writing.written = on_record;
	waiting->writing.bytes = strlen(record->members) +
				 (record->line ? strlen(record->line) : 0) +
				 (record->shown ? strlen(record->shown) : 0);
	record->lost = audit->lost;
	audit->lost = 0;
	record->rotates = is_to_rotate(audit);
	if (record->rotates) {
		audit->state.file_bytes = 0;	/* until the writer reports what it is */
		forget_sources(audit);
	}
	if (record->tenant && audit->budget.spend)
		audit->budget.spend(audit->budget.arg, record->tenant,
				    strlen(record->members) + CHAIN_LINE_MORE);
	writer_put(audit->writer, &waiting->writing);
}

static struct audit_waiting *
make_waiting(const struct audit *audit, enum audit_event event, const char *tenant,
	     const char *execution, json_t *more)
{
	struct audit_waiting *waiting = xcalloc(1, sizeof(*waiting));
	struct audit_record *record = &waiting->record;
	struct audit_line line;
	bool hidden;

	waiting->audit = (struct audit *)audit;
	record->event = event;
	record->tenant = tenant ? xstrdup(tenant) : NULL;
	record->execution = execution ? xstrdup(execution) : NULL;
	record->members = audit_members(event, tenant, execution, more);
	note_source(waiting, more);
	hidden = json_object_del(more, "source") == 0;
	hidden |= json_object_del(more, "output") == 0;
	if (hidden && audit->journal)
		record->shown = audit_members(event, tenant, execution, more);
	audit_make_line(&line, tenant, execution, more);
	record->line = xstrdup(line.text);
	return waiting;
}

int
audit_write_first(struct audit *audit, enum audit_event event, const char *tenant,
		  const char *execution, json_t *more, struct writing_wait *wait)
{
	struct audit_waiting *waiting;

	if (audit && tenant && audit->budget.attempt)
		audit->budget.attempt(audit->budget.arg, tenant, event);
	if (!audit || (audit_kinds[event].minor && !may_write(audit, tenant, event, true))) {
		if (audit)
			audit->counts.left_out++;
		json_decref(more);
		return 0;
	}
	if (writer_is_full(audit->writer, wait == NULL)) {
		json_decref(more);
		if (wait && audit->stops)
			return -EAGAIN;
		audit->lost++;
		return audit->stops ? -EAGAIN : 0;
	}
	if (more)
		json_decref(audit_cut_texts(more, audit->text_bytes));
	waiting = make_waiting(audit, event, tenant, execution, more);
	json_decref(more);
	if (wait && audit->stops)
		writing_wait_at(wait, &waiting->wait);
	audit_put(audit, waiting);
	if (!audit->stops)
		return 0;
	if (wait)
		return wait->place ? -EINPROGRESS : wait->error;
	return audit->state.failing ? -EIO : 0;
}

int
audit_write(struct audit *audit, enum audit_event event, const char *tenant,
	    const char *execution, json_t *more)
{
	return audit_write_first(audit, event, tenant, execution, more, NULL);
}

/* ---- start, budgets and end of the log ---- */

static void
write_look(struct writing *writing)
{
	struct audit_look *look = (struct audit_look *)(void *)writing;

	audit_log_tick(&look->audit->log);
	audit_log_state(&look->audit->log, &look->state);
}

static void
on_looked(struct writing *writing)
{
	struct audit_look *look = (struct audit_look *)(void *)writing;
	struct audit *audit = look->audit;

	take_state(audit, &look->state);
	look->runs = false;
	if (audit->late_s >= LATE_S)
		log_line(LOG_NOTICE, "audit-in-time", "after-s=%u", audit->late_s);
	audit->late_s = 0;
}

static void
on_tick(evutil_socket_t, short, void *arg)
{
	struct audit *audit = arg;

	if (audit->look.runs) {
		if (++audit->late_s == LATE_S)
			log_line(LOG_ERR, "audit-late", "waiting=%zu then=%s",
				 writer_waiting(audit->writer), audit->stops ? "wait" : "continue");
		return;
	}
	audit->look.runs = true;
	writer_put(audit->writer, &audit->look.writing);
}

int
audit_new(const struct config *config, const char *path, struct audit **audit_r,
	  struct why *why_r)
{
	struct audit *audit = xcalloc(1, sizeof(*audit));
	int r;
	const struct audit_file *file;

	if (!path)
		path = config->audit.file;
	r = audit_log_open(config, path, &audit->log, why_r);
	if (r < 0) {
		free(audit);
		return r;
	}
	audit->look = (struct audit_look){ .writing = { .write = write_look, .written = on_looked },
					   .audit = audit };
	audit->has_file = path != NULL;
	audit->journal = config->audit.journal;
	audit->source = config->audit.source;
	audit->outputs = config->audit.outputs == OUTPUTS_WHOLE;
	audit->stops = config->audit.on_failure == ON_FAILURE_STOP;
	audit->text_bytes = config->audit.text_bytes;
	audit->rotate_bytes = config->audit.rotate_bytes;
	if (config->audit.keep_bytes)
		audit->bytes_max = config->audit.keep_bytes + config->audit.rotate_bytes;
	if (audit->has_file && audit->source)
		audit->sources = xcalloc(SOURCES, sizeof(*audit->sources));
	audit_log_state(&audit->log, &audit->state);
	file = &audit->log.file;
	if (file->broken)
		audit_write(audit, AUDIT_BROKEN, NULL, NULL,
			    json_pack("{s:I}", "aside", (json_int_t)file->rotated));
	if (file->missing && audit_log_tell_replaced(&audit->log, &file->last) == 0)
		log_line(LOG_ERR, "audit-missing", "after=%" PRIu64, file->last.n - 1);
	if (file->torn)
		audit_write(audit, AUDIT_MENDED, NULL, NULL,
			    json_pack("{s:I}", "bytes", (json_int_t)file->torn));
	if (audit->has_file)
		audit_log_bound(&audit->log);
	audit_log_tick(&audit->log);
	audit_log_state(&audit->log, &audit->state);
	*audit_r = audit;
	return 0;
}

int
audit_start(struct audit *audit, struct event_base *base)
{
	static const struct timeval second = { 1, 0 };

	audit->tick = xalloc_check(event_new(base, -1, EV_PERSIST, on_tick, audit));
	evtimer_add(audit->tick, &second);
	return writer_new(base, "audit", &audit->writer);
}

void
audit_free(struct audit *audit)
{
	if (!audit)
		return;
	if (audit->tick)
		event_free(audit->tick);
	if (!writer_free(audit->writer))
		return;
	audit_log_close(&audit->log);
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
	return audit && (audit->state.failing || audit->late_s >= LATE_S);
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
	if (is_to_rotate(audit))
		forget_sources(audit);
	slot = source_slot(audit, sha256);
	if (slot->n && memcmp(slot->sha256, sha256, CHAIN_DIGITS) == 0) {
		json_object_set_new(more, "source_record", json_integer((json_int_t)slot->n));
		return;
	}
	cut = audit_cut_at(text, len, audit->text_bytes);
	json_object_set_new(more, "source", json_stringn(text, cut));
	if (cut < len)
		json_object_set_new(more, "source_bytes", json_integer((json_int_t)len));
}

void
audit_add_output(const struct audit *audit, json_t *more, const char *name, const char *text,
		 size_t len, uint64_t bytes)
{
	json_t *whole = json_object_get(more, "output");
	char hash[CHAIN_DIGITS + 1], key[32];

	if (len == 0)
		return;
	snprintf(key, sizeof(key), "%s_bytes", name);
	json_object_set_new(more, key, json_integer((json_int_t)bytes));
	chain_hash(text, len, hash);
	snprintf(key, sizeof(key), "%s_sha256", name);
	json_object_set_new(more, key, json_string(hash));
	if (!audit->outputs || !audit->has_file)
		return;
	if (!whole)
		json_object_set_new(more, "output", whole = json_object());
	json_object_set_new(whole, name,
			    json_stringn(text, audit_cut_at(text, len, audit->text_bytes)));
}

void
audit_count(const struct audit *audit, struct audit_counts *counts_r)
{
	*counts_r = audit ? audit->counts : (struct audit_counts){ .written = 0 };
	if (!audit)
		return;
	counts_r->lost = audit->state.lost + audit->lost;
	counts_r->dropped = audit->state.dropped;
	if (!audit->has_file)
		return;
	counts_r->file_bytes = audit->state.rotated_bytes + audit->state.file_bytes;
	counts_r->file_bytes_max = audit->bytes_max;
	counts_r->disk_free_bytes = audit->state.disk_free_bytes;
}
