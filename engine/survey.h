/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the engine, for operators and metrics: profiles, tenants, running executions. Each
 * call walks over workers and tenants, and does a few small reads for each tenant with something
 * running. Nothing is changed.
 */
#ifndef ENGINE_SURVEY_H
#define ENGINE_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/egress.h"
#include "policy/learnable.h"

struct engine;
struct tenant;

/* One profile's part of the pool. Strings are valid as long as the engine, and trouble until the
 * next turn of the loop. */
struct survey_profile {
	const char *name;
	bool ready;			/* its zygote */
	const char *trouble;		/* why it is not ready; NULL: nothing failed */
	unsigned int starting, warm, running, ending;	/* workers; warm: ready ones too */
	unsigned int sessions;		/* workers of idle sessions */
	unsigned int spent;		/* workers whose execution was answered; they end soon */
	unsigned int waiting;		/* executions, and sessions that have no worker yet */
	uint64_t learned;		/* modules of its learned zygote (policy/learnable.h) */
	/* Why modules were not learned when that was tried last: "NAME: reason". */
	const char *unlearned[LEARNABLE_MAX];
	size_t n_unlearned;
	uint64_t hits, misses;		/* scripts that named learned modules only, or one that was
					 * not learned yet */
};

/* Fills at most CONFIG_PROFILES_MAX entries, in the order of the configuration. Returns their
 * number. */
size_t survey_profiles(const struct engine *engine, struct survey_profile *profile_r);

struct survey_tenant {
	const struct tenant *tenant;	/* borrowed, during the call */
	unsigned int holders, running, queued, running_max, queued_max;
	unsigned int sessions, workers;
	unsigned int volumes;		/* volumes in use: engine/volume.h */
	uint64_t cpu_ms;		/* of running executions, not yet charged */
	/* Memory of all its workers, if the kernel counts it; otherwise the peaks of running
	 * executions. */
	uint64_t memory_bytes;
};

void survey_tenants(const struct engine *engine,
		    void (*visit)(void *arg, const struct survey_tenant *tenant), void *arg);

/* One tenant. False: the principal has no tenant now, and *tenant_r is zeroed. */
bool survey_tenant(const struct engine *engine, const char *principal,
		   struct survey_tenant *tenant_r);

/* An execution that runs or waits. Everything in it is valid during the call only. */
struct survey_execution {
	const char *id, *principal, *profile;
	bool cell, runs;		/* runs false: it waits */
	const char *script;		/* the tenant's: UTF-8 without NUL */
	size_t script_len;
	uint64_t asked_ms;		/* the time since the call that asked for it */
	uint64_t cpu_ms, memory_bytes;	/* so far; 0 while it waits */
};

/* Visits the executions that run, then those that wait. The service's own programs are left out. */
void survey_executions(const struct engine *engine,
		       void (*visit)(void *arg, const struct survey_execution *execution),
		       void *arg);

/* Cancels the execution of this id for an operator. False: there is none. */
bool survey_stop(struct engine *engine, const char *id);

/* The proxy. */
void survey_egress(const struct engine *engine, struct egress_state *state_r);

#endif
