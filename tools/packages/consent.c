/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the items of a set, and the text that is shown of it. */
#include "tools/packages/consent.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/member.h"
#include "base/own.h"
#include "base/quote.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "govern/advisories.h"
#include "govern/gate.h"
#include "policy/advisory.h"
#include "policy/config.h"
#include "policy/packages.h"
#include "policy/shown.h"
#include "tools/sets/set.h"

#define FORM_BYTES 10000	/* bytes of a form */
#define LINE_BYTES 1024		/* bytes of a name, a version, an address */
#define REASON_LINES 20
#define REASON_BYTES 2000

struct consent {
	const struct tool_host *host;
	char **item;
	size_t n_items;
	char *reason;
	json_t *shown;
	void *waiting;			/* the user's decision is awaited; NULL: it is not */
};

/* ---- advisories ---- */

static const struct advisories *
consent_known(const struct tool_host *host)
{
	return host->gate ? gate_advisories(host->gate) : NULL;
}

json_t *
consent_advisories(const struct tool_host *host, const json_t *set)
{
	json_t *all = NULL, *one;
	const json_t *package;
	size_t i, k;

	json_array_foreach(set, i, package) {
		json_t *found = advisories_of(consent_known(host), member_text(package, "name"),
					      member_text(package, "version"));

		json_array_foreach(found, k, one) {
			json_object_set(one, "package", json_object_get(package, "name"));
			json_object_set(one, "version", json_object_get(package, "version"));
		}
		if (all)
			json_array_extend(all, found);
		else
			all = json_incref(found);
		json_decref(found);
	}
	return all;
}

void
consent_say_advisory(FILE *to, const json_t *advisory)
{
	const char *summary = member_text(advisory, "summary");
	const char *fixed = member_text(advisory, "fixed");
	char line[1024];

	quote_line(line, sizeof(line), summary, strlen(summary));
	fprintf(to, "advisory about %s %s: %s, %s: %s%s%s\n", member_text(advisory, "package"),
		member_text(advisory, "version"), member_text(advisory, "id"),
		member_text(advisory, "severity"), line,
		fixed ? "; fixed in " : "", fixed ? fixed : "");
}

/* A set that cannot be compared is refused, too. */
static int
check_advisories(const struct tool_host *host, const json_t *advisories, struct why *why_r)
{
	const struct config *config = host->config;
	enum advisory_severity least = config->packages.advisories_deny;
	const char *trouble = advisories_trouble(consent_known(host));
	const json_t *one;
	size_t i;

	if (least == ADVISORY_NEVER)
		return 0;
	if (!config->packages.advisories || !consent_known(host))
		trouble = "no list of them is configured";
	if (trouble)
		return why_say(why_r, -EACCES, "packages", "policy refuses packages that have "
			       "advisories, and these cannot be compared: %s", trouble);
	json_array_foreach(advisories, i, one)
		if (advisory_severity(one) >= least)
			return why_say(why_r, -EACCES, "packages", "policy refuses %s %s: the "
				       "advisory %s (%s) is about this version%s%s",
				       member_text(one, "package"),
				       member_text(one, "version"), member_text(one, "id"),
				       member_text(one, "severity"),
				       member_text(one, "fixed") ? "; it is fixed in " : "",
				       member_text(one, "fixed") ? member_text(one, "fixed")
								     : "");
	return 0;
}

enum policy_verdict
consent_decide(const struct tool_host *host, const json_t *set, const json_t *advisories,
	       enum policy_verdict *each_r, struct why *why_r)
{
	struct package *package = xcalloc(json_array_size(set), sizeof(*package));
	enum policy_verdict verdict;

	set_packages(set, package);
	verdict = packages_decide(host->config, package, json_array_size(set), each_r, why_r);
	free(package);
	if (verdict != POLICY_DENY && check_advisories(host, advisories, why_r) < 0)
		verdict = POLICY_DENY;
	return verdict;
}

/* ---- what is shown ---- */

