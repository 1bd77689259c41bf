/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the counts of imports; the zygotes belong to the pool.
 * Reads:   the text of scripts, and times that scripts report: both only choose a zygote. */
#include "engine/learning.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "engine/engine_parts.h"
#include "engine/pool.h"
#include "engine/share.h"
#include "engine/tenant.h"
#include "engine/zygote.h"

#define WORTH_US 20000		/* more time than this on the imports of a module is too much */
#define REPORT_MOST_US 10000000	/* of one script: the report is the script's */
#define HALVE_MS 600000
#define BLOCKED_MS 600000	/* after a failure */
#define AGAIN_MS 60000		/* until a module is asked for again for which there was no time */
#define IDLE_TIMES 10		/* [pool] idle_seconds without a use: it is given up */

#define RETAIN_S (7 * 86400)	/* a module that no script names is not learned again */

/* ---- what is worth it ---- */

static void
halve(struct learning *l, uint64_t now_ms)
{
	if (l->halved_ms == 0)
		l->halved_ms = now_ms;
	for (; now_ms - l->halved_ms >= HALVE_MS; l->halved_ms += HALVE_MS)
		for (size_t i = 0; i < LEARNABLE_MAX; i++)
			l->spent_us[i] /= 2;
}

void
learning_count(struct learning *l, uint64_t named, uint32_t import_us, uint64_t now_ms)
{
	halve(l, now_ms);
	for (size_t i = 0; i < LEARNABLE_MAX; i++)
		if (named & UINT64_C(1) << i)
			l->spent_us[i] += import_us < REPORT_MOST_US ? import_us : REPORT_MOST_US;
}

uint64_t
learning_worth(struct learning *l, uint64_t now_ms)
{
	uint64_t worth = 0;

	halve(l, now_ms);
	for (size_t i = 0; i < LEARNABLE_MAX; i++)
		if (l->spent_us[i] >= WORTH_US)
			worth |= UINT64_C(1) << i;
	return worth;
}

/* ---- over a restart ---- */

/* These modules are learned, and a script has named them just now, or before that. */
static void
note_named(struct learning *l, uint64_t modules)
{
	l->kept |= modules;
	for (size_t i = 0; i < LEARNABLE_MAX; i++)
		if (modules & UINT64_C(1) << i)
			l->named_s[i] = time(NULL);
}

static void
load_one(struct engine *engine, const char *profile, const char *module, int64_t named_s)
{
	const struct config *config = engine->config;
	int64_t now_s = time(NULL);

	if (named_s > now_s || named_s <= now_s - RETAIN_S)
		return;
	for (size_t p = 0; p < config->n_profiles; p++)
		for (size_t i = 0; i < learnable_count(config); i++)
			if (strcmp(config->profile[p].name, profile) == 0 &&
			    strcmp(learnable_name(config, i), module) == 0) {
				engine->learning[p].kept |= UINT64_C(1) << i;
				engine->learning[p].named_s[i] = named_s;
				engine->learning[p].spent_us[i] = WORTH_US;
			}
}

void
learning_load(struct engine *engine)
{
	char profile[65], module[256];
	int64_t named_s;
	FILE *file = engine->options.learned;

	while (file && fscanf(file, "%64s %255s %15" SCNd64, profile, module, &named_s) == 3)
		load_one(engine, profile, module, named_s);
	if (file)
		fclose(file);
}

void
learning_save(struct engine *engine)
{
	const struct config *config = engine->config;
	char *text;
	size_t len;
	FILE *file;

	if (!engine->options.on_learned)
		return;
	file = xalloc_check(open_memstream(&text, &len));
	for (size_t p = 0; p < config->n_profiles; p++)
		for (size_t i = 0; i < learnable_count(config); i++)
			if (engine->learning[p].kept & UINT64_C(1) << i)
				fprintf(file, "%s %s %" PRId64 "\n", config->profile[p].name,
					learnable_name(config, i), engine->learning[p].named_s[i]);
	xassert(fclose(file) == 0);
	engine->options.on_learned(engine->options.learned_arg, text);
}

/* ---- choosing ---- */

/* Is it a module of a package whose first import takes more than WORTH_US everywhere? */
static bool
is_slow(const char *module)
{
	static const char *const packages[] = { "numpy", "pandas", "scipy", "matplotlib", "seaborn",
						"sklearn", "statsmodels", "sympy" };
	size_t len = strcspn(module, ".");

	for (size_t i = 0; i < sizeof(packages) / sizeof(packages[0]); i++)
		if (strlen(packages[i]) == len && memcmp(packages[i], module, len) == 0)
			return true;
	return false;
}

