/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor: its loop, and the thread that reads advisories.   Owns: nothing.
 * Reads:   records of OSV, from the operator's file. */
#include "policy/advisory.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/member.h"
#include "base/xalloc.h"
#include "policy/requirement.h"
#include "policy/version.h"

#define ID_BYTES 64
#define NAME_BYTES 256
#define ALIASES_SHOWN 16
#define SUMMARY_BYTES 200
#define EVENTS_OF_RANGE 1024		/* of a range */

static const char *const severities[] = {
	[ADVISORY_NEVER] = "never", [ADVISORY_LOW] = "low", [ADVISORY_MODERATE] = "moderate",
	[ADVISORY_HIGH] = "high", [ADVISORY_CRITICAL] = "critical",
};

const char *
advisory_severity_name(enum advisory_severity severity)
{
	return severities[severity];
}

/* ---- a record ---- */

static bool
is_id(const char *text)
{
	size_t len = strlen(text);

	return len > 0 && len <= ID_BYTES &&
	       strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.:") == len;
}

/* The severity as a word: that of the database or, for a malicious package, the highest. CVSS
 * vectors are left to whoever makes the file. */
static enum advisory_severity
severity_of(const json_t *record, const json_t *affected)
{
	const json_t *from[] = { json_object_get(record, "database_specific"),
				 json_object_get(affected, "database_specific") };

	if (strncmp(member_text_or_empty(record, "id"), "MAL-", 4) == 0)
		return ADVISORY_CRITICAL;
	for (size_t i = 0; i < 2; i++) {
		const char *word = member_text_or_empty(from[i], "severity");

		if (strcasecmp(word, "medium") == 0)
			return ADVISORY_MODERATE;
		for (unsigned int k = ADVISORY_LOW; k <= ADVISORY_CRITICAL; k++)
			if (strcasecmp(word, severities[k]) == 0)
				return k;
	}
	return ADVISORY_NEVER;	/* not known */
}

/* One line of at most SUMMARY_BYTES, in whole characters. */
static json_t *
summary_of(const json_t *record)
{
	const char *text = member_text_or_empty(record, "summary");
	size_t len;

	if (!*text)
		text = member_text_or_empty(record, "details");
	len = strcspn(text, "\r\n");
	if (len > SUMMARY_BYTES)
		for (len = SUMMARY_BYTES; len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80;)
			len--;
	return json_stringn(text, len);
}

static json_t *
aliases_of(const json_t *record)
{
	json_t *list = json_array(), *alias;
	size_t i;

	json_array_foreach(json_object_get(record, "aliases"), i, alias)
		if (json_is_string(alias) && is_id(json_string_value(alias)) &&
		    json_array_size(list) < ALIASES_SHOWN)
			json_array_append(list, alias);
	return list;
}

/* Ranges of other types are about commits. */
static json_t *
ranges_of(const json_t *affected)
{
	json_t *list = json_array(), *range, *events;
	size_t i;

	json_array_foreach(json_object_get(affected, "ranges"), i, range) {
		events = json_object_get(range, "events");
		if (strcmp(member_text_or_empty(range, "type"), "ECOSYSTEM") == 0 &&
		    json_is_array(events) && json_array_size(events) <= EVENTS_OF_RANGE)
			json_array_append(list, events);
	}
	return list;
}

static char *
name_of(const json_t *affected)
{
	const json_t *package = json_object_get(affected, "package");
	const char *name = member_text_or_empty(package, "name");
	char *normal;

	if (strcmp(member_text_or_empty(package, "ecosystem"), "PyPI") != 0 || !*name ||
	    strlen(name) > NAME_BYTES)
		return NULL;
	normal = xcalloc(strlen(name) + 1, 1);
	requirement_normalise(name, strlen(name), normal);
	return normal;
}

json_t *
advisory_take(const json_t *record, const json_t *affected, char **name_r)
{
	const char *id = member_text_or_empty(record, "id");
	json_t *versions = json_object_get(affected, "versions"), *advisory;

	if (!is_id(id) || json_is_string(json_object_get(record, "withdrawn")))
		return NULL;
	*name_r = name_of(affected);
	if (!*name_r)
		return NULL;
	advisory = json_pack("{s:s,s:o,s:i,s:o,s:o}", "id", id, "aliases", aliases_of(record),
			     "severity", (int)severity_of(record, affected), "summary",
			     summary_of(record), "ranges", ranges_of(affected));
	if (json_is_array(versions))
		json_object_set(advisory, "versions", versions);
	return xalloc_check(advisory);
}

/* ---- a version ---- */

struct event_read {
	enum { BOUND_FIXED, BOUND_INTRODUCED, BOUND_LAST } kind;
	bool first;			/* introduced before all versions */
	struct version version;
	const char *text;
};

