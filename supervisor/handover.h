/* SPDX-License-Identifier: Apache-2.0 */
/* From one process of the service to the next: systemd keeps descriptors for a service while it
 * is restarted (FileDescriptorStoreMax= in the unit), and drops them when it is stopped for good
 * or does not start again. So sessions of run_repl that have come to rest outlive a restart, and
 * nothing else: when the last descriptor of their sockets is closed they end by themselves.
 *
 * What goes there has names that begin with HANDOVER_PREFIX: a table (handover_table.h) in a
 * sealed memfd, and for each session the descriptors of enum repl_fd.
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

/* Is there a store, as far as can be known, and can a later process reach the leaves? Those of a
 * service started by hand are below a directory of that process's own. */
bool handover_is_possible(bool as_service, bool has_cgroups);

/* Gives sessions to systemd; of a store that takes none they end. Blocks for as long as systemd
 * takes to hear of it. audit gets those that are not kept. */
void handover_give(struct engine *engine, struct audit *audit);

struct handover_takers {
	struct endpoints *endpoints;		/* what was stored is taken from here */
	struct engine *engine;
	struct event_base *base;
	const struct config *config;
	struct audit *audit;		/* gets what was kept, and what was not */
};

/* Before the loop runs: takes what fits, ends the rest, and empties the store. */
void handover_take(const struct handover_takers *takers);

#endif
