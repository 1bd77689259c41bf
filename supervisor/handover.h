/* SPDX-License-Identifier: Apache-2.0 */
/* Hands sessions of run_repl over to the next process of the service. systemd keeps descriptors for
 * a service while it is restarted (FileDescriptorStoreMax= in the unit), and drops them when it is
 * stopped or does not start again. So sessions at rest outlive a restart; in all other cases they
 * end, because the last descriptor of their sockets is closed.
 *
 * The descriptors are a sealed memfd with a table (handover_table.h), and for each session those of
 * enum repl_fd. Their names begin with HANDOVER_PREFIX.
 */
#ifndef SUPERVISOR_HANDOVER_H
#define SUPERVISOR_HANDOVER_H

#include <stdbool.h>

struct audit;
struct config;
struct engine;
struct event_base;
struct endpoints;

#define HANDOVER_PREFIX "kept-"

/* Can sessions be handed over? Two conditions: systemd has a store for this service, as far as is
 * known; and the next process can reach the cgroups of the sessions. It cannot if the service was
 * started by hand and has cgroups: they are below a directory that belongs to this process. */
bool handover_is_possible(bool as_service, bool has_cgroups);

/* Gives the sessions to systemd. Those that its store does not accept end. Blocks until systemd has
 * received them. The sessions that are not kept are recorded in audit. */
void handover_give(struct engine *engine, struct audit *audit);

struct handover_takers {
	struct endpoints *endpoints;		/* the stored descriptors are taken from here */
	struct engine *engine;
	struct event_base *base;
	const struct config *config;
	struct audit *audit;		/* records which sessions were kept and which were not */
};

/* To be called before the loop runs: adopts the sessions that fit, ends the others, and empties the
 * store.
 */
void handover_take(const struct handover_takers *takers);

#endif
