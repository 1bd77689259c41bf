/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the tenants, their queues and shares.
 * A tenant outlives its last session for the idle time, so that a client that returns finds its
 * workers warm. */
#include "engine/tenant.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>
#include <openssl/sha.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/xalloc.h"
#include "engine/engine_parts.h"
#include "engine/pool.h"
#include "engine/tenants.h"
#include "engine/worker.h"

#define UID "uid:"

static size_t
bucket_of(const char *principal)
{
	return hash_text(HASH_BEGIN, principal) % TENANT_BUCKETS;
}

static struct tenant *
tenant_find(struct engine *engine, const char *principal)
{
	struct tenant *tenant;

	LIST_FOREACH(tenant, &engine->tenants[bucket_of(principal)], link)
		if (strcmp(tenant->principal, principal) == 0)
			return tenant;
	return NULL;
}

/* The directory's name: the number of a uid; for other tenants a hash, because their names may
 * be too long for a directory and may contain slashes. Two tenants never share a directory. */
static void
name_directory(struct tenant *tenant)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];
	char *at = tenant->directory;

	if (strncmp(tenant->principal, UID, strlen(UID)) == 0) {
		snprintf(at, sizeof(tenant->directory), "%s", tenant->principal + strlen(UID));
		return;
	}
	SHA256((const unsigned char *)tenant->principal, strlen(tenant->principal), hash);
	hex_write(hash, 16, stpcpy(at, "t-"));
}

void
tenant_add_shares(struct tenant *tenant)
{
	struct pool *pool = tenant->engine->pool;

	for (unsigned int i = tenant->n_shares; i < pool->n_kinds; i++)
		share_init(&tenant->share[i], tenant, &pool->profile[i]);
	tenant->n_shares = pool->n_kinds;
}

static struct tenant *
tenant_make(struct engine *engine, const char *principal)
{
	struct tenant *tenant =
		xcalloc(1, sizeof(*tenant) + POOL_KINDS_MAX * sizeof(tenant->share[0]));

	tenant->engine = engine;
	tenant->principal = xstrdup(principal);
	name_directory(tenant);
	volumes_init(&tenant->volumes, engine, tenant->directory, &tenant->cgroup);
	sched_queue_init(&tenant->queue, engine->config->pool.tenant_queue_max,
			 engine->config->pool.tenant_running_max);
	TAILQ_INIT(&tenant->recipes);
	tenant_add_shares(tenant);
	LIST_INSERT_HEAD(&engine->tenants[bucket_of(principal)], tenant, link);
	if (engine->n_tenants++ == 0) {
		static const struct timeval second = { 1, 0 };

		evtimer_add(&engine->housekeeping, &second);
	}
	return tenant;
}

struct tenant *
engine_tenant(struct engine *engine, uid_t uid)
{
	char principal[32];

	snprintf(principal, sizeof(principal), UID "%u", uid);
	return engine_tenant_named(engine, principal);
}

struct tenant *
engine_tenant_named(struct engine *engine, const char *principal)
{
	struct tenant *tenant = tenant_find(engine, principal);

	if (tenant == NULL)
		tenant = tenant_make(engine, principal);
	tenant->holders++;
	tenant->active_ms = clock_ms();
	/* Most calls use the default profile; other profiles warm up when they are first used. */
	if (tenant->share[0].target == 0)
		share_grow(&tenant->share[0]);
	pool_pump(engine);
	return tenant;
}

void
tenant_hold(struct tenant *tenant)
{
	assert(tenant->holders > 0);
	tenant->holders++;
}

uint64_t
tenant_charge(struct tenant *tenant, int64_t bytes)
{
	return tenant->call_bytes += (uint64_t)bytes;
}

void
tenant_restrict(struct tenant *tenant, const char *profile)
{
	snprintf(tenant->profile, sizeof(tenant->profile), "%s", profile);
}

void
tenant_bound(struct tenant *tenant, unsigned int running_max, unsigned int queued_max)
{
	assert(running_max > 0);
	tenant->queue.running_max = running_max;
	tenant->queue.waiting_max = queued_max;
}

const char *
tenant_profile(const struct tenant *tenant)
{
	return tenant->profile;
}

void
tenant_count(const struct tenant *tenant, struct tenant_counts *counts_r)
{
	*counts_r = (struct tenant_counts){
		.sessions = tenant->holders,
		.running = tenant->queue.n_running,
		.queued = tenant->queue.n_waiting,
		.running_max = tenant->queue.running_max,
		.queued_max = tenant->queue.waiting_max,
	};
}

const char *
tenant_principal(const struct tenant *tenant)
{
	return tenant->principal;
}

struct filestore *
tenant_filestore(const struct tenant *tenant)
{
	return tenant->engine->options.filestore;
}

void
tenant_release(struct tenant *tenant)
{
	assert(tenant->holders > 0);
	tenant->holders--;
	tenant->active_ms = clock_ms();
}

void
tenant_free(struct tenant *tenant)
{
	assert(tenant->workers == 0 && tenant->queue.n_waiting == 0);
	tenant->engine->pool->hooks->forget_ready(tenant);
	for (unsigned int i = 0; i < tenant->n_shares; i++) {
		struct share *share = &tenant->share[i];

		share_cool(share);
		pool_give_zygote_up(share);
	}
	volumes_end(&tenant->volumes);
	cgroup_tenant_release(tenant->cgroup);
	LIST_REMOVE(tenant, link);
	tenant->engine->n_tenants--;
	free(tenant->principal);
	free(tenant);
}

/* Sets the tenant's weight by its load. A tenant that does nothing and has the largest weight is
 * left out. */
static void
tenant_weigh(struct tenant *tenant)
{
	bool at_rest =
		tenant->workers == 0 && load_weight(&tenant->load) == LOAD_WEIGHT_MOST;
	uint64_t used_us;

	if (tenant->cgroup == NULL || at_rest ||
	    cgroup_tenant_cpu(tenant->cgroup, &used_us) < 0)
		return;
	load_note(&tenant->load, clock_ms(), used_us);
	cgroup_tenant_weigh(tenant->cgroup, load_weight(&tenant->load));
}

void
tenant_look_after(struct tenant *tenant)
{
	const struct engine *engine = tenant->engine;
	uint64_t idle_ms = clock_ms() - tenant->active_ms;
	bool busy = tenant->queue.n_running > 0 || tenant->queue.n_waiting > 0;
	bool idle =
		!busy && idle_ms >= (uint64_t)engine->config->pool.idle_seconds * 1000;

	for (unsigned int i = 0; i < tenant->n_shares; i++) {
		if (idle) {
			share_cool(&tenant->share[i]);
			pool_rest_zygote(&tenant->share[i]);
		} else {
			share_shrink(&tenant->share[i]);
		}
	}
	tenant_weigh(tenant);
	volumes_look_after(&tenant->volumes);
	if (idle && tenant->holders == 0 && tenant->workers == 0)
		tenant_free(tenant);
}