/* The zygote of slow modules grows while the first script that names one still imports it. */
static void
expect(struct learning *l, const struct config *config, uint64_t named)
{
	for (size_t i = 0; named >> i != 0; i++)
		if (named >> i & 1 && l->spent_us[i] < WORTH_US &&
		    is_slow(learnable_name(config, i)))
			l->spent_us[i] = WORTH_US;
}

unsigned int
learning_choose(struct tenant *tenant, unsigned int profile, const char *script, size_t len,
		uint64_t *named_r)
{
	struct engine *engine = tenant->engine;
	struct learning *l = &engine->learning[profile];
	unsigned int kind = POOL_LEARNED(profile);
	struct pool_profile *learned = &engine->pool->profile[kind];
	uint64_t has;

	*named_r = 0;
	if (engine->config->profile[profile].zygote_per_tenant)
		return POOL_USUAL(profile);
	*named_r = learnable_named(engine->config, script, len) & ~zygote_refused(learned->zygote);
	if (*named_r == 0)
		return POOL_USUAL(profile);
	/* Workers for the scripts that follow, once the zygote has learned. */
	if (tenant->share[kind].target == 0)
		share_grow(&tenant->share[kind]);
	has = zygote_learned(learned->zygote);
	*(*named_r & ~has ? &l->misses : &l->hits) += 1;
	expect(l, engine->config, *named_r & ~has);
	if ((*named_r & has) == 0)
		return POOL_USUAL(profile);
	l->used_ms = clock_ms();
	note_named(l, *named_r & has);
	return kind;
}

void
learning_note(struct engine *engine, unsigned int profile, uint64_t named, uint32_t import_us)
{
	const struct zygote *zygote = engine->pool->profile[POOL_LEARNED(profile)].zygote;

	learning_count(&engine->learning[profile], named & ~zygote_learned(zygote),
		       import_us, clock_ms());
}

/* ---- the zygote's life ---- */

static void
give_up(struct engine *engine, unsigned int profile)
{
	struct learning *l = &engine->learning[profile];
	struct pool_profile *learned = &engine->pool->profile[POOL_LEARNED(profile)];
	struct tenant *tenant;

	if (zygote_owes(learned->zygote) || sched_ring_wants(&learned->ring, SCHED_WAITING))
		return;
	for (unsigned int i = 0; i < TENANT_BUCKETS; i++)
		LIST_FOREACH(tenant, &engine->tenants[i], link)
			share_cool(&tenant->share[learned->kind]);
	zygote_rest(learned->zygote);
	memset(l->spent_us, 0, sizeof(l->spent_us));
	l->asked = 0;
}

void
learning_failed(struct engine *engine, unsigned int profile)
{
	engine->learning[profile].blocked_ms = clock_ms() + BLOCKED_MS;
	zygote_rest(engine->pool->profile[POOL_LEARNED(profile)].zygote);
}

static void
tend_one(struct engine *engine, unsigned int profile, uint64_t now_ms)
{
	struct learning *l = &engine->learning[profile];
	struct zygote *zygote = engine->pool->profile[POOL_LEARNED(profile)].zygote;
	uint64_t idle_ms = (uint64_t)engine->config->pool.idle_seconds * 1000 * IDLE_TIMES;
	uint64_t has = zygote_learned(zygote), more;

	if (!zygote_may_learn(zygote))
		return;
	if (has & ~l->kept) {
		note_named(l, has & ~l->kept);
		learning_save(engine);
	}
	if (now_ms - l->asked_ms >= AGAIN_MS)
		l->asked = 0;
	more = learning_worth(l, now_ms) & ~zygote_refused(zygote) & ~has & ~l->asked;
	if (more != 0 && now_ms >= l->blocked_ms && engine->n_tenants > 0) {
		l->used_ms = l->asked_ms = now_ms;
		l->asked |= more;
		zygote_learn(zygote, has | more);
	} else if (zygote_is_ready(zygote) && (has == 0 || now_ms - l->used_ms >= idle_ms)) {
		give_up(engine, profile);
	}
}

void
learning_tend(struct engine *engine)
{
	uint64_t now_ms = clock_ms();

	if (engine->shutting_down)
		return;
	for (unsigned int i = 0; POOL_USUAL(i) < engine->pool->n_kinds; i++)
		tend_one(engine, i, now_ms);
}
