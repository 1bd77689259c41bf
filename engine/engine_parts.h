/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the engine, for its modules. No file outside of engine/ includes it.
 */
#ifndef ENGINE_ENGINE_PARTS_H
#define ENGINE_ENGINE_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <event2/event_struct.h>

#include "engine/observer.h"
#include "engine/options.h"
#include "engine/worker_slots.h"
#include "host/cgroup.h"
#include "host/watchdog.h"
#include "policy/config.h"

struct repl_stage;
struct keeper;
struct learning;
struct pool;
struct ready;
struct upstream;
struct renewal;
struct watchdog;
struct worker_owner;

#define TENANT_BUCKETS 4096
#define SCRATCH_BYTES 65536	/* the most that one read of a pipe takes */

struct engine {
	struct engine_options options;
	struct event_base *base;		/* = options.base */
	const struct config *config;		/* = options.config */

	/* The limits that the kernel enforces; the watchdog enforces the others, and looks after
	 * what no controller counts (tables.h). */
	bool memory_counted, pids_counted;
	bool sampled;				/* not both of these */
	struct watchdog *watchdog;
	uint32_t tenant_tasks;			/* processes and threads that one tenant may have */
	struct keeper *keeper;			/* NULL: neither packages, files nor volumes */
	struct watchdog_usage baseline;		/* of a new worker, as last measured */
	int children_fd;			/* the kernel's list of this process's children;
						 * -1: none */
	struct cgroup_limits standard;		/* a leaf's limits, made from the standard ones */

	struct egress *egress;			/* the proxy; its process is started when it is
						 * needed */
	struct upstream *upstream;		/* the client of other MCP servers; NULL: none is
						 * configured */
	struct pool *pool;
	struct learning *learning;		/* by profile */
	struct ready *ready;			/* workers that are made ready */
	const struct worker_owner *owner;	/* of all workers: pool.c */
	const struct repl_stage *cells;		/* of all sessions: repl.c */
	struct worker_slots slots;
	bool has_told_host_name;	/* the log has a line that workers have the host's name */
	uint64_t next_serial, next_share;
	struct renewal *renewal;	/* NULL: changes of the host are not seen */
	uint64_t next_look_us;		/* the earliest time of the next look at the memory of
					 * adopted sessions: repl_keep.c */

	LIST_HEAD(, tenant) tenants[TENANT_BUCKETS];
	unsigned int n_tenants;
	struct event housekeeping;

	/* Executions that get their outcome in the next turn of the loop. */
	TAILQ_HEAD(, execution) due;
	TAILQ_HEAD(, execution) long_due;	/* they wait for a turn (base/rota.h) */
	TAILQ_HEAD(, execution) running;
	LIST_HEAD(, repl) repls;
	unsigned int n_repls;
	struct event deliver;
	unsigned int n_running;
	uint64_t executions;
	uint64_t spilled;			/* the sum over all tenants of tenant->spilled */

	/* Called once, for the default profile's zygote. */
	void (*on_ready)(void *arg, int error, const char *text);
	void *on_ready_arg;
	bool ready_known;
	int ready_error;
	char *ready_text;
	struct event tell_ready;

	bool shutting_down, shut_down;
	bool keeps_sessions;			/* a shutdown does not end sessions */
	void (*on_shut_down)(void *arg);
	void *on_shut_down_arg;
	struct event shutdown_timer;

	char text[256];				/* of engine_enforcement */
	unsigned char scratch[SCRATCH_BYTES];
};

/* Charges processor time, in milliseconds, to the tenant's quota. Returns what is left of it. */
static inline uint64_t
engine_charge(const struct engine *engine, const struct tenant *tenant, uint64_t ms)
{
	const struct engine_observer *observer = engine->options.observer;

	return observer != NULL ? observer->on_cpu(observer->arg, tenant, ms) : UINT64_MAX;
}

#endif
