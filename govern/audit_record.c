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

const struct audit_kind audit_kinds[AUDIT_EVENT_COUNT] = {
#define EVENT(event, name, priority, minor, id) [AUDIT_##event] = { name, priority, minor, id },
#include "govern/audit_events.def"
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
