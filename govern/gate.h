/* SPDX-License-Identifier: Apache-2.0 */
/* The gate: the rules in force for each principal. Tools, the engine and operators ask only this
 * module. For each principal it keeps the configuration made for it (policy/config.h, config_for),
 * its name and groups on the host, and its use of quotas.
 *
 * If policy names users or groups, the host's directory of users (host/directory.h) gives the name
 * and groups of a uid. That takes time and may fail. So carriers call gate_identify, and wait,
 * before they take a request. An answer of the directory is valid for [service] identity_seconds,
 * and is renewed after half of that time. A principal that is not identified may do nothing.
 *
 * A user can become many uids: those of its subordinate ranges. So carriers do not take a peer's
 * uid for a principal: gate_owner says whose it is.
 */
#ifndef GOVERN_GATE_H
#define GOVERN_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "policy/rules.h"

struct advisories;
struct approvals;
struct audit;
struct config;
struct directory;
struct engine_observer;
struct event_base;
struct gate;
struct tenant;
struct why;

struct gate_options {
	struct event_base *base;	/* borrowed */
	const struct config *config;	/* held */
	struct audit *audit;		/* borrowed; NULL: none */
	struct approvals *approvals;	/* borrowed; NULL: calls that need an approval are denied */
	struct advisories *advisories;	/* borrowed; NULL: none */
	struct directory *directory;	/* borrowed; NULL: policy must not name users or groups of
					 * the host */
	bool lacks_uids;		/* not all uids of the host exist here (id_range.h) */
	uint64_t (*clock)(void);	/* milliseconds; NULL: clock_ms */
};

struct gate *gate_new(const struct gate_options *options);
void gate_free(struct gate *gate);		/* NULL is fine */

struct audit *gate_audit(const struct gate *gate);
struct approvals *gate_approvals(const struct gate *gate);
const struct advisories *gate_advisories(const struct gate *gate);

/* A caller that waits until a principal is identified. Zeroed: it does not wait. */
struct gate_wait {
	LIST_ENTRY(gate_wait) link;
	bool waits;
	void (*on_known)(void *arg);
	void *arg;
};

/* Is the principal identified, as far as policy needs it? 0: yes. -EINPROGRESS: the directory is
 * being asked; wait->on_known (wait NULL: the caller does not wait) is called once, from the loop,
 * and then the caller calls gate_identify again. Another -errno: the directory did not answer;
 * why_r (not NULL) has the reason, and the directory is asked again after directory_seconds. gate
 * NULL: 0. */
int gate_identify(struct gate *gate, const char *principal, struct gate_wait *wait,
		  struct why *why_r);

/* The user who is behind a uid that the kernel has named. 0, and *owner_r: uid, or the owner of the
 * range of subordinate uids that it is in. -EINPROGRESS and other errors as gate_identify;
 * -EACCES: it is no user's, and [service] unknown_uids does not allow that; -EMLINK: it may be
 * several users. Where uids are lacking, ID_RANGE_NOBODY stands for all of them: -EMLINK too.
 * root, and the user of this process, are who they are without a lookup. gate NULL:
 * 0, and uid. */
int gate_owner(struct gate *gate, uid_t uid, struct gate_wait *wait, uid_t *owner_r,
	       struct why *why_r);

/* Stops waiting. Does nothing if it does not wait. */
void gate_unwait(struct gate_wait *wait);

/* The configuration without sections of tenants. Valid until the next gate_reload. */
const struct config *gate_common_config(const struct gate *gate);

/* The configuration that is now in force for the tenant. Also sets the bounds of the tenant's
 * queue from it. Held: the caller releases it by config_free. Never NULL: if sections contradict
 * each other, or the principal is not identified, it is a configuration that denies everything. */
const struct config *gate_config(struct gate *gate, struct tenant *tenant);

/* As gate_config, for a principal that has no tenant yet. */
const struct config *gate_config_named(struct gate *gate, const char *principal);

/* The principal as policy sees it; without name and groups if they are not known. Valid until the
 * loop's next turn. */
const struct policy_subject *gate_subject(struct gate *gate, const char *principal);

/* How many sessions a principal may have at the same time: the smaller of [quota] sessions (0: no
 * bound) and others, the bound of the carrier. gate NULL: others. */
size_t gate_sessions_max(struct gate *gate, const char *principal, size_t others);

/* Records that a session of the principal has begun (why NULL), or has ended (why: a word). gate
 * NULL: does nothing. */
void gate_session(struct gate *gate, const char *principal, const char *carrier, const char *why);

/* suspended: from now on every execution of the principal is refused, until it is resumed or the
 * service starts again. Not suspended: the principal is resumed. False: nothing has changed. */
bool gate_suspend(struct gate *gate, const char *principal, bool suspended);

bool gate_is_suspended(struct gate *gate, const char *principal);

/* Visits the principals that are suspended. */
void gate_each_suspended(struct gate *gate, void (*visit)(void *arg, const char *principal),
			 void *arg);

/* An alarm about a tenant that was raised within [alarms] period_seconds (govern/alarms.h). */
struct gate_alarm {
	const char *principal, *pattern;
	uint64_t count, usual;		/* in about ten minutes, when it was raised */
	uint64_t seconds_ago;
};
void gate_each_alarm(struct gate *gate, void (*visit)(void *arg, const struct gate_alarm *alarm),
		     void *arg);

/* The alarms of a pattern (enum alarm_pattern) since the start. */
uint64_t gate_alarms_raised(const struct gate *gate, unsigned int pattern);

/* Puts config (held) in force for everything that starts from now on. All principals are identified
 * again, and their requests wait for that. on_done is called once when all are identified: from
 * within this function if no lookup is needed, otherwise from the loop. If there are several
 * reloads, only the on_done of the last one is called. */
void gate_reload(struct gate *gate, const struct config *config, void (*on_done)(void *arg),
		 void *arg);

/* The observer for engine_options: counts, refuses and records executions. */
const struct engine_observer *gate_observer(struct gate *gate);

#endif
