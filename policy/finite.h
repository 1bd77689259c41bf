/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all that is finite for the whole service, or for the machine, and that a tenant can
 * use up: its bounds, and how tenants share it. tests/check-finite compares it with the keys and
 * the constants of the source, and makes doc/finite.md of it.
 */
#ifndef POLICY_FINITE_H
#define POLICY_FINITE_H

#include <stddef.h>

enum finite_shares {
	FINITE_FAIR,		/* each tenant has a share (base/fair.h) */
	FINITE_TENANT,		/* each tenant has a bound of its own */
	FINITE_SERVICE,		/* the service has one bound; who waits is served in turn */
	FINITE_KERNEL,		/* the kernel shares it: by weight, or by the tenant's cgroup */
};

struct finite {
	const char *what;
	const char *bounds;	/* "[section] key" and names of constants */
	enum finite_shares shares;
	const char *when_full;	/* what happens then */
};

/* Row number i; NULL: there is none. */
const struct finite *finite_at(size_t i);

const char *finite_shares_name(enum finite_shares shares);

#endif
