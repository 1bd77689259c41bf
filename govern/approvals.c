/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: requests for approvals, and the decisions.
 * The state in memory is the truth, and the file follows it. What a crash must not undo waits for
 * the file: the use of a grant, before what it allows; a decision, before its approver has an
 * answer. */
#include "govern/approvals.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/fair.h"
#include "base/id.h"
#include "base/log.h"
#include "base/quote.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "govern/approvals_file.h"
#include "govern/approvals_parts.h"
#include "govern/audit.h"
#include "policy/config.h"

#define ALL_PART 16	/* of the machine's memory, for what all requests show */

const char *
approval_id(const struct approval *approval)
{
	return approval->id;
}

void
approval_say_decision(const struct approval_decision *decision, const char *what, char *text_r,
		      size_t size)
{
	const char *reason = decision->why;
	char said[320];

	quote_word(said, sizeof(said), reason ? reason : "", reason ? strlen(reason) : 0);
	snprintf(text_r, size, decision->state == APPROVAL_EXPIRED
		 ? "no approver decided about %s in time%s%s" : "an approver refused %s%s%s", what,
		 reason ? "; the approver's reason: " : "", reason ? said : "");
}

/* Ends the requests that have expired, and sets the timer for the next one. */
static void approvals_expire(struct approvals *approvals);

/* A request expires then; at INT64_MAX none does. */
static void
approvals_await(struct approvals *approvals, int64_t due)
{
	int64_t now = clock_boot_s();
	struct timeval wait = { .tv_sec = due > now ? (time_t)(due - now) : 0 };

	if (due >= approvals->next_due)
		return;
	approvals->next_due = due;
	if (approvals->timer)
		evtimer_add(approvals->timer, &wait);
}

/* ---- the file ---- */

static struct approvals_change *
change_of(struct writing *writing)
{
	return (struct approvals_change *)(void *)writing;
}

static void
write_change(struct writing *writing)
{
	struct approvals_change *change = change_of(writing);
	struct approvals_file *file = &change->approvals->file;
	size_t len = change->text ? strlen(change->text) : 0;

	if (change->whole)
		change->error = approvals_file_replace(file, change->text, len);
	else if (change->text)
		change->error = approvals_file_append(file, change->text, len);
	else
		approvals_file_look(file);
	if (change->error == 0 && file->behind)
		change->error = -EIO;
}

static void
on_changed(struct writing *writing)
{
	struct approvals_change *change = change_of(writing);
	struct approvals *approvals = change->approvals;
	struct writing_wait *wait = change->wait;
	bool at_once = writing->at_once;
	int error = change->error;

	if (error < 0 && !approvals->failing)
		log_line(LOG_ERR, "approvals-failed", "err=%s", strerrorname_np(-error));
	approvals->failing = error < 0;
	approvals->behind |= error < 0;
	if (change->used)
		change->used->changes--;
	if (change->used && error < 0)
		change->used->over = false;
	free(change->text);
	free(change);
	writing_end_wait(wait, error, at_once);
}

/* Gives the writer a line, which is freed, or all of the file if that is behind. line NULL: only
 * waits, or looks at the file. used, wait: as in struct approvals_change. */
static void
put_change(struct approvals *approvals, json_t *line, struct approval *used,
	   struct writing_wait *wait)
{
	struct approvals_change *change;
	own_mem char *text = line ? xalloc_check(json_dumps(line, JSON_COMPACT)) : NULL;

	json_decref(line);
	if (approvals->file.path == NULL)
		return;
	change = xcalloc(1, sizeof(*change));
	change->writing = (struct writing){ .write = write_change, .written = on_changed };
	change->approvals = approvals;
	change->whole = approvals->behind;
	approvals->behind = false;
	if (change->whole)
		change->text = approvals_whole(approvals);
	else if (text)
		change->text = xasprintf("%s\n", text);
	change->writing.bytes = change->text ? strlen(change->text) : 0;
	change->used = used;
	if (used)
		used->changes++;
	if (wait)
		writing_wait_at(wait, &change->wait);
	writer_put(approvals->writer, &change->writing);
}

/* What has changed in memory follows in the file. A line that finds no room there comes with the
 * next whole file. */
static void
write_down(struct approvals *approvals, json_t *line)
{
	if (writer_is_full(approvals->writer, true)) {
		json_decref(line);
		approvals->behind = true;
		return;
	}
	put_change(approvals, line, NULL, NULL);
}

