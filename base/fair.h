/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of what is finite for the whole service and that all tenants take from: places of a table,
 * or bytes. A tenant may have as much as is left for others. So one tenant gets half, several
 * tenants get equal parts, and something is left for the next one. The table of all that is finite
 * is in policy/finite_table.json.
 */
#ifndef BASE_FAIR_H
#define BASE_FAIR_H

#include <stddef.h>
#include <stdint.h>

#define FAIR_LEAST 16	/* places of the smallest table that has shares */

/* May a tenant that has own of the used places of a table of this size take one more? own_max: the
 * bound for each tenant. 0; -EUSERS: the table is full; -EDQUOT: the tenant has its share. */
int fair_take(size_t size, size_t used, size_t own, size_t own_max);

/* The same of things that cannot be taken back while they are used, such as workers. The first
 * three quarters are taken as they come, so that a tenant that is alone has most of the table. */
int fair_take_last(size_t size, size_t used, size_t own, size_t own_max);

/* The most bytes that a tenant may have that has own of the used bytes of a budget of this size. */
uint64_t fair_bytes(uint64_t size, uint64_t used, uint64_t own);

/* A budget of memory for all tenants: this part of the machine's memory, at most 1 GiB. */
uint64_t fair_memory(unsigned int part);

#endif
