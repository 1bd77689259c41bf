/* SPDX-License-Identifier: Apache-2.0 */
/* Hands sessions of run_repl over to the next process of the service. systemd keeps descriptors for
 * a service while it is restarted (FileDescriptorStoreMax= in the unit), and drops them when it is
 * stopped or does not start again. So sessions at rest outlive a restart; in all other cases they
 * end, because the last descriptor of their sockets is closed.
 *
 * The names of these descriptors begin with HANDOVER_PREFIX: a table (handover_table.h) in a sealed
 * memfd, and for each session the descriptors of enum repl_fd.
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

/* Is there a store, as far as is known, and can a later process reach the leaves? The leaves of a
 * service that was started by hand are below a directory of its own process. */
bool handover_is_possible(bool as_service, bool has_cgroups);

/* Gives the sessions to systemd; if its store does not accept them, they end. Blocks until systemd
 * has received them. audit gets the sessions that are not kept. */
void handover_give(struct engine *engine, struct audit *audit);

struct handover_takers {
	struct endpoints *endpoints;		/* the stored descriptors are taken from here */
	struct engine *engine;
	struct event_base *base;
	const struct config *config;
	struct audit *audit;		/* gets the sessions that were kept and those that were not
					 */
};

/* Before the loop runs: adopts the sessions that fit, ends the others, and empties the store. */
void handover_take(const struct handover_takers *takers);

#endif