/* The approver's view: everything that would be installed. */
static json_t *
consent_show(const struct tool_host *host, const json_t *set, const enum policy_verdict *each)
{
	json_t *packages = xalloc_check(json_array()), *package, *shown;
	size_t i;

	json_array_foreach(set, i, package) {
		json_t *one = xalloc_check(json_copy(package));
		const char *known = packages_look_alike(member_text(package, "name"));

		json_object_set_new(one, "approve", json_boolean(each[i] == POLICY_APPROVE));
		if (known)
			json_object_set_new(one, "looks_like", json_string(known));
		json_object_set_new(one, "advisories",
				    advisories_of(consent_known(host), member_text(package, "name"),
						  member_text(package, "version")));
		json_array_append_new(packages, one);
	}
	shown = json_pack("{s:o}", "packages", packages);
	return xalloc_check(shown);
}

struct consent *
consent_new(const struct tool_host *host, const json_t *set, const enum policy_verdict *each,
	    const char *reason)
{
	struct consent *consent = xcalloc(1, sizeof(*consent));
	const json_t *package;
	size_t i;

	consent->host = host;
	consent->item = xcalloc(json_array_size(set), sizeof(*consent->item));
	consent->reason = reason ? xstrdup(reason) : NULL;
	consent->shown = consent_show(host, set, each);
	json_array_foreach(set, i, package) {
		if (each[i] != POLICY_APPROVE)
			continue;
		consent->item[consent->n_items++] = xasprintf("package %s==%s %s from %s%s",
			member_text(package, "name"), member_text(package, "version"),
			member_text(package, "hash"), member_text(package, "index"),
			json_object_get(package, "built") ? " built from source" : "");
	}
	return consent;
}

void
consent_free(struct consent *consent)
{
	if (!consent)
		return;
	if (consent->waiting)
		approvals_unwatch(gate_approvals(consent->host->gate),
				  tenant_principal(consent->host->tenant), consent->waiting);
	for (size_t i = 0; i < consent->n_items; i++)
		free(consent->item[i]);
	free(consent->item);
	free(consent->reason);
	json_decref(consent->shown);
	free(consent);
}

static struct approvals *
consent_approvals_of(const struct consent *consent)
{
	return consent->host->gate ? gate_approvals(consent->host->gate) : NULL;
}

bool
consent_is_given(const struct consent *consent)
{
	struct approvals *approvals = consent_approvals_of(consent);

	return approvals && approvals_has(approvals, tenant_principal(consent->host->tenant),
					  (const char *const *)consent->item,
					  consent->n_items);
}

bool
consent_allows(const struct tool_host *host, const json_t *set)
{
	enum policy_verdict *each = xcalloc(json_array_size(set), sizeof(*each));
	json_auto_t *advisories = consent_advisories(host, set);
	enum policy_verdict verdict = consent_decide(host, set, advisories, each, NULL);
	struct consent *consent;
	bool allowed;

	allowed = verdict == POLICY_ALLOW;
	if (verdict == POLICY_APPROVE) {
		consent = consent_new(host, set, each, NULL);
		allowed = consent_is_given(consent);
		consent_free(consent);
	}
	free(each);
	return allowed;
}

static struct approval_request
consent_request_of(const struct consent *consent)
{
	return (struct approval_request){
		.requester = gate_subject(consent->host->gate,
					  tenant_principal(consent->host->tenant)),
		.config = consent->host->config,
		.tool = "install_package",
		.reason = consent->reason,
		.item = (const char *const *)consent->item,
		.n_items = consent->n_items,
		.shown = consent->shown,
	};
}

bool
consent_is_denied(const struct consent *consent, struct why *why_r)
{
	const struct approvals *approvals = consent_approvals_of(consent);
	struct approval_request request;

	if (!approvals)
		return false;
	request = consent_request_of(consent);
	return approvals_check_denied(approvals, &request, why_r) < 0;
}

