/* Runs in: the supervisor.   Owns: the audit log: its file, and what was lost of it.
 * A record is made once and goes to both places; the file's comes first, because only that
 * one can say no. */
#include "supervisor/govern/audit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include <event2/event.h>
#include <systemd/sd-journal.h>

#include "policy/config.h"
#include "proto/own.h"
#include "supervisor/govern/audit_file.h"
#include "supervisor/log.h"
#include "supervisor/xalloc.h"

#define ON_FAILURE_STOP 1	/* in the order of the key's choices */

/* The ids are in systemd/mcp-pythond.catalog too, and never change. */
static const struct {
	const char *name, *message_id;
	int priority;
	const char *text;
} events[AUDIT_EVENT_COUNT] = {
	/* clang-format off */
	[AUDIT_STARTED] = { "started", "b01553c4455741318382ab9837fc2ff8", LOG_NOTICE,
		"the service started" },
	[AUDIT_STOPPED] = { "stopped", "7fb25d197ddc4a95af9fae2f3924e9ce", LOG_NOTICE,
		"the service ended" },
	[AUDIT_RELOADED] = { "reloaded", "95da365e092541e3b0c617a72dd598ec", LOG_NOTICE,
		"the configuration was read again" },
	[AUDIT_SESSION_OPENED] = { "session-opened", "e4fb18bcee2f49d0af117fd996c8152c", LOG_INFO,
		"a session began" },
	[AUDIT_SESSION_CLOSED] = { "session-closed", "c56e57a55f3f4c528d8759ce3530d19e", LOG_INFO,
		"a session ended" },
	[AUDIT_SESSION_KEPT] = { "session-kept", "e6226d68133d4d829d2862b17c3cdbf1", LOG_INFO,
		"a session was kept over a restart" },
	[AUDIT_SESSION_LOST] = { "session-lost", "2a622bbfe6f443c3aef2876d8279c437", LOG_NOTICE,
		"a session was lost by a restart" },
	[AUDIT_DENIED] = { "denied", "507940f2d48e4a469da936161bd4e5bd", LOG_WARNING,
		"policy denied a call" },
	[AUDIT_QUOTA_HIT] = { "quota-hit", "c06f3b5b2ffa4cafa133b46092176a5f", LOG_NOTICE,
		"a quota is used up" },
	[AUDIT_EXECUTION_STARTED] = { "execution-started", "4eb94ad61c424784aa22ce71996eb14e", LOG_INFO,
		"an execution was accepted" },
	[AUDIT_EXECUTION_ENDED] = { "execution-ended", "77b81cd5ef714fd8965558db710cf4f2", LOG_INFO,
		"an execution ended" },
	[AUDIT_LIMIT_HIT] = { "limit-hit", "0e5ddaef543d4373a44f9d51dc86b439", LOG_NOTICE,
		"an execution hit a limit" },
	[AUDIT_INPUT_ASKED] = { "input-asked", "c4c27f8286e54ebcb53c634fc608e857", LOG_INFO,
		"a script asked its user for input" },
	[AUDIT_INPUT_ENDED] = { "input-ended", "6b52f6fe93174603bcf1351020a0fbac", LOG_INFO,
		"what a script asked its user is over" },
	[AUDIT_APPROVAL_ASKED] = { "approval-asked", "bde0e3e7753c46daa42bb55d49a92644", LOG_NOTICE,
		"an approval was asked for" },
	[AUDIT_APPROVAL_GRANTED] = { "approval-granted", "33644728a1b243368955308a7f3cbd5f", LOG_NOTICE,
		"an approval was granted" },
	[AUDIT_APPROVAL_REFUSED] = { "approval-refused", "c7ad3344a766411abcac3f29d4a1ea50", LOG_NOTICE,
		"an approval was refused" },
	[AUDIT_APPROVAL_REVOKED] = { "approval-revoked", "1c7b184684914794b1489de5cda83b4b", LOG_NOTICE,
		"an approval was revoked" },
	[AUDIT_PACKAGE_INSTALLED] = { "package-installed", "b4b2d43b4e714bbc9d449ef3ae4e9dac", LOG_NOTICE,
		"packages were installed" },
	[AUDIT_PACKAGE_REFUSED] = { "package-refused", "8d4f031b4a4240b28154845a724e2a4c", LOG_WARNING,
		"packages were refused" },
	[AUDIT_PACKAGE_BUILT] = { "package-built", "9e62012d4f494c2fa618cedbdcc83007", LOG_NOTICE,
		"a package was built from source" },
	[AUDIT_CONNECTION] = { "connection", "e23a7f79809d469eb09c7fc340c0be63", LOG_INFO,
		"a script connected to the network" },
	[AUDIT_CONNECTION_REFUSED] = { "connection-refused", "d011b466fa09493cb6b16eb494925ccd", LOG_WARNING,
		"a script's connection was refused" },
	[AUDIT_ROTATED] = { "rotated", "48431d5ad1f44ab0b3fa387595834091", LOG_INFO,
		"the audit log goes on in a new file" },
	[AUDIT_MENDED] = { "mended", "58b459b273ac4a3b8a5ca35225252e5f", LOG_WARNING,
		"a line of the audit log that a crash had torn was taken off" },
	[AUDIT_BROKEN] = { "broken", "b6bfaa1955534b26a898dd346b9bbd7d", LOG_ERR,
		"the audit log that was there is no chain; it was put aside" },
	[AUDIT_LOST] = { "lost", "7b70d8af9f284810a4d2a6040c6c3379", LOG_ERR,
		"records of the audit log could not be written" },
	/* clang-format on */
};

