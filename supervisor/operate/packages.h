/* SPDX-License-Identifier: Apache-2.0 */
/* The sets of packages in the store, for operators and for the tenants who have them.
 */
#ifndef SUPERVISOR_OPERATE_PACKAGES_H
#define SUPERVISOR_OPERATE_PACKAGES_H

#include <stdbool.h>

#include <jansson.h>

struct engine;
struct gate;
struct why;

/* The answer to {"do":"packages"}: the sets that were used last, at most PACKAGES_LISTED of them,
 * each with its packages, its size and who has it. store: NULL if there is none. principal: whose;
 * NULL: all, also those that nobody has. */
#define PACKAGES_LISTED 256
json_t *packages_list(const char *store, const char *principal);

/* Obeys {"do":"remove-packages","set":NAME,"tenant":PRINCIPAL}: the tenant has the set no longer.
 * Without a tenant: for an operator, nobody has; for others, the caller. NAME may be a beginning
 * that only one set has. A set that nobody has is removed from the disk, unless it is in use. by:
 * the caller's principal. NULL with why_r: nothing was changed. */
json_t *packages_remove(struct engine *engine, struct gate *gate, const char *by, bool is_operator,
			const json_t *request, struct why *why_r);

#endif
