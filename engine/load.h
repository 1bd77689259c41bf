/* SPDX-License-Identifier: Apache-2.0 */
/* A tenant's load: how much of a processor it has used lately, and by that its weight beside the
 * other tenants. A tenant that keeps a processor busy yields to those that call now and then, so
 * that a short call does not wait behind a long run of somebody else; tenants that use the same
 * weigh the same. Pure: it reads neither clock nor file. Embedded in the tenant.
 */
#ifndef ENGINE_LOAD_H
#define ENGINE_LOAD_H

#include <stdint.h>

/* As cpu.weight: cgroup-v2.rst, "Weights". The most is what the kernel gives a new cgroup. */
#define LOAD_WEIGHT_MOST 100U
#define LOAD_WEIGHT_LEAST 5U

struct load {
	uint64_t seen_ms, used_us;	/* at the last look; 0: none yet */
	uint32_t permille;		/* of one processor: a moving average */
};

/* Notes a look: the time of a monotonic clock, and all processor time that the tenant has used. It
 * counts half after a second, and a quarter after two. Looks that follow at once change nothing. */
void load_note(struct load *load, uint64_t now_ms, uint64_t used_us);

/* LOAD_WEIGHT_MOST up to a tenth of a processor, a tenth of it for a whole one, LOAD_WEIGHT_LEAST
 * for two and more. */
unsigned int load_weight(const struct load *load);

#endif
