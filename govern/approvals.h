/* SPDX-License-Identifier: Apache-2.0 */
/* Approvals: requests that a person has to decide before something is done, and the decisions. A
 * request belongs to one tenant and has items; an item is a text that names exactly what is
 * approved: "package NAME==VERSION HASH from URL", or "run_script SHA256". Granted items are
 * remembered for the tenant. If [admin] approvals names a file, all of this outlives the service.
 *
 * A request is decided once: granted, refused, or expired if it was not decided in time. A refusal
 * is in force for [policy] denied_seconds: the same request is denied without asking again. During
 * that time an approver can still grant it.
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

#define APPROVALS_PER_TENANT 64		/* that wait for a decision, or whose refusal is in force */
#define APPROVAL_ITEMS_MAX 4096		/* of one request */
#define APPROVAL_SHOWN_MAX (1024 * 1024)	/* bytes that one request shows, as JSON */
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

/* The subject and the configuration of a principal; both borrowed for the current call. */
struct approvals_policy {
	const struct policy_subject *(*subject)(void *arg, const char *principal);
	const struct config *(*config)(void *arg, const char *principal);	/* held */
	void *arg;
};

/* file NULL: approvals end with the process. audit: borrowed, may be NULL. 0, or -errno and why_r.
 */
int approvals_new(const char *file, struct audit *audit, struct approvals **approvals_r,
		  struct why *why_r);

/* Call it before the first request. base: borrowed, for the timer of requests that expire. */
void approvals_start(struct approvals *approvals, struct event_base *base,
		     const struct approvals_policy *policy);
void approvals_free(struct approvals *approvals);	/* NULL is fine */

/* Was every one of the items granted to the tenant, and not revoked? n 0: yes. */
bool approvals_has(const struct approvals *approvals, const char *tenant,
		   const char *const *item, size_t n);

/* Uses up a grant that is valid once. False: there is none. */
bool approvals_use(struct approvals *approvals, const char *tenant, const char *item);

struct approval_decision {
	enum approval_state state;
	const char *by, *why;		/* who, and the reason; NULL: none */
	int64_t at, denied_until;	/* seconds since the epoch; denied_until 0: none */
	bool for_run;			/* a call was granted, and with it all further calls of its
					 * tool until the run ends: only its watchers are told */
};

/* The tool of requests about calls of other servers' tools, which can be granted for a run. */
#define APPROVAL_OF_CALLS "tools"

struct approval_request {
	const struct policy_subject *requester;
	const struct config *config;	/* the requester's; it names the approvers */
	const char *tool;		/* "install_package" */
	const char *reason;		/* the requester's; NULL: none */
	const char *const *item;
	size_t n_items;
	bool once;			/* a grant is used up: approvals_use */
	json_t *shown;			/* an object that approvers have to see; borrowed */
};

/* Is a refusal of the same request by the same tenant in force? 0: no; -EACCES: yes, and why_r
 * gives its end and the approver's reason, quoted. */
int approvals_check_denied(const struct approvals *approvals,
			   const struct approval_request *request, struct why *why_r);

/* Asks, or finds the tenant's pending request about the same items. on_decided: called once from
 * the loop; NULL: no caller waits. 0, or with why_r: -EACCES: approvals_check_denied; -EDQUOT: too
 * many are pending or refused, or too much in them; -E2BIG: too many items, or too much text for a
 * person; -EINVAL: it has a NUL byte, which no terminal shows; -EIO: it cannot be written to the
 * file. */
int approvals_ask(struct approvals *approvals, const struct approval_request *request,
		  void (*on_decided)(void *arg, const struct approval_decision *decision),
		  void *arg, const struct approval **approval_r, struct why *why_r);

/* The caller does not want to be told any more; the request stays. */
void approvals_unwatch(struct approvals *approvals, void *arg);

const char *approval_id(const struct approval *approval);	/* "a-..." */

/* Decides a request. approver must be allowed to. decision: its state, why and for_run count. A
 * refusal in force may be turned into a grant. 0, or -ENOENT: there is no such request that they
 * may see; -EALREADY: it is decided; -EACCES: they may see but not decide it; -EINVAL: for_run, and
 * it is refused or about something else than a call; with why_r. */
int approvals_decide(struct approvals *approvals, const char *id,
		     const struct policy_subject *approver,
		     const struct approval_decision *decision, struct why *why_r);

/* Revokes the grants of that request that are not used up. Errors as for approvals_decide. */
int approvals_revoke(struct approvals *approvals, const char *id,
		     const struct policy_subject *approver, struct why *why_r);

/* The request's own user has agreed in the session (policy_asks_session): grants the items
 * without a request. for_run: as in approval_decision. */
void approvals_grant_by_session(struct approvals *approvals,
				const struct approval_request *request, bool for_run);

/* Those that approver may decide or has asked for, and the refusals that stand, oldest first, as a
 * JSON array, without what is shown; operator: all of them. with_decided: all decided ones too. To
 * be decref'd. */
json_t *approvals_list(const struct approvals *approvals,
		       const struct policy_subject *approver, bool operator,
		       bool with_decided);

/* Calls visit for the tenant of each request that waits or whose refusal is in force, and of the
 * request id (NULL: none), until it returns false. A tenant may come more than once. False: visit
 * said so. */
bool approvals_each_tenant(const struct approvals *approvals, const char *id,
			   bool (*visit)(void *arg, const char *tenant), void *arg);

/* How many wait for a decision, of all tenants. */
size_t approvals_pending(const struct approvals *approvals);

/* One request, complete; NULL: there is no such request. */
json_t *approvals_show(const struct approvals *approvals, const char *id,
		       const struct policy_subject *approver, bool operator);

/* Called after every change. One at a time; NULL: none. */
void approvals_on_change(struct approvals *approvals, void (*on_change)(void *arg), void *arg);

#endif
