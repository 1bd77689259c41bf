/* SPDX-License-Identifier: Apache-2.0 */
/* Approvals: what a person has to agree to before it is done, who was asked, and what was
 * said. A request is of one tenant and about items; an item is a text that names exactly what
 * is approved: "package NAME==VERSION HASH from URL", or "run_script SHA256". What was granted is
 * remembered by tenant and item. All of it outlives the service where [admin] approvals names
 * a file.
 *
 * A request is decided once: granted, refused, or over when it was not decided in time. A refusal
 * stands for [policy] denied_seconds: the same request is denied, and nobody is asked again. An
 * approver can turn it round while it stands, by granting the request after all.
 */
#ifndef GOVERN_APPROVALS_H
#define GOVERN_APPROVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "policy/rules.h"

struct approval;
struct approvals;
struct audit;
struct approval_request;
struct config;
struct event_base;
struct why;

#define APPROVALS_PER_TENANT 64		/* that wait for a decision, or whose refusal stands */
#define APPROVAL_ITEMS_MAX 4096		/* of one request */
#define APPROVAL_SHOWN_MAX (1024 * 1024)	/* bytes of what one shows, as JSON */
#define APPROVALS_SHOWN_PER_TENANT (16 * 1024 * 1024)	/* ... of all of them */
#define APPROVAL_ID_MAX 31		/* bytes */

enum approval_state {
	APPROVAL_PENDING,
	APPROVAL_GRANTED,
	APPROVAL_REFUSED,
	APPROVAL_EXPIRED,
};

/* "pending" ... */
const char *approval_state_name(enum approval_state state);

/* Who a principal is, and what is in force for it; both borrowed for the moment. */
struct approvals_policy {
	const struct policy_subject *(*subject)(void *arg, const char *principal);
	const struct config *(*config)(void *arg, const char *principal);	/* held */
	void *arg;
};

/* file: NULL: nothing outlives the process. audit: borrowed, may be NULL. 0, or -errno and
 * why_r. */
int approvals_new(const char *file, struct audit *audit, struct approvals **approvals_r,
		  struct why *why_r);

/* Before anybody asks or decides. base: borrowed, for the time when requests are over. */
void approvals_start(struct approvals *approvals, struct event_base *base,
		     const struct approvals_policy *policy);
void approvals_free(struct approvals *approvals);	/* NULL is fine */

/* Was every one of the items granted to the tenant, and not revoked? n 0: yes. */
bool approvals_has(const struct approvals *approvals, const char *tenant,
		   const char *const *item, size_t n);

/* Takes a grant that is good once. False: there is none. */
bool approvals_use(struct approvals *approvals, const char *tenant, const char *item);

struct approval_request {
	const struct policy_subject *requester;
	const struct config *config;	/* the requester's; whom it names may decide */
	const char *tool;		/* "install_package" */
	const char *reason;		/* the requester's; NULL: none */
	const char *const *item;
	size_t n_items;
	bool once;			/* a grant is used up: approvals_use */
	json_t *shown;			/* what an approver has to see: an object; borrowed */
};

/* Does a refusal of the same request by the same tenant stand? 0: no; -EACCES: yes, and why_r says
 * until when, and the approver's reason, quoted. */
int approvals_check_denied(const struct approvals *approvals,
			   const struct approval_request *request, struct why *why_r);

/* Asks, or finds the tenant's pending request about the same items. on_decided: called once
 * from the loop, NULL: nobody waits. 0, or with why_r: -EACCES: approvals_check_denied;
 * -EDQUOT: too many are pending or refused, or too much in them; -E2BIG: too many items, or more
 * than anybody would read; -EINVAL: a NUL byte is in it, which no terminal shows; -EIO: it cannot
 * be written down. */
int approvals_ask(struct approvals *approvals, const struct approval_request *request,
		  void (*on_decided)(void *arg, enum approval_state state, const char *reason),
		  void *arg, const struct approval **approval_r, struct why *why_r);

/* The caller does not want to be told any more; the request stays. */
void approvals_unwatch(struct approvals *approvals, void *arg);

const char *approval_id(const struct approval *approval);	/* "a-..." */

/* By approver, who must be allowed to. reason: NULL: none. A refusal that stands may be turned into
 * a grant. 0, or -ENOENT: there is no such request that they may see; -EALREADY: it is decided;
 * -EACCES: they may see but not decide it; with why_r. */
int approvals_decide(struct approvals *approvals, const char *id,
		     const struct policy_subject *approver, bool grant, const char *reason,
		     struct why *why_r);

/* Takes back what was granted by that request, as far as it is not used up. Errors likewise. */
int approvals_revoke(struct approvals *approvals, const char *id,
		     const struct policy_subject *approver, struct why *why_r);

/* The request's own user has agreed in the session (policy_asks_session): grants the items
 * without a request. */
void approvals_grant_by_session(struct approvals *approvals,
				const struct approval_request *request);

/* Those that approver may decide or has asked for, and the refusals that stand, oldest first, as a
 * JSON array, without what is shown; operator: all of them. with_decided: all decided ones too. To
 * be decref'd. */
json_t *approvals_list(const struct approvals *approvals,
		       const struct policy_subject *approver, bool operator,
		       bool with_decided);

/* Calls visit for the tenant of each request that waits or whose refusal stands, and of the
 * request id (NULL: none), until it returns false. A tenant may come more than once. False: visit
 * said so. */
bool approvals_each_tenant(const struct approvals *approvals, const char *id,
			   bool (*visit)(void *arg, const char *tenant), void *arg);

/* How many wait for a decision, of all tenants. */
size_t approvals_pending(const struct approvals *approvals);

/* One of them with all there is; NULL: there is none of them. */
json_t *approvals_show(const struct approvals *approvals, const char *id,
		       const struct policy_subject *approver, bool operator);

/* Called after every change. One at a time; NULL: none. */
void approvals_on_change(struct approvals *approvals, void (*on_change)(void *arg), void *arg);

#endif
