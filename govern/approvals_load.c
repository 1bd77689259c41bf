/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * One approval: its state, its end, and its form as JSON, which the file and lists have.
 * Reads:   the service's own file. A mistake in it is an error, and never a grant. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/trace.h"
#include "base/utf8.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "govern/approvals_file.h"
#include "govern/approvals_parts.h"

#define FIRST_LINE_MAX 80	/* bytes of a script that lists show */
#define KEEP_S (30 * 86400)	/* how long a decided request that grants nothing is kept */

static size_t
approvals_bucket_of(const char *text)
{
	return hash_text(HASH_BEGIN, text) % APPROVALS_BUCKETS;
}

struct approval *
approvals_find(const struct approvals *approvals, const char *id)
{
	struct approval *approval;

	LIST_FOREACH(approval, &approvals->ids[approvals_bucket_of(id)], by_id)
		if (id && strcmp(approval->id, id) == 0)
			break;
	return approval;
}

static struct approvals_tenant *
approvals_tenant_of(const struct approvals *approvals, const char *name)
{
	struct approvals_tenant *tenant;

	LIST_FOREACH(tenant, &approvals->tenants[approvals_bucket_of(name)], link)
		if (strcmp(tenant->name, name) == 0)
			break;
	return tenant;
}

struct approval *
approvals_first(const struct approvals *approvals, const char *tenant)
{
	const struct approvals_tenant *one = approvals_tenant_of(approvals, tenant);

	return one ? TAILQ_FIRST(&one->list) : NULL;
}

void
approvals_add(struct approvals *approvals, struct approval *approval)
{
	struct approvals_tenant *tenant = approvals_tenant_of(approvals, approval->tenant);

	if (!tenant) {
		tenant = xcalloc(1, sizeof(*tenant));
		tenant->name = xstrdup(approval->tenant);
		TAILQ_INIT(&tenant->list);
		LIST_INSERT_HEAD(&approvals->tenants[approvals_bucket_of(tenant->name)], tenant,
				 link);
	}
	approval->place = tenant;
	TAILQ_INSERT_TAIL(&tenant->list, approval, of_tenant);
	TAILQ_INSERT_TAIL(&approvals->all, approval, link);
	LIST_INSERT_HEAD(&approvals->ids[approvals_bucket_of(approval->id)], approval, by_id);
	approvals->shown_bytes += approval->shown_bytes;
}

void
approvals_remove(struct approvals *approvals, struct approval *approval)
{
	struct approvals_tenant *tenant = approval->place;

	TAILQ_REMOVE(&tenant->list, approval, of_tenant);
	TAILQ_REMOVE(&approvals->all, approval, link);
	LIST_REMOVE(approval, by_id);
	approvals->shown_bytes -= approval->shown_bytes;
	if (TAILQ_EMPTY(&tenant->list)) {
		LIST_REMOVE(tenant, link);
		free(tenant->name);
		free(tenant);
	}
	approval_free(approval);
}

const char *
approval_state_name(enum approval_state state)
{
	static const char *const names[] = { "pending", "granted", "refused", "expired" };

	return names[state];
}

void
approval_set_decided(struct approval *approval, const struct approval_decision *decision)
{
	trace_line(0, "approval=%s state=%s->%s", approval->id,
		   approval_state_name(approval->state), approval_state_name(decision->state));
	free(approval->by);
	free(approval->why);
	approval->state = decision->state;
	approval->by = decision->by ? xstrdup(decision->by) : NULL;
	approval->why = decision->why ? xstrdup(decision->why) : NULL;
	approval->decided = decision->at;
	approval->denied_until = decision->denied_until;
	approval->denied_due = clock_boot_s() + (decision->denied_until - time(NULL));
}

bool
approval_is_open_for(const struct approval *approval, enum approval_state state)
{
	return approval->state == APPROVAL_PENDING ||
	       (approval->state == APPROVAL_REFUSED && state == APPROVAL_GRANTED);
}