int
consent_ask(struct consent *consent,
	    void (*on_decided)(void *arg, const struct approval_decision *decision),
	    void *arg, const struct approval **approval_r, struct why *why_r)
{
	struct approvals *approvals = consent_approvals_of(consent);
	struct approval_request request;
	int r;

	if (!approvals)
		return why_say(why_r, -EACCES, "packages", "no person can be asked here");
	request = consent_request_of(consent);
	r = approvals_ask(approvals, &request, on_decided, arg, approval_r, why_r);
	if (r == 0 && on_decided)
		consent->waiting = arg;
	return r;
}

/* ---- in the session ---- */

/* Writes a text of the set, which comes from an index or from the request. */
static void
consent_put(FILE *to, const char *before, const char *text)
{
	char line[LINE_BYTES];

	quote_line(line, sizeof(line), text ? text : "", text ? strlen(text) : 0);
	fprintf(to, "%s%s", before, line);
}

/* Each on a line of its own below its package. */
static void
consent_write_advisories(FILE *to, const json_t *package)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(package, "advisories"), i, one) {
		consent_put(to, "\n  ADVISORY ", member_text(one, "id"));
		consent_put(to, ", ", member_text(one, "severity"));
		consent_put(to, ": ", member_text(one, "summary"));
		if (member_text(one, "fixed"))
			consent_put(to, "; fixed in ", member_text(one, "fixed"));
	}
}

static void
consent_write_list(FILE *to, const struct consent *consent)
{
	const json_t *packages = json_object_get(consent->shown, "packages"), *package;
	size_t i;

	json_array_foreach(packages, i, package) {
		const char *known = member_text(package, "looks_like");

		consent_put(to, "\n", member_text(package, "name"));
		consent_put(to, " ", member_text(package, "version"));
		consent_put(to, " from ", member_text(package, "index"));
		fprintf(to, ", %" JSON_INTEGER_FORMAT " bytes",
			json_integer_value(json_object_get(package, "size")));
		consent_put(to, ", ", member_text(package, "hash"));
		if (json_object_get(package, "built"))
			fputs(" (a source, built here)", to);
		if (known)
			fprintf(to, " (WARNING: this is not the well-known %s)", known);
		consent_write_advisories(to, package);
	}
}

/* Writes the caller's own reason, after all that is known. */
static void
write_reason(FILE *to, const struct consent *consent)
{
	static const struct quote_block block = { SHOWN_MARK, QUOTE_COLUMNS, REASON_LINES,
						  REASON_BYTES };

	if (!consent->reason)
		return;
	fputs("\n\nThe reason that the caller gave, in the caller's words:\n", to);
	quote_block(to, &block, consent->reason, strlen(consent->reason));
}

bool
consent_ask_session(const struct consent *consent)
{
	const struct tool_host *host = consent->host;
	struct tool_question question = {
		.key = "packages",
		.kind = QUESTION_ELICIT,
		.schema = "{\"type\":\"object\",\"properties\":{\"allow\":{\"type\":\"boolean\","
			  "\"title\":\"Install these packages\"}},\"required\":[\"allow\"]}",
	};
	own_mem char *text = NULL;
	size_t len;
	FILE *to;
	int r;

	if (!consent_approvals_of(consent) || !policy_asks_session(host->config) ||
	    !(host->client & CLIENT_ELICITS))
		return false;
	to = xalloc_check(open_memstream(&text, &len));
	fputs("May these packages be installed for your scripts?", to);
	consent_write_list(to, consent);
	write_reason(to, consent);
	xassert(fclose(to) == 0);
	/* A user who could not see all of the form is not asked in the session. */
	question.message = text;
	r = len <= FORM_BYTES ? host->on_ask(host->arg, &question, 1, NULL) : -EFBIG;
	return r == 0;
}

bool
consent_take_reply(const struct consent *consent, const struct tool_reply *reply)
{
	struct approval_request request;

	if (reply->action != REPLY_ACCEPT ||
	    !json_is_true(json_object_get(reply->content, "allow")))
		return false;
	request = consent_request_of(consent);
	approvals_grant_by_session(consent_approvals_of(consent), &request, false);
	return true;
}