struct audit {
	struct audit_file file;		/* fd -1: none */
	bool has_file, journal, source, stops;
	bool failing;
	uint64_t rotate_bytes;
	struct event *tick;		/* NULL: no loop */
	uint64_t lost_since;		/* records, since the last one that could be written */
	struct audit_counts counts;
};

const char *
audit_event_name(enum audit_event event)
{
	return events[event].name;
}

/* ---- one record ---- */

/* The members of a record as text, without braces and without source. */
static char *
make_members(enum audit_event event, const char *tenant, const char *execution,
	     json_t *more)
{
	struct timespec now;
	struct tm tm;
	char time[64];
	size_t at;
	json_t *root = xalloc_check(json_object());
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
	/* what a caller says does not stand in for what is said here */
	json_object_update_missing(root, more);
	json_object_del(root, "n");
	json_object_del(root, "prev");
	json_object_del(root, "hash");
	text = xalloc_check(json_dumps(root, JSON_COMPACT));
	members = xmemdup0(text + 1, strlen(text) - 2);
	free(text);
	json_decref(root);
	return members;
}

static struct iovec
field(const char *name, const char *value)
{
	char *text;
	int len = asprintf(&text, "%s=%s", name, value);

	if (len < 0)
		abort();
	return (struct iovec){ .iov_base = text, .iov_len = (size_t)len };
}

static void
send_to_journal(const struct audit *audit, enum audit_event event, const char *tenant,
		const char *execution, const char *members)
{
	struct iovec fields[8];
	char priority[2] = { (char)('0' + events[event].priority), '\0' };
	char message[512];
	own_mem char *record = NULL;
	int n = 0;

	snprintf(message, sizeof(message), "%s%s%s%s%s", events[event].text,
		 tenant ? ": " : "", tenant ? tenant : "", execution ? " " : "",
		 execution ? execution : "");
	if (asprintf(&record, "{%s}", members) < 0)
		abort();
	fields[n++] = field("MESSAGE", message);
	fields[n++] = field("MESSAGE_ID", events[event].message_id);
	fields[n++] = field("PRIORITY", priority);
	fields[n++] = field("MCP_EVENT", events[event].name);
	fields[n++] = field("MCP_RECORD", record);
	if (tenant)
		fields[n++] = field("MCP_TENANT", tenant);
	if (execution)
		fields[n++] = field("MCP_EXECUTION", execution);
	if (audit->has_file)
		fields[n++] = field("MCP_HASH", audit->file.last.hash);
	sd_journal_sendv(fields, n);
	while (n > 0)
		free(fields[--n].iov_base);
}

/* ---- the file ---- */