void
approval_free(struct approval *approval)
{
	struct approval_watcher *watcher;

	while ((watcher = LIST_FIRST(&approval->watchers))) {
		LIST_REMOVE(watcher, link);
		free(watcher);
	}
	for (size_t i = 0; i < approval->n_items; i++)
		free(approval->item[i]);
	free(approval->item);
	free(approval->tenant);
	free(approval->tool);
	free(approval->reason);
	free(approval->by);
	free(approval->why);
	json_decref(approval->shown);
	free(approval);
}

/* ---- writing ---- */

/* Adds the first line of a script that is not blank, for lists. */
static void
add_first_line(json_t *object, const json_t *shown)
{
	static const char *const keys[] = { "script", "code" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *text = json_string_value(json_object_get(shown, keys[i]));
		size_t len;

		if (!text)
			continue;
		text += strspn(text, " \t\r\n");
		len = strcspn(text, "\r\n");
		if (len > FIRST_LINE_MAX)
			len = utf8_prefix(text, FIRST_LINE_MAX);
		json_object_set_new(object, "first_line", json_stringn(text, len));
		return;
	}
}

json_t *
approval_describe(const struct approval *approval, bool all)
{
	json_t *items = json_array(), *object;

	for (size_t i = 0; i < approval->n_items; i++)
		json_array_append_new(items, json_string(approval->item[i]));
	object = xalloc_check(json_pack("{s:s,s:s,s:s,s:s,s:o,s:b,s:I,s:I,s:s*,s:s*,s:s*}",
		"id", approval->id,
		"state", approval->over ? "over" : approval_state_name(approval->state),
		"tenant", approval->tenant, "tool", approval->tool, "items", items,
		"once", approval->once,
		"created", (json_int_t)approval->created,
		"expires", (json_int_t)approval->expires,
		"reason", approval->reason, "by", approval->by, "why", approval->why));
	if (approval->decided)
		json_object_set_new(object, "decided", json_integer(approval->decided));
	if (approval->denied_until)
		json_object_set_new(object, "denied_until",
				    json_integer(approval->denied_until));
	if (all)
		json_object_set(object, "shown", approval->shown);
	else
		add_first_line(object, approval->shown);
	return object;
}

json_t *
approvals_line_ask(const struct approval *approval)
{
	json_t *line = approval_describe(approval, true);

	json_object_set_new(line, "do", json_string("ask"));
	return line;
}

json_t *
approvals_line_decide(const char *id, const struct approval_decision *decision)
{
	return json_pack("{s:s,s:s,s:s,s:s*,s:s*,s:I,s:I}", "do", "decide", "id", id, "state",
			 approval_state_name(decision->state), "by", decision->by,
			 "why", decision->why, "at", (json_int_t)decision->at,
			 "denied_until", (json_int_t)decision->denied_until);
}

/* ---- reading ---- */

struct loading {
	struct approvals *approvals;
	bool wrong;
};

static const char *
approvals_load_text_of(const json_t *line, const char *key)
{
	return json_string_value(json_object_get(line, key));
}

static bool
read_state(const char *name, enum approval_state *state_r)
{
	for (int i = APPROVAL_GRANTED; i <= APPROVAL_EXPIRED; i++)
		if (name && strcmp(approval_state_name((enum approval_state)i), name) == 0) {
			*state_r = (enum approval_state)i;
			return true;
		}
	return false;
}

static bool
load_ask(struct approvals *approvals, const json_t *line)
{
	const char *id = approvals_load_text_of(line, "id"), *tenant = approvals_load_text_of(line, "tenant");
	const char *tool = approvals_load_text_of(line, "tool"), *reason = approvals_load_text_of(line, "reason");
	const json_t *items = json_object_get(line, "items");
	json_t *shown = json_object_get(line, "shown");
	struct approval *approval;

	if (!id || strlen(id) > APPROVAL_ID_MAX || !tenant || !tool || !shown ||
	    json_array_size(items) == 0 || approvals_find(approvals, id))
		return false;
	approval = xcalloc(1, sizeof(*approval));
	strcpy(approval->id, id);
	approval->tenant = xstrdup(tenant);
	approval->tool = xstrdup(tool);
	approval->reason = reason ? xstrdup(reason) : NULL;
	approval->item = xcalloc(json_array_size(items), sizeof(char *));
	for (size_t i = 0; i < json_array_size(items); i++) {
		const char *item = json_string_value(json_array_get(items, i));

		approval->item[approval->n_items++] = xstrdup(item ? item : "");
	}
	approval->once = json_is_true(json_object_get(line, "once"));
	approval->shown = json_incref(shown);
	approval->shown_bytes = json_dumpb(shown, NULL, 0, JSON_COMPACT);
	approval->created = json_integer_value(json_object_get(line, "created"));
	approval->expires = json_integer_value(json_object_get(line, "expires"));
	approval->due = clock_boot_s() + (approval->expires - time(NULL));
	approvals_add(approvals, approval);
	return true;
}