int
approvals_sync(struct approvals *approvals, struct writing_wait *wait)
{
	if (!approvals->file.path)
		return 0;
	if (writer_is_full(approvals->writer, true))
		return -EAGAIN;
	put_change(approvals, NULL, NULL, wait);
	return wait->place ? -EINPROGRESS : wait->error;
}

/* Looks at the file, or writes all of it again if it is behind. */
static void
look_at_file(struct approvals *approvals)
{
	if (writer_waiting(approvals->writer) == 0)
		put_change(approvals, NULL, NULL, NULL);
}

static void
approvals_on_look(evutil_socket_t, short, void *arg)
{
	look_at_file(arg);
}

static void
approvals_changed(struct approvals *approvals)
{
	if (approvals->on_change)
		approvals->on_change(approvals->on_change_arg);
}

static void
tell_audit(struct approvals *approvals, enum audit_event event, const struct approval *approval,
	   const struct approval_decision *decision)
{
	const char *by = decision->by, *reason = decision->why;
	json_t *items = json_array();
	json_t *more;

	for (size_t i = 0; i < approval->n_items; i++)
		json_array_append_new(items, json_string(approval->item[i]));
	more = json_pack("{s:s,s:s,s:o}", "approval", approval->id, "tool", approval->tool,
			 "items", items);
	if (by)
		json_object_set_new(more, "by", json_string(by));
	if (reason)
		json_object_set_new(more, "reason", json_string(reason));
	if (decision->for_run)
		json_object_set_new(more, "for_run", json_true());
	audit_write(approvals->audit, event, approval->tenant, NULL, more);
}

/* ---- the right to decide ---- */

static bool
may_decide(const struct approvals *approvals, const struct approval *approval,
	   const struct policy_subject *approver)
{
	const struct approvals_policy *policy = &approvals->policy;
	const struct config *config;
	bool may;

	if (!policy->config)
		return false;
	config = policy->config(policy->arg, approval->tenant);
	may = policy_may_approve(config, approver,
				 policy->subject(policy->arg, approval->tenant));
	config_free(config);
	return may;
}

/* ---- grants ---- */

static bool
has_item(const struct approval *approval, const char *item)
{
	for (size_t i = 0; i < approval->n_items; i++)
		if (strcmp(approval->item[i], item) == 0)
			return true;
	return false;
}

static struct approval *
find_grant(const struct approvals *approvals, const char *tenant, const char *item, bool once)
{
	struct approval *approval;

	APPROVALS_FOREACH(approval, approvals, tenant)
		if (approval->state == APPROVAL_GRANTED && !approval->over &&
		    approval->once == once && has_item(approval, item))
			return approval;
	return NULL;
}

bool
approvals_has(const struct approvals *approvals, const char *tenant, const char *const *item,
	      size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!find_grant(approvals, tenant, item[i], false))
			return false;
	return true;
}

int
approvals_use(struct approvals *approvals, const char *tenant, const char *item)
{
	struct approval *approval = find_grant(approvals, tenant, item, true);

	if (!approval)
		return 0;
	if (writer_is_full(approvals->writer, false))
		return -EAGAIN;
	approval->over = true;
	put_change(approvals, json_pack("{s:s,s:s}", "do", "use", "id", approval->id), approval,
		   NULL);
	if (!approval->over)
		return -EIO;
	approvals_changed(approvals);
	return 1;
}

/* ---- the past ---- */

/* Was the request denied, and is the denial still in force? */
static bool
approvals_stands(const struct approval *approval)
{
	return approval->state == APPROVAL_REFUSED && approval->denied_due > clock_boot_s();
}

/* Can it be decided? It waits, or it is a denial in force, which an approver can still grant. */
static bool
approvals_is_current(const struct approval *approval)
{
	return approval->state == APPROVAL_PENDING || approvals_stands(approval);
}

static bool
is_past(const struct approval *approval)
{
	return !approvals_is_current(approval) && approval->changes == 0 &&
	       (approval->state != APPROVAL_GRANTED || approval->over);
}

/* Forgets past requests of the tenant, if it has too many. A client whose user decides in the
 * session can make any number. */