static int
append(struct audit *audit, enum audit_event event, const char *tenant,
       const char *execution, json_t *more)
{
	own_mem char *members = make_members(event, tenant, execution, more);

	return audit_file_append(&audit->file, members, strlen(members));
}

static void
rotate(struct audit *audit)
{
	json_t *more;
	int r = audit_file_rotate(&audit->file);

	if (r < 0) {
		log_line(LOG_ERR, "audit-rotate-failed", "err=%s", strerrorname_np(-r));
		return;
	}
	more = json_pack("{s:I}", "after", (json_int_t)audit->file.rotated);
	append(audit, AUDIT_ROTATED, NULL, NULL, more);
	json_decref(more);
}

/* What was lost is said before anything else is. */
static int
tell_lost(struct audit *audit)
{
	json_t *more;
	int r;

	if (audit->lost_since == 0)
		return 0;
	more = json_pack("{s:I}", "records", (json_int_t)audit->lost_since);
	r = append(audit, AUDIT_LOST, NULL, NULL, more);
	if (r == 0) {
		send_to_journal(audit, AUDIT_LOST, NULL, NULL, "");
		audit->lost_since = 0;
	}
	json_decref(more);
	return r;
}

static int
write_to_file(struct audit *audit, enum audit_event event, const char *tenant,
	      const char *execution, json_t *more)
{
	int r;

	if (!audit->has_file)
		return 0;
	if ((uint64_t)audit->file.size >= audit->rotate_bytes)
		rotate(audit);
	r = tell_lost(audit);
	if (r == 0)
		r = append(audit, event, tenant, execution, more);
	if (r < 0) {
		if (!audit->failing)
			log_line(LOG_ERR, "audit-failed", "err=%s then=%s",
				 strerrorname_np(-r), audit->stops ? "stop" : "continue");
		audit->lost_since++;
		audit->counts.lost++;
	}
	audit->failing = r < 0;
	return r;
}

int
audit_write(struct audit *audit, enum audit_event event, const char *tenant,
	    const char *execution, json_t *more)
{
	int r;

	if (!audit) {
		json_decref(more);
		return 0;
	}
	r = write_to_file(audit, event, tenant, execution, more);
	if (audit->journal) {
		own_mem char *members = NULL;

		json_object_del(more, "source");
		members = make_members(event, tenant, execution, more);
		send_to_journal(audit, event, tenant, execution, members);
	}
	json_decref(more);
	if (r == 0)
		audit->counts.written++;
	return audit->stops ? r : 0;
}

/* ---- from its beginning to its end ---- */

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct audit *audit = arg;

	(void)fd;
	(void)what;
	audit_file_flush(&audit->file);
}

static void
tell_found(struct audit *audit)
{
	if (audit->file.broken)
		audit_write(audit, AUDIT_BROKEN, NULL, NULL,
			    json_pack("{s:I}", "aside", (json_int_t)audit->file.rotated));
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
	audit->journal = config->audit.journal;
	audit->source = config->audit.source;
	audit->stops = config->audit.on_failure == ON_FAILURE_STOP;
	audit->rotate_bytes = config->audit.rotate_bytes;
	if (!path)
		path = config->audit.file;
	if (path)
		r = audit_file_open(path, config->audit.sync, &audit->file, why_r);
	if (r < 0) {
		free(audit);
		return r;
	}
	audit->has_file = path != NULL;
	tell_found(audit);
	*audit_r = audit;
	return 0;
}

void
audit_start(struct audit *audit, struct event_base *base)
{
	static const struct timeval second = { 1, 0 };

	if (!audit->has_file || audit->file.sync)
		return;
	audit->tick = xalloc_check(event_new(base, -1, EV_PERSIST, on_tick, audit));
	evtimer_add(audit->tick, &second);
}

void
audit_free(struct audit *audit)
{
	if (!audit)
		return;
	if (audit->tick)
		event_free(audit->tick);
	audit_file_close(&audit->file);
	free(audit);
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
audit_count(const struct audit *audit, struct audit_counts *counts_r)
{
	*counts_r = audit ? audit->counts : (struct audit_counts){ .written = 0 };
}
