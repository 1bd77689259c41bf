/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor: its loop, and the writer of the audit log.   Owns: nothing. */
#include "govern/audit_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/utf8.h"
#include "base/xalloc.h"
#include "policy/chain.h"
#include "policy/shown.h"

/* The ids are in systemd/mcp-pythond.catalog too, and never change. */
const struct audit_kind audit_kinds[AUDIT_EVENT_COUNT] = {
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
	[AUDIT_ALARM_RAISED] = { "alarm-raised", LOG_WARNING, false,
		"3f6d0c2a9b1e4f57a8c4d2e96b705f18" },
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
	[AUDIT_LOCAL_FILE_DECIDED] = { "local-file-decided", LOG_NOTICE, false,
		"2399b9ca8ea74e0b9ba783bf80e66332" },
	[AUDIT_LOCAL_FILE_ENDED] = { "local-file-ended", LOG_NOTICE, false,
		"1d961fe828c4433c975cd3db25146f03" },
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

const char *
audit_event_name(enum audit_event event)
{
	return audit_kinds[event].name;
}

/* ---- texts ---- */

/* The length of a text after it is cut to most bytes, if it is longer, in whole characters. */
size_t
audit_cut_at(const char *text, size_t len, size_t most)
{
	return len <= most ? len : most - utf8_begun(text, most);
}

/* Cuts each text that is longer than most, and notes its length and hash. */
json_t *
audit_cut_texts(json_t *value, size_t most)
{
	const char *text = json_string_value(value), *key;
	char hash[CHAIN_DIGITS + 1];
	size_t len, i;
	json_t *one;

	if (text && (len = json_string_length(value)) > most) {
		chain_hash(text, len, hash);
		return json_sprintf("%.*s... (%zu bytes, SHA-256 %s)",
				    (int)audit_cut_at(text, len, most), text, len, hash);
	}
	if (json_is_object(value))
		json_object_foreach(value, key, one)
			if (json_is_object(one) || json_is_array(one) ||
			    json_string_length(one) > most)
				json_object_set_new(value, key, audit_cut_texts(one, most));
	json_array_foreach(value, i, one)
		json_array_set_new(value, i, audit_cut_texts(one, most));
	return json_incref(value);
}

/* ---- one record ---- */

/* The members of a record as text, without braces; in ASCII, because people read it too. */
char *
audit_members(enum audit_event event, const char *tenant, const char *execution,
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
	json_object_set_new(root, "event", json_string(audit_kinds[event].name));
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

/* A pair that does not fit is left out. */
static void
add_pair(struct audit_line *line, const char *key, const char *value)
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
void
audit_make_line(struct audit_line *line, const char *tenant, const char *execution, json_t *more)
{
	const char *key;
	json_t *value;

	*line = (struct audit_line){ .len = 0 };
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