static void
forget_past(struct approvals *approvals, const char *tenant)
{
	struct approval *approval, *older;
	size_t n = 0, bytes = 0;

	if (approvals->busy > 0)
		return;
	approval = approvals_first(approvals, tenant);
	approval = approval ? TAILQ_LAST(&approval->place->list, approvals_of_tenant) : NULL;
	for (; approval; approval = older) {
		older = TAILQ_PREV(approval, approvals_of_tenant, of_tenant);
		if (!is_past(approval))
			continue;
		bytes += approval->shown_bytes;
		if (++n <= APPROVALS_PAST_PER_TENANT && bytes <= APPROVALS_PAST_SHOWN)
			continue;
		approvals_remove(approvals, approval);
		approvals->forgotten++;
	}
	if (approvals->forgotten < APPROVALS_PAST_PER_TENANT)
		return;
	approvals->forgotten = 0;
	approvals->behind = true;	/* of memory, which has less */
}

/* ---- asking ---- */

static bool
is_about(const struct approval *approval, const struct approval_request *request)
{
	if (approval->n_items != request->n_items ||
	    strcmp(approval->tenant, request->requester->principal) != 0 ||
	    strcmp(approval->tool, request->tool) != 0)
		return false;
	for (size_t i = 0; i < request->n_items; i++)
		if (strcmp(approval->item[i], request->item[i]) != 0)
			return false;
	return true;
}

int
approvals_check_denied(const struct approvals *approvals, const struct approval_request *request,
		       struct why *why_r)
{
	const struct approval *approval;
	char until[32], reason[300];
	struct tm tm;

	APPROVALS_FOREACH(approval, approvals, request->requester->principal)
		if (approvals_stands(approval) && is_about(approval, request))
			break;
	if (!approval)
		return 0;
	gmtime_r(&(time_t){ approval->denied_until }, &tm);
	strftime(until, sizeof(until), "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (!approval->why)
		return why_say(why_r, -EACCES, "", "an approver has refused this (%s), which "
			       "stands until %s; the same call is denied until then", approval->id,
			       until);
	quote_word(reason, sizeof(reason), approval->why, strlen(approval->why));
	return why_say(why_r, -EACCES, "", "an approver has refused this (%s), which stands until "
		       "%s; the same call is denied until then. The approver's reason: %s",
		       approval->id, until, reason);
}

/* Does a string in value, a key or a text, hold a NUL byte? The approver's view would end there. */
static bool
holds_nul(const json_t *value)
{
	const json_t *item;
	const char *key;
	size_t i, len;

	if (json_is_string(value))
		return strlen(json_string_value(value)) != json_string_length(value);
	json_array_foreach((json_t *)value, i, item)
		if (holds_nul(item))
			return true;
	json_object_keylen_foreach((json_t *)value, key, len, item)
		if (strlen(key) != len || holds_nul(item))
			return true;
	return false;
}

static size_t
shown_bytes(const struct approval_request *request)
{
	return request->shown ? json_dumpb(request->shown, NULL, 0, JSON_COMPACT) : 0;
}

/* Is there room for one more request, and can an approver be shown all of it? Denials in force
 * use room too, so a caller that varies a denied call cannot ask without end. */
static int
approvals_check(const struct approvals *approvals, const struct approval_request *request,
		struct why *why_r)
{
	const struct approval *approval;
	size_t n = 0, bytes = shown_bytes(request), own = 0, all;

