/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the whole machine that no cgroup counts: sockets, the memory of the network's protocols
 * and, without a controller, processes. Samples of workers are summed up by tenant, and a worker of
 * a tenant that takes more than its share is ended.
 *
 * A connection that nobody has accepted belongs to no cgroup, and neither does one that was closed
 * with data that nobody has read. But the network namespace of a worker counts all its sockets.
 */
#ifndef ENGINE_TABLES_H
#define ENGINE_TABLES_H

#include <stdint.h>

#include "engine/verdict.h"
#include "host/watchdog.h"

struct worker;

/* What may wait in one socket; see worker/networks.c. */
#define TABLES_SOCKET_BYTES (128u << 10)

/* The bounds of a machine. The kernel's own are by default: for the memory of TCP 5% of the
 * machine's before it is under pressure and 9% at most, and one orphan for 128 KiB. */
struct tables_bounds {
	uint32_t sockets;	/* of one tenant */
	uint32_t tasks;		/* of one tenant */
	uint64_t pressure_bytes;	/* of the protocols, for all programs of the machine: above
					 * it no tenant may have more than share_bytes in sockets */
	uint64_t share_bytes;
};

/* tasks: of one tenant (host/tasks.h). */
struct tables_bounds tables_bounds(uint64_t machine_bytes, uint32_t tasks);

/* A worker's sample beside those of its tenant. */
struct tables_sample {
	uint32_t sockets, tasks;		/* of the worker */
	uint32_t tenant_sockets, tenant_tasks;	/* of all workers of the tenant, with this one */
	uint32_t tenant_workers;
	uint64_t protocol_bytes;		/* of all programs of the machine */
	uint64_t memory_bytes;			/* the worker's limit */
};

/* STOP_SOCKETS or STOP_TASKS: this worker is to be ended. Of a tenant that takes too much, each
 * worker is that takes as much as the average or more. */
enum stop_reason tables_decide(const struct tables_bounds *bounds,
			       const struct tables_sample *sample);

/* Notes a sample of a worker and decides, by the bounds of this machine. tasks of usage are 0 where
 * a controller counts them. memory_bytes: the worker's limit. */
enum stop_reason tables_note(struct worker *worker, const struct watchdog_usage *usage,
			     uint64_t memory_bytes);

#endif
