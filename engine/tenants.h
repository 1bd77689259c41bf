/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants as carriers and tools see them: the name of a tenant, what it may run, and how much it
 * runs.
 */
#ifndef ENGINE_TENANTS_H
#define ENGINE_TENANTS_H

#include <stdint.h>
#include <sys/types.h>

struct engine;
struct filestore;
struct tenant;

/* The tenant of a peer uid. The first call for a uid makes the tenant and its warm workers. The
 * caller holds it until tenant_release. A tenant without holders and without running work is freed
 * after the idle time. */
struct tenant *engine_tenant(struct engine *engine, uid_t uid);

/* The tenant of any principal that a carrier has authenticated: "uid:1000", "token:ci",
 * "sub:alice@https://id.example.org". Visible ASCII. */
struct tenant *engine_tenant_named(struct engine *engine, const char *principal);

void tenant_hold(struct tenant *tenant);	/* until one more tenant_release */
void tenant_release(struct tenant *tenant);

/* From now on the tenant's scripts run in this profile only, and a call that names another profile
 * is refused. "": any profile. */
void tenant_restrict(struct tenant *tenant, const char *profile);

/* Sets how many executions of the tenant may run at the same time, and how many may wait.
 * running_max > 0. */
void tenant_bound(struct tenant *tenant, unsigned int running_max, unsigned int queued_max);

/* The tenant's principal, such as "uid:1000". A restart does not change it. Valid as long as the
 * tenant. */
const char *tenant_principal(const struct tenant *tenant);

/* The store of large files; NULL: none. */
struct filestore *tenant_filestore(const struct tenant *tenant);

/* The profile that tenant_restrict has set; "": any. */
const char *tenant_profile(const struct tenant *tenant);

/* Counts bytes of the tenant's calls, as its user does; negative: they are over. Returns their sum.
 */
uint64_t tenant_charge(struct tenant *tenant, int64_t bytes);

/* The tenant's current numbers. */
struct tenant_counts {
	unsigned int sessions, running, queued;
	unsigned int running_max, queued_max;
};
void tenant_count(const struct tenant *tenant, struct tenant_counts *counts_r);

#endif
