/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing. */
#include "base/fair.h"

#include <errno.h>
#include <unistd.h>

#define MEMORY_MAX (UINT64_C(1) << 30)

int
fair_take(size_t size, size_t used, size_t own, size_t own_max)
{
	if (used >= size)
		return -EUSERS;
	if (own >= own_max || (size >= FAIR_LEAST && own >= size - used))
		return -EDQUOT;
	return 0;
}

int
fair_take_last(size_t size, size_t used, size_t own, size_t own_max)
{
	if (own < own_max && used < size - size / 4)
		return 0;
	return fair_take(size, used, own, own_max);
}

uint64_t
fair_bytes(uint64_t size, uint64_t used, uint64_t own)
{
	uint64_t others = used - own;

	return others < size ? (size - others) / 2 : 0;
}

uint64_t
fair_memory(unsigned int part)
{
	static uint64_t machine;
	uint64_t bytes;

	if (machine == 0)
		machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	bytes = machine / part;
	return bytes < MEMORY_MAX ? bytes : MEMORY_MAX;
}
