/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of a table of places that all tenants take from, such as that of connections. A tenant may
 * have as many places as are left for others. So one tenant gets half of a table, several tenants
 * get equal parts, and a place is left for the next one.
 */
#ifndef POLICY_FAIR_H
#define POLICY_FAIR_H

#include <stddef.h>

#define FAIR_LEAST 16	/* places of the smallest table that has shares */

/* May a tenant that has own of the used places of a table of this size take one more? own_max: the
 * bound for each tenant. 0; -EUSERS: the table is full; -EDQUOT: the tenant has its share. */
int fair_take(size_t size, size_t used, size_t own, size_t own_max);

#endif