static bool
advisory_read_event(const json_t *event, struct event_read *read_r)
{
	static const char *const keys[] = { "fixed", "introduced", "last_affected" };

	for (unsigned int i = 0; i < 3; i++) {
		const char *text = member_text_or_empty(event, keys[i]);

		if (!*text)
			continue;
		read_r->kind = i;
		read_r->text = text;
		read_r->first = i == BOUND_INTRODUCED && strcmp(text, "0") == 0;
		return version_read(text, strlen(text), &read_r->version) == 0;
	}
	return false;
}

/* A local build of a version counts as that version, where the bound names no local build. */
static int
compare_to_bound(const struct version *version, const struct version *bound)
{
	struct version without;

	if (*bound->local || !*version->local)
		return version_compare(version, bound);
	without = *version;
	without.local[0] = '\0';
	return version_compare(&without, bound);
}

static int
compare_events(const void *a, const void *b)
{
	const struct event_read *left = a, *right = b;
	int r = left->first || right->first ? (int)right->first - (int)left->first
					    : version_compare(&left->version, &right->version);

	return r ? r : (int)left->kind - (int)right->kind;
}

/* Is the version in the range? fixed_r: the next version that is not, or NULL. */
static bool
is_in_range(const json_t *events, const struct version *version, const char **fixed_r)
{
	struct event_read *event = xcalloc(json_array_size(events) + 1, sizeof(*event));
	size_t n = 0;
	bool in = false;

	for (size_t i = 0; i < json_array_size(events); i++)
		n += advisory_read_event(json_array_get(events, i), &event[n]);
	qsort(event, n, sizeof(*event), compare_events);
	*fixed_r = NULL;
	for (size_t i = 0; i < n; i++) {
		int r = event[i].first ? 1 : compare_to_bound(version, &event[i].version);

		if (event[i].kind == BOUND_INTRODUCED && r >= 0)
			in = true;
		else if ((event[i].kind == BOUND_FIXED && r >= 0) ||
			 (event[i].kind == BOUND_LAST && r > 0))
			in = false;
		if (event[i].kind == BOUND_FIXED && r < 0 && !*fixed_r)
			*fixed_r = event[i].text;
	}
	free(event);
	return in;
}

static bool
is_listed(const json_t *advisory, const char *text, const struct version *version)
{
	const json_t *one;
	struct version listed;
	size_t i;

	json_array_foreach(json_object_get(advisory, "versions"), i, one) {
		const char *value = json_string_value(one);

		if (value && (strcmp(value, text) == 0 ||
			      (version && version_read(value, strlen(value), &listed) == 0 &&
			       compare_to_bound(version, &listed) == 0)))
			return true;
	}
	return false;
}

bool
advisory_affects(const json_t *advisory, const char *version, json_t **found_r)
{
	const json_t *ranges = json_object_get(advisory, "ranges"), *events;
	const char *fixed = NULL, *next = NULL;
	struct version read;
	bool is_version = version_read(version, strlen(version), &read) == 0, hit = false;
	size_t i;

	json_array_foreach(ranges, i, events) {
		if (!is_version || !is_in_range(events, &read, &next))
			continue;
		hit = true;
		if (next && !fixed)
			fixed = next;
	}
	if (!hit && !is_listed(advisory, version, is_version ? &read : NULL))
		return false;
	*found_r = xalloc_check(json_pack("{s:O,s:O,s:s,s:O,s:s*}", "id",
		json_object_get(advisory, "id"), "aliases", json_object_get(advisory, "aliases"),
		"severity", json_integer_value(json_object_get(advisory, "severity")) == ADVISORY_NEVER
			? "unknown"
			: severities[json_integer_value(json_object_get(advisory, "severity"))],
		"summary", json_object_get(advisory, "summary"), "fixed", fixed));
	return true;
}

/* ---- what was found ---- */

enum advisory_severity
advisory_severity(const json_t *found)
{
	for (unsigned int i = ADVISORY_MODERATE; i <= ADVISORY_CRITICAL; i++)
		if (strcmp(member_text_or_empty(found, "severity"), severities[i]) == 0)
			return i;
	return ADVISORY_LOW;
}

static bool
has_alias(const json_t *found, const char *id)
{
	const json_t *alias;
	size_t i;

	json_array_foreach(json_object_get(found, "aliases"), i, alias)
		if (strcmp(json_string_value(alias), id) == 0)
			return true;
	return false;
}

void
advisory_add(json_t *list, json_t *found)
{
	json_t *other;
	size_t i;

	json_array_foreach(list, i, other) {
		if (!has_alias(other, member_text_or_empty(found, "id")) &&
		    !has_alias(found, member_text_or_empty(other, "id")))
			continue;
		if (strcmp(member_text_or_empty(other, "severity"), "unknown") == 0)
			json_array_set_new(list, i, found);
		else
			json_decref(found);
		return;
	}
	json_array_append_new(list, found);
}