static bool
load_decide(struct approval *approval, const json_t *line)
{
	struct approval_decision decision = {
		.by = approvals_load_text_of(line, "by"),
		.why = approvals_load_text_of(line, "why"),
		.at = json_integer_value(json_object_get(line, "at")),
		.denied_until = json_integer_value(json_object_get(line, "denied_until")),
	};

	if (!read_state(approvals_load_text_of(line, "state"), &decision.state) ||
	    !approval_is_open_for(approval, decision.state))
		return false;
	approval_set_decided(approval, &decision);
	return true;
}

static void
load_line(void *arg, const json_t *line)
{
	struct loading *loading = arg;
	const char *what = approvals_load_text_of(line, "do");
	struct approval *approval = approvals_find(loading->approvals, approvals_load_text_of(line, "id"));

	if (what && strcmp(what, "ask") == 0)
		loading->wrong |= !load_ask(loading->approvals, line);
	else if (!what || !approval)
		loading->wrong = true;
	else if (strcmp(what, "decide") == 0)
		loading->wrong |= !load_decide(approval, line);
	else if (strcmp(what, "use") == 0 || strcmp(what, "revoke") == 0)
		approval->over = true;
	else
		loading->wrong = true;
}

/* ---- a new file ---- */

static bool
still_matters(const struct approval *approval)
{
	return approval->state == APPROVAL_PENDING ||
	       (approval->state == APPROVAL_GRANTED && !approval->over) ||
	       approval->decided + KEEP_S > time(NULL);
}

static void
put_line(FILE *to, json_t *line)
{
	xassert(json_dumpf(line, to, JSON_COMPACT) == 0 && fputc('\n', to) != EOF);
	json_decref(line);
}

char *
approvals_whole(const struct approvals *approvals)
{
	const struct approval *approval;
	char *text = NULL;
	size_t len;
	FILE *to = xalloc_check(open_memstream(&text, &len));

	TAILQ_FOREACH(approval, &approvals->all, link) {
		const struct approval_decision decision = {
			.state = approval->state, .by = approval->by, .why = approval->why,
			.at = approval->decided, .denied_until = approval->denied_until,
		};

		put_line(to, approvals_line_ask(approval));
		if (approval->state != APPROVAL_PENDING)
			put_line(to, approvals_line_decide(approval->id, &decision));
		if (approval->over)
			put_line(to, json_pack("{s:s,s:s}", "do", "use", "id", approval->id));
	}
	xassert(fclose(to) == 0);
	return text;
}

int
approvals_load(struct approvals *approvals, const char *path, struct why *why_r)
{
	struct loading loading = { .approvals = approvals };
	struct approval *approval, *next;
	own_mem char *text = NULL;
	int r = approvals_file_read(path, load_line, &loading, why_r);

	if (r == 0 && loading.wrong)
		r = why_say(why_r, -EBADMSG, "approvals",
			    "[admin] approvals = %.300s: is not a file of approvals", path);
	if (r < 0)
		return r;
	for (approval = TAILQ_FIRST(&approvals->all); approval; approval = next) {
		next = TAILQ_NEXT(approval, link);
		if (still_matters(approval))
			continue;
		approvals_remove(approvals, approval);
	}
	text = approvals_whole(approvals);
	approvals->file.path = xstrdup(path);
	r = approvals_file_replace(&approvals->file, text, strlen(text));
	return r == 0 ? 0 : why_say(why_r, r, "approvals", "[admin] approvals = %.300s: %s", path,
				    strerror(-r));
}
