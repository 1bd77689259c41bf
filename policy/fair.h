/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of a table of places that all tenants take from, such as that of connections. A tenant may
 * have as many places as are left for others. So one tenant gets half of a table, several tenants
 * get equal parts, and a place is left for the next one.
 *
 * What is finite for the whole service, its bound, and how tenants share it:
 *
 *   connections of unix sockets  [service] sessions_max    fair_take; the idle of the largest go
 *   HTTP connections             [http] connections_max    the same; strangers have a quarter
 *   unread output, unix sockets  ALL_BUFFERED_MAX          the fullest stream of the fullest goes
 *   lookups of uids              ARRIVALS_MAX              first come, first served
 *   unread output, HTTP          each peer only            not bounded in all
 *   HTTP sessions                [http] sessions_max       first come; each tenant bounded
 *   workers                      [pool] workers_max        first come; each tenant bounded
 *   sessions of run_repl         as workers                each tenant: [repl] sessions_max
 *   kept results of runs         [results] keep_bytes_max  first come; each tenant bounded
 *   keys, jobs, tasks            each tenant only          not bounded in all
 *   approvals                    each tenant only          not bounded in all
 *   bytes of the audit log       [audit] keep_bytes        the oldest go; each tenant bounded
 */
#ifndef POLICY_FAIR_H
#define POLICY_FAIR_H

#include <stddef.h>

#define FAIR_LEAST 16	/* places of the smallest table that has shares */

/* May a tenant that has own of the used places of a table of this size take one more? own_max: the
 * bound for each tenant. 0; -EUSERS: the table is full; -EDQUOT: the tenant has its share. */
int fair_take(size_t size, size_t used, size_t own, size_t own_max);

#endif
