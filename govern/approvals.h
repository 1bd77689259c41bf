/* SPDX-License-Identifier: Apache-2.0 */
/* Approvals: requests that a person has to decide before something is done, and the decisions. A
 * request belongs to one tenant and has items. An item is a text that names exactly what is
 * approved: "package NAME==VERSION HASH from URL", or "run_script SHA256". Granted items are
 * remembered for the tenant. If [admin] approvals names a file, requests and decisions outlive the
 * service.
 *
 * A request is decided once: it is granted, refused, or expired, if it was not decided in time. A
 * refusal is in force for [policy] denied_seconds: meanwhile the same request is denied without
 * asking a person. During that time an approver can still grant it.
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
struct writing_wait;

#define APPROVALS_PER_TENANT 64		/* requests that wait for a decision, or whose refusal is in
					 * force */
#define APPROVAL_ITEMS_MAX 4096		/* of one request */
#define APPROVAL_SHOWN_MAX (1024 * 1024)	/* bytes that one request shows, as JSON */
#define APPROVALS_SHOWN_PER_TENANT (16 * 1024 * 1024)	/* bytes that a tenant's requests show */
/* Past requests of a tenant, which grant and deny nothing: further ones are forgotten, the oldest
 * first. */
#define APPROVALS_PAST_PER_TENANT 256
#define APPROVALS_PAST_SHOWN (4 * 1024 * 1024)	/* bytes that they show */
#define APPROVAL_ID_MAX 31		/* bytes */

enum approval_state {
	APPROVAL_PENDING,
	APPROVAL_GRANTED,
	APPROVAL_REFUSED,
	APPROVAL_EXPIRED,
};

/* The name of a state, "pending" ... */
const char *approval_state_name(enum approval_state state);

/* The functions that give the subject and the configuration of a principal. A subject is borrowed
 * for the current call. */
struct approvals_policy {
	const struct policy_subject *(*subject)(void *arg, const char *principal);
	const struct config *(*config)(void *arg, const char *principal);	/* held: config_free
										 */
	void *arg;
};

/* Reads the file. file NULL: approvals end with the process. audit: borrowed, may be NULL. 0, or
 * -errno with why_r. */
int approvals_new(const char *file, struct audit *audit, struct approvals **approvals_r,
		  struct why *why_r);

/* To be called before the first request. base: borrowed, for the timer of requests that expire. */
void approvals_start(struct approvals *approvals, struct event_base *base,
		     const struct approvals_policy *policy);

/* From now on a thread writes the file (govern/writer.h has the order of start and fences). 0 or
 * -errno. */
int approvals_start_thread(struct approvals *approvals);
void approvals_free(struct approvals *approvals);	/* NULL is fine */

/* Waits until all that has changed is in the file. 0: it is, or there is no file. -EINPROGRESS:
 * wait->on_written follows. Another -errno: it cannot be written now, and a restart may not know
 * it. */
int approvals_sync(struct approvals *approvals, struct writing_wait *wait);

/* Was every one of the items granted to the tenant, and not revoked? n 0: yes. */
bool approvals_has(const struct approvals *approvals, const char *tenant,
		   const char *const *item, size_t n);

/* Uses up a grant that is valid once. 1: approvals_sync has to follow before what was granted is
 * done; if that fails, the grant is there again. 0: there is none; or -errno: this cannot be
 * written down, and the grant is still there. */
int approvals_use(struct approvals *approvals, const char *tenant, const char *item);

struct approval_decision {
	enum approval_state state;
	const char *by, *why;		/* who, and the reason; NULL: none */
	int64_t at, denied_until;	/* seconds since the epoch; denied_until 0: none */
	bool for_run;			/* a call of a tool was granted, and so are all further
					 * calls of this tool until the run ends; only the watchers
					 * of the request are told of this */
};

/* Writes why a request was not granted: that an approver has refused what is named, or that nobody
 * has decided in time; and the approver's reason. */
void approval_say_decision(const struct approval_decision *decision, const char *what, char *text_r,
			   size_t size);

/* approval_request.tool of a request about a call of another server's tool. Only such a request can
 * be granted for a run (for_run). */
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

/* Makes a request, or finds the tenant's pending request about the same items. on_decided: called
 * once from the loop; NULL: the caller does not wait. 0. Or, with why_r, -EACCES: as
 * approvals_check_denied; -EDQUOT: the tenant has too many requests, or they show too much; -E2BIG:
 * the request has too many items, or too much text for a person; -EINVAL: it has a NUL byte, which
 * no terminal shows; -EIO: the file cannot be written at present. */
int approvals_ask(struct approvals *approvals, const struct approval_request *request,
		  void (*on_decided)(void *arg, const struct approval_decision *decision),
		  void *arg, const struct approval **approval_r, struct why *why_r);

/* Ends the wait of a caller for a request of this tenant: on_decided with this arg is not called.
 * The request stays. */
void approvals_unwatch(struct approvals *approvals, const char *tenant, void *arg);

const char *approval_id(const struct approval *approval);	/* "a-..." */

/* Decides a request. Of decision, only state, why and for_run count. A refusal in force may be
 * turned into a grant. 0. Or, with why_r, -ENOENT: there is no such request; -EACCES: the approver
 * may not decide it (why_r is as for -ENOENT, so it does not show that the request exists);
 * -EALREADY: it is decided; -EINVAL: for_run is set, and the decision is a refusal or the request
 * is not about a call. An answer to the approver waits for approvals_sync. */
int approvals_decide(struct approvals *approvals, const char *id,
		     const struct policy_subject *approver,
		     const struct approval_decision *decision, struct why *why_r);

/* Revokes the grants of a request that are not used up. 0, and the tenant that had them, which the
 * caller frees. Or, with why_r, -ENOENT or -EACCES, as for approvals_decide; -EALREADY: it is not
 * granted, or nothing is left of the grant. An answer waits for approvals_sync. */
int approvals_revoke(struct approvals *approvals, const char *id,
		     const struct policy_subject *approver, char **tenant_r, struct why *why_r);

/* Grants the items without a request, because the client's own user has agreed
 * (policy_asks_session). for_run: as in struct approval_decision. */
void approvals_grant_by_session(struct approvals *approvals,
				const struct approval_request *request, bool for_run);

/* Lists the pending requests and the refusals in force. with_decided: all other requests, too.
 * Without operator only those that approver may decide or has made. A JSON array, oldest first,
 * without the member "shown"; the caller releases it. */
json_t *approvals_list(const struct approvals *approvals,
		       const struct policy_subject *approver, bool operator,
		       bool with_decided);

/* Calls visit for the tenant of each request that waits or whose refusal is in force, and for the
 * tenant of the request id (NULL: none), until visit returns false. A tenant may be visited more
 * than once. False: visit has returned false. */
bool approvals_each_tenant(const struct approvals *approvals, const char *id,
			   bool (*visit)(void *arg, const char *tenant), void *arg);

/* The number of requests of all tenants that wait for a decision. */
size_t approvals_pending(const struct approvals *approvals);

/* The time at which the oldest pending request was made, in seconds since the epoch; 0: there is
 * none. */
int64_t approvals_oldest(const struct approvals *approvals);

/* Describes one request completely; the caller releases the object. NULL: there is no such request,
 * or approver may not see it. operator: all requests may be seen. */
json_t *approvals_show(const struct approvals *approvals, const char *id,
		       const struct policy_subject *approver, bool operator);

/* From now on on_change is called after every change, in place of the function set before; NULL:
 * none.
 */
void approvals_on_change(struct approvals *approvals, void (*on_change)(void *arg), void *arg);

#endif
