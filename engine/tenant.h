/* SPDX-License-Identifier: Apache-2.0 */
/* A tenant: a peer uid or another authenticated principal, with its queue, its shares of the pool
 * and its cgroup. It is made for the principal's first connection, and freed when it has had no
 * holder and no work for a while.
 */
#ifndef ENGINE_TENANT_H
#define ENGINE_TENANT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "engine/load.h"
#include "engine/scheduler.h"
#include "engine/share.h"
#include "engine/volume.h"

struct cgroup_tenant;

TAILQ_HEAD(recipes, recipe);

struct tenant {
	LIST_ENTRY(tenant) link;
	struct engine *engine;
	char *principal;		/* "uid:1000" */
	char directory[40];		/* of its cgroup */
	char profile[65];		/* the only profile that it may use; "": any */
	unsigned int holders;
	unsigned int workers;		/* of every state */
	uint32_t sockets, tasks;	/* the sums of its workers' (tables.h) */
	unsigned int repls;		/* sessions */
	uint64_t active_ms;		/* when it was last used */
	struct cgroup_tenant *cgroup;	/* NULL: no cgroups */
	struct load load;
	struct sched_queue queue;
	struct volumes volumes;
	struct recipes recipes;		/* ready.h: the last used comes first */
	uint64_t spilled;		/* bytes of output that is kept for "spill" (request.h) of
					 * its running executions */
	uint64_t call_bytes;		/* tenant_charge */
	unsigned int n_shares;
	struct share share[];		/* by kind (pool.h) */
};

/* Makes its shares for all profiles of the pool that it has none for. */
void tenant_add_shares(struct tenant *tenant);

/* Called each second. Frees the tenant if it is not needed any more. */
void tenant_look_after(struct tenant *tenant);

void tenant_free(struct tenant *tenant);

#endif