	if (request->n_items == 0 || request->n_items > APPROVAL_ITEMS_MAX)
		return why_say(why_r, -E2BIG, "", "an approval is about 1 to %d items",
			       APPROVAL_ITEMS_MAX);
	if (bytes > APPROVAL_SHOWN_MAX)
		return why_say(why_r, -E2BIG, "", "this needs an approval, which can show at "
			       "most %d KiB", APPROVAL_SHOWN_MAX / 1024);
	if (request->shown && holds_nul(request->shown))
		return why_say(why_r, -EINVAL, "", "this needs an approval, and has a NUL byte, "
			       "which a person would not see");
	all = bytes;
	APPROVALS_FOREACH(approval, approvals, request->requester->principal) {
		own += approval->shown_bytes;
		if (approvals_is_current(approval)) {
			bytes += approval->shown_bytes;
			n++;
		}
	}
	if (own + all > fair_bytes(fair_memory(ALL_PART), approvals->shown_bytes, own))
		return why_say(why_r, -EDQUOT, "", "the requests for approvals of all users show too "
			       "much already: come back later");
	if (n >= APPROVALS_PER_TENANT || bytes > APPROVALS_SHOWN_PER_TENANT)
		return why_say(why_r, -EDQUOT, "", "%zu requests of yours wait for an approval "
			       "already, or were refused not long ago", n);
	return 0;
}

static struct approval *
approvals_make(const struct approval_request *request)
{
	struct approval *approval = xcalloc(1, sizeof(*approval));

	memcpy(approval->id, "a-", 2);
	id_new_short(approval->id + 2);
	approval->tenant = xstrdup(request->requester->principal);
	approval->tool = xstrdup(request->tool);
	approval->reason = request->reason ? xstrdup(request->reason) : NULL;
	approval->item = xcalloc(request->n_items, sizeof(char *));
	approval->n_items = request->n_items;
	for (size_t i = 0; i < request->n_items; i++)
		approval->item[i] = xstrdup(request->item[i]);
	approval->once = request->once;
	approval->shown = request->shown ? json_incref(request->shown) : json_object();
	approval->shown_bytes = shown_bytes(request);
	approval->created = time(NULL);
	approval->expires = approval->created + request->config->policy.approval_seconds;
	approval->due = clock_boot_s() + request->config->policy.approval_seconds;
	return approval;
}

static void
add_watcher(struct approval *approval,
	    void (*on_decided)(void *arg, const struct approval_decision *decision), void *arg)
{
	struct approval_watcher *watcher;

	if (!on_decided)
		return;
	watcher = xcalloc(1, sizeof(*watcher));
	watcher->on_decided = on_decided;
	watcher->arg = arg;
	LIST_INSERT_HEAD(&approval->watchers, watcher, link);
}

int
approvals_ask(struct approvals *approvals, const struct approval_request *request,
	      void (*on_decided)(void *arg, const struct approval_decision *decision), void *arg,
	      const struct approval **approval_r, struct why *why_r)
{
	struct approval *approval;
	int r;

	approvals_expire(approvals);
	APPROVALS_FOREACH(approval, approvals, request->requester->principal)
		if (approval->state == APPROVAL_PENDING && is_about(approval, request))
			break;
	if (!approval) {
		r = approvals_check_denied(approvals, request, why_r);
		if (r == 0)
			r = approvals_check(approvals, request, why_r);
		if (r < 0)
			return r;
		if (!audit_has_room(approvals->audit, request->requester->principal))
			return why_say(why_r, -EDQUOT, "", "quota audit_bytes_per_hour: no more "
				       "may be recorded of you within this hour");
		if (approvals->failing)
			look_at_file(approvals);
		if (approvals->failing)
			return why_say(why_r, -EIO, "", "the request for an approval cannot be "
				       "written down: tell the operator");
		forget_past(approvals, request->requester->principal);
		approval = approvals_make(request);
		approvals_add(approvals, approval);
		write_down(approvals, approvals_line_ask(approval));
		tell_audit(approvals, AUDIT_APPROVAL_ASKED, approval,
			   &(struct approval_decision){ .why = approval->reason });
		approvals_await(approvals, approval->due);
		approvals_changed(approvals);
	}
	add_watcher(approval, on_decided, arg);
	*approval_r = approval;
	return 0;
}

void
approvals_unwatch(struct approvals *approvals, const char *tenant, void *arg)
{
	struct approval *approval;
	struct approval_watcher *watcher, *next;

	APPROVALS_FOREACH(approval, approvals, tenant)
		for (watcher = LIST_FIRST(&approval->watchers); watcher; watcher = next) {
			next = LIST_NEXT(watcher, link);
			if (watcher->arg != arg)
				continue;
			LIST_REMOVE(watcher, link);
			free(watcher);
		}
}

/* ---- deciding ---- */

/* The end of a denial that begins now: until then the same request is denied. 0: it is not
 * denied. */
static int64_t
denied_until(const struct approvals *approvals, const struct approval *approval)
{
	const struct config *config = approvals->policy.config(approvals->policy.arg,
							       approval->tenant);
	uint32_t seconds = config->policy.denied_seconds;

	config_free(config);
	return seconds ? time(NULL) + seconds : 0;
}

/* Changes the state of a request; no other function does. */
static int
approvals_decide_request(struct approvals *approvals, struct approval *approval,
			 const struct approval_decision *made)
{
	const enum approval_state state = made->state;
	struct approval_decision decision = {
		.state = state,
		.by = made->by,
		.why = made->why,
		.at = time(NULL),
		.denied_until = state == APPROVAL_REFUSED ? denied_until(approvals, approval) : 0,
		.for_run = made->for_run,
	};
	static const enum audit_event events[] = {
		[APPROVAL_GRANTED] = AUDIT_APPROVAL_GRANTED,
		[APPROVAL_REFUSED] = AUDIT_APPROVAL_REFUSED,
		[APPROVAL_EXPIRED] = AUDIT_APPROVAL_REFUSED,
	};
	struct approval_watcher *watcher;

	if (!approval_is_open_for(approval, state))
		return -EALREADY;
	approval_set_decided(approval, &decision);
	write_down(approvals, approvals_line_decide(approval->id, &decision));
	tell_audit(approvals, events[state], approval, &decision);
	decision.by = approval->by;
	decision.why = approval->why;
	/* a watcher may make a new request, or leave */
	approvals->busy++;
	while ((watcher = LIST_FIRST(&approval->watchers))) {
		LIST_REMOVE(watcher, link);
		watcher->on_decided(watcher->arg, &decision);
		free(watcher);
	}
	approvals->busy--;
	approvals_changed(approvals);
	return 0;
}

static int
approvals_look_up(struct approvals *approvals, const char *id,
		  const struct policy_subject *approver, struct approval **approval_r,
		  struct why *why_r)
{
	*approval_r = approvals_find(approvals, id);
	/* No other subject learns that the request exists. */
	if (!*approval_r || !may_decide(approvals, *approval_r, approver))
		return why_say(why_r, *approval_r ? -EACCES : -ENOENT, "id",
			       "there is no request %.40s that policy lets %s decide about", id,
			       approver->principal);
	return 0;
}

int
approvals_decide(struct approvals *approvals, const char *id,
		 const struct policy_subject *approver, const struct approval_decision *decision,
		 struct why *why_r)
{
	own_mem char *by = xstrdup(approver->principal);
	struct approval_decision made = *decision;
	struct approval *approval;
	int r;

