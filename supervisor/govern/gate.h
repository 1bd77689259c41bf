/* What is in force for whom, now: the one place that tools, the engine and operators ask.
 * Keeps, by principal, the configuration made for it (policy/config.h, config_for), who it is
 * to the system, and what it has used of its quotas.
 */
#ifndef SUPERVISOR_GATE_H
#define SUPERVISOR_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/rules.h"

struct approvals;
struct audit;
struct config;
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
};

struct gate *gate_new(const struct gate_options *options);
void gate_free(struct gate *gate);		/* NULL is fine */

struct audit *gate_audit(const struct gate *gate);
struct approvals *gate_approvals(const struct gate *gate);

/* What is in force for the tenant from now on; the queue of the tenant is bounded by it. Held,
 * for config_free. Never NULL: sections that cannot be put together deny everything. */
const struct config *gate_config(struct gate *gate, struct tenant *tenant);

/* The same for somebody who has no tenant yet. */
const struct config *gate_config_named(struct gate *gate, const char *principal);

/* Who that is to the system; lives until the next call of any of these. */
const struct policy_subject *gate_subject(struct gate *gate, const char *principal);

/* Of somebody at once: as many as [quota] sessions lets, and others (of the carrier) at most.
 * gate NULL: others. */
size_t gate_sessions_max(struct gate *gate, const char *principal, size_t others);

/* Records that a session of theirs began, or ended. gate NULL: does nothing. */
void gate_session(struct gate *gate, const char *principal, const char *carrier, bool begins);

/* Puts config in force, for what starts from now on. Held. */
void gate_reload(struct gate *gate, const struct config *config);

/* Counts, refuses and records executions: for engine_options. */
const struct engine_observer *gate_observer(struct gate *gate);

#endif
