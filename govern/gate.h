/* SPDX-License-Identifier: Apache-2.0 */
/* What is in force for whom, now: the one place that tools, the engine and operators ask.
 * Keeps, by principal, the configuration made for it (policy/config.h, config_for), who it is
 * to the host, and what it has used of its quotas.
 *
 * Who a uid is to the host says its directory of users (host/directory.h), where policy names
 * users or groups. That takes time, or fails: carriers wait with gate_identify before they take a
 * request. An answer is good for [service] identity_seconds, and asked for again when half of them
 * are over, while it is used on. Of whom nothing is known nothing is allowed.
 */
#ifndef GOVERN_GATE_H
#define GOVERN_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "policy/rules.h"

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
	struct approvals *approvals;	/* borrowed; NULL: what needs one is denied */
	struct directory *directory;	/* borrowed; NULL: policy may name nobody of the host's */
	uint64_t (*clock)(void);	/* milliseconds; NULL: clock_ms */
};

struct gate *gate_new(const struct gate_options *options);
void gate_free(struct gate *gate);		/* NULL is fine */

struct audit *gate_audit(const struct gate *gate);
struct approvals *gate_approvals(const struct gate *gate);

/* Somebody who waits until it is known who a principal is; zeroed: does not wait. */
struct gate_wait {
	LIST_ENTRY(gate_wait) link;
	bool waits;
	void (*on_known)(void *arg);
	void *arg;
};

/* Is it known who that is, as far as policy wants to know? 0: yes. -EINPROGRESS: the directory is
 * being asked; on_known of wait (NULL: nobody waits) is called once, from the loop, for the same
 * to be asked again. Other -errno: the directory did not say, and why_r (not NULL) tells it; it
 * is asked again when directory_seconds are over. gate NULL: 0. */
int gate_identify(struct gate *gate, const char *principal, struct gate_wait *wait,
		  struct why *why_r);

/* Waits no more. Fine when it does not. */
void gate_unwait(struct gate_wait *wait);

/* What is in force for everybody, sections of tenants aside. Lives until the next gate_reload. */
const struct config *gate_common_config(const struct gate *gate);

/* What is in force for the tenant from now on; the queue of the tenant is bounded by it. Held,
 * for config_free. Never NULL: sections that cannot be put together, and somebody of whom it is
 * not known who they are, get one that denies everything. */
const struct config *gate_config(struct gate *gate, struct tenant *tenant);

/* The same for a principal that has no tenant yet. */
const struct config *gate_config_named(struct gate *gate, const char *principal);

/* Who that is to policy; without name and groups where that is not known. Lives until the loop
 * turns. */
const struct policy_subject *gate_subject(struct gate *gate, const char *principal);

/* Of somebody at once: as many as [quota] sessions lets, and others (of the carrier) at most.
 * gate NULL: others. */
size_t gate_sessions_max(struct gate *gate, const char *principal, size_t others);

/* Records that a session of the tenant ended. why: a word; NULL: that it began. gate NULL: does
 * nothing. */
void gate_session(struct gate *gate, const char *principal, const char *carrier, const char *why);

/* Puts config in force, for what starts from now on; held. Who everybody is is asked again, and
 * their requests wait for it. on_done is called once when all of it is in force: before this
 * returns where nobody has to be asked, else from the loop. Of several reloads only the last one's
 * is called. */
void gate_reload(struct gate *gate, const struct config *config, void (*on_done)(void *arg),
		 void *arg);

/* Counts, refuses and records executions: for engine_options. */
const struct engine_observer *gate_observer(struct gate *gate);

#endif