	approvals_expire(approvals);
	r = approvals_look_up(approvals, id, approver, &approval, why_r);
	if (r < 0)
		return r;
	if (!approval_is_open_for(approval, made.state) || !approvals_is_current(approval))
		return why_say(why_r, -EALREADY, "id", "%s is %s already", approval->id,
			       approval_state_name(approval->state));
	if (made.for_run && (made.state != APPROVAL_GRANTED ||
			     strcmp(approval->tool, APPROVAL_OF_CALLS) != 0))
		return why_say(why_r, -EINVAL, "for_run", "%s: only a call of a script can be "
			       "approved for the rest of its run", approval->id);
	made.by = by;
	return approvals_decide_request(approvals, approval, &made);
}

int
approvals_revoke(struct approvals *approvals, const char *id,
		 const struct policy_subject *approver, char **tenant_r, struct why *why_r)
{
	own_mem char *by = xstrdup(approver->principal);
	struct approval *approval;
	int r = approvals_look_up(approvals, id, approver, &approval, why_r);

	if (r < 0)
		return r;
	if (approval->state != APPROVAL_GRANTED || approval->over)
		return why_say(why_r, -EALREADY, "id", "%s grants nothing", approval->id);
	approval->over = true;
	write_down(approvals, json_pack("{s:s,s:s,s:s}", "do", "revoke", "id", approval->id, "by",
					by));
	tell_audit(approvals, AUDIT_APPROVAL_REVOKED, approval,
		   &(struct approval_decision){ .by = by });
	*tenant_r = xstrdup(approval->tenant);
	approvals_changed(approvals);
	return 0;
}

void
approvals_grant_by_session(struct approvals *approvals, const struct approval_request *request,
			   bool for_run)
{
	const struct approval *asked;
	struct approval *approval;

	if (!policy_asks_session(request->config) ||
	    approvals_ask(approvals, request, NULL, NULL, &asked, NULL) < 0)
		return;
	approval = approvals_find(approvals, asked->id);
	(void)approvals_decide_request(approvals, approval, &(struct approval_decision){
		.state = APPROVAL_GRANTED, .by = approval->tenant, .why = "in the session",
		.for_run = for_run });
}

/* ---- time ---- */

static void
approvals_on_expiry(evutil_socket_t, short, void *arg)
{
	approvals_expire(arg);
}

static void
approvals_expire(struct approvals *approvals)
{
	struct approval *approval;
	int64_t now = clock_boot_s(), next = INT64_MAX;

	if (now < approvals->next_due)
		return;
	approvals->busy++;
	for (approval = TAILQ_FIRST(&approvals->all); approval;) {
		struct approval *behind = TAILQ_NEXT(approval, link);

		if (approval->state == APPROVAL_PENDING && approval->due <= now)
			(void)approvals_decide_request(
				approvals, approval,
				&(struct approval_decision){ .state = APPROVAL_EXPIRED });
		else if (approval->state == APPROVAL_PENDING && approval->due < next)
			next = approval->due;
		approval = behind;
	}
	approvals->busy--;
	approvals->next_due = INT64_MAX;
	approvals_await(approvals, next);
}

/* ---- from the beginning to the end ---- */

int
approvals_new(const char *file, struct audit *audit, struct approvals **approvals_r,
	      struct why *why_r)
{
	struct approvals *approvals = xcalloc(1, sizeof(*approvals));
	int r = 0;

