/* SPDX-License-Identifier: Apache-2.0 */
/* A tenant's load: its use of processors in the last seconds. The load determines the tenant's
 * weight against the other tenants. A tenant that keeps a processor busy gets less than tenants
 * that call now and then, so a short call does not wait behind a long run of another tenant.
 * Tenants with the same use have the same weight. Pure: it reads neither clock nor file. Embedded
 * in the tenant.
 */
#ifndef ENGINE_LOAD_H
#define ENGINE_LOAD_H

#include <stdint.h>

/* As cpu.weight: cgroup-v2.rst, "Weights". The largest weight is that of a new cgroup. */
#define LOAD_WEIGHT_MOST 100U
#define LOAD_WEIGHT_LEAST 5U

struct load {
	uint64_t seen_ms, used_us;	/* at the last measurement; 0: none yet */
	uint32_t permille;		/* of one processor: a moving average */
};

/* Takes a measurement: the time of a monotonic clock, and the total processor time of the tenant.
 * With one measurement per second, the newest makes up half of the average, and the one before it a
 * quarter. A measurement less than half a second after the last one changes nothing. */
void load_note(struct load *load, uint64_t now_ms, uint64_t used_us);

/* The weight. LOAD_WEIGHT_MOST for a use of up to a tenth of a processor, LOAD_WEIGHT_MOST / 10 for
 * a whole processor, LOAD_WEIGHT_LEAST for two processors and more. */
unsigned int load_weight(const struct load *load);

#endif
