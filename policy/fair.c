/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing. */
#include "policy/fair.h"

#include <errno.h>

int
fair_take(size_t size, size_t used, size_t own, size_t own_max)
{
	if (used >= size)
		return -EUSERS;
	if (own >= own_max || (size >= FAIR_LEAST && own >= size - used))
		return -EDQUOT;
	return 0;
}