	TAILQ_INIT(&approvals->all);
	approvals->audit = audit;
	approvals->file.fd = -1;
	if (file)
		r = approvals_load(approvals, file, why_r);
	if (r < 0) {
		approvals_free(approvals);
		return r;
	}
	*approvals_r = approvals;
	return 0;
}

void
approvals_start(struct approvals *approvals, struct event_base *base,
		const struct approvals_policy *policy)
{
	static const struct timeval second = { 1, 0 };

	approvals->policy = *policy;
	approvals->timer = xalloc_check(evtimer_new(base, approvals_on_expiry, approvals));
	approvals->look = xalloc_check(event_new(base, -1, EV_PERSIST, approvals_on_look,
						 approvals));
	event_add(approvals->look, &second);
	approvals->base = base;
	approvals_expire(approvals);
}

int
approvals_start_thread(struct approvals *approvals)
{
	return approvals->file.path ? writer_new(approvals->base, "approvals", &approvals->writer)
				    : 0;
}

void
approvals_free(struct approvals *approvals)
{
	struct approval *approval;

	if (!approvals || !writer_free(approvals->writer))
		return;
	while ((approval = TAILQ_FIRST(&approvals->all)))
		approvals_remove(approvals, approval);
	if (approvals->timer)
		event_free(approvals->timer);
	if (approvals->look)
		event_free(approvals->look);
	if (approvals->file.fd >= 0)
		close(approvals->file.fd);
	free(approvals->file.path);
	free(approvals);
}

void
approvals_on_change(struct approvals *approvals, void (*on_change)(void *arg), void *arg)
{
	approvals->on_change = on_change;
	approvals->on_change_arg = arg;
}

/* ---- showing ---- */

/* A tenant sees its own requests, too. */
static bool
may_see(const struct approvals *approvals, const struct approval *approval,
	const struct policy_subject *who)
{
	return strcmp(approval->tenant, who->principal) == 0 ||
	       may_decide(approvals, approval, who);
}

json_t *
approvals_list(const struct approvals *approvals, const struct policy_subject *approver,
	       bool operator, bool with_decided)
{
	const struct approval *approval;
	json_t *list = json_array();

	TAILQ_FOREACH(approval, &approvals->all, link)
		if ((with_decided || approvals_is_current(approval)) &&
		    (operator || may_see(approvals, approval, approver)))
			json_array_append_new(list, approval_describe(approval, false));
	return list;
}

bool
approvals_each_tenant(const struct approvals *approvals, const char *id,
		      bool (*visit)(void *arg, const char *tenant), void *arg)
{
	const struct approval *approval;

	TAILQ_FOREACH(approval, &approvals->all, link)
		if ((approvals_is_current(approval) || (id && strcmp(approval->id, id) == 0)) &&
		    !visit(arg, approval->tenant))
			return false;
	return true;
}

size_t
approvals_pending(const struct approvals *approvals)
{
	const struct approval *approval;
	size_t n = 0;

	TAILQ_FOREACH(approval, &approvals->all, link)
		n += approval->state == APPROVAL_PENDING;
	return n;
}

int64_t
approvals_oldest(const struct approvals *approvals)
{
	const struct approval *approval;
	int64_t oldest = 0;

	TAILQ_FOREACH(approval, &approvals->all, link)
		if (approval->state == APPROVAL_PENDING &&
		    (!oldest || approval->created < oldest))
			oldest = approval->created;
	return oldest;
}

json_t *
approvals_show(const struct approvals *approvals, const char *id,
	       const struct policy_subject *approver, bool operator)
{
	const struct approval *approval = approvals_find(approvals, id);

	if (!approval || (!operator && !may_see(approvals, approval, approver)))
		return NULL;
	return approval_describe(approval, true);
}
