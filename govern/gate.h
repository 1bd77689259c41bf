/* SPDX-License-Identifier: Apache-2.0 */
/* The rules in force for each principal: the one place that tools, the engine and operators ask.
 * For each principal it keeps the configuration made for it (policy/config.h, config_for), its
 * names and groups on the host, and its use of quotas.
 *
 * If policy names users or groups, the host's directory of users (host/directory.h) gives the names
 * and groups of a uid. That takes time and may fail, so carriers call gate_identify and wait before
 * they take a request. An answer is valid for [service] identity_seconds, and is renewed after half
 * of that time. A principal that is not identified may do nothing.
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
	struct approvals *approvals;	/* borrowed; NULL: calls that need one are denied */
	struct directory *directory;	/* borrowed; NULL: policy must not name users or groups of
					 * the host */
	uint64_t (*clock)(void);	/* milliseconds; NULL: clock_ms */
};

struct gate *gate_new(const struct gate_options *options);
void gate_free(struct gate *gate);		/* NULL is fine */

struct audit *gate_audit(const struct gate *gate);
struct approvals *gate_approvals(const struct gate *gate);

/* A caller that waits until a principal is identified; zeroed: does not wait. */
struct gate_wait {
	LIST_ENTRY(gate_wait) link;
	bool waits;
	void (*on_known)(void *arg);
	void *arg;
};

/* Is the principal identified, as far as policy needs it? 0: yes. -EINPROGRESS: the directory is
 * being asked; on_known of wait (NULL: no caller waits) is called once, from the loop, and the
 * caller then calls this again. Other -errno: the directory did not answer, with the reason in
 * why_r (not NULL); it is asked again after directory_seconds. gate NULL: 0. */
int gate_identify(struct gate *gate, const char *principal, struct gate_wait *wait,
		  struct why *why_r);

/* Stops waiting. Does nothing if it does not wait. */
void gate_unwait(struct gate_wait *wait);

/* The configuration without sections of tenants. Valid until the next gate_reload. */
const struct config *gate_common_config(const struct gate *gate);

/* The configuration that is now in force for the tenant; it also bounds the tenant's queue. Held:
 * call config_free. Never NULL: if sections contradict each other, or the principal is not
 * identified, the configuration denies everything. */
const struct config *gate_config(struct gate *gate, struct tenant *tenant);

/* The same for a principal that has no tenant yet. */
const struct config *gate_config_named(struct gate *gate, const char *principal);

/* The principal as policy sees it; without name and groups if they are not known. Valid until the
 * loop's next turn. */
const struct policy_subject *gate_subject(struct gate *gate, const char *principal);

/* How many sessions a principal may have at the same time: [quota] sessions, but at most others,
 * which is the carrier's bound. gate NULL: others. */
size_t gate_sessions_max(struct gate *gate, const char *principal, size_t others);

/* Records that a session of the tenant began (why NULL) or ended (why: a word). gate NULL: does
 * nothing. */
void gate_session(struct gate *gate, const char *principal, const char *carrier, const char *why);

/* Puts config (held) in force for everything that starts from now on. All principals are identified
 * again, and their requests wait for that. on_done is called once when this is complete: before
 * this returns if no lookup is needed, otherwise from the loop. Of several reloads only the last
 * one's on_done is called. */
void gate_reload(struct gate *gate, const struct config *config, void (*on_done)(void *arg),
		 void *arg);

/* The observer for engine_options: counts, refuses and records executions. */
const struct engine_observer *gate_observer(struct gate *gate);

#endif
