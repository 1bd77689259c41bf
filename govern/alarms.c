/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the hashes of hosts that a tenant's scripts have reached. */
#include "govern/alarms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "policy/chain.h"
#include "policy/config.h"

#define RECENT_MS 600000.0
#define USUAL_MS 86400000.0
#define HASH_DIGITS 16		/* of 64 bits */

const char *
alarm_name(enum alarm_pattern pattern)
{
	static const char *const names[ALARM_PATTERNS] = {
		[ALARM_EXECUTIONS] = "executions",
		[ALARM_FAILURES] = "failures",
		[ALARM_DENIALS] = "denials",
		[ALARM_NEW_HOSTS] = "new_hosts",
		[ALARM_CPU_SECONDS] = "cpu_seconds",
	};

	return names[pattern];
}

void
alarms_done(struct alarms *alarms)
{
	free(alarms->hosts);
	alarms->hosts = NULL;
}

static uint32_t
most_of(const struct config_alarms *bounds, enum alarm_pattern pattern)
{
	const uint32_t most[ALARM_PATTERNS] = {
		[ALARM_EXECUTIONS] = bounds->executions,
		[ALARM_FAILURES] = bounds->failures,
		[ALARM_DENIALS] = bounds->denials,
		[ALARM_NEW_HOSTS] = bounds->new_hosts,
		[ALARM_CPU_SECONDS] = bounds->cpu_seconds,
	};

	return most[pattern];
}

bool
alarms_is_raised(const struct alarms *alarms, const struct config_alarms *bounds,
		 enum alarm_pattern pattern, uint64_t now_ms)
{
	uint64_t raised_ms = alarms->count[pattern].raised_ms;

	return raised_ms && now_ms - raised_ms < (uint64_t)bounds->period_seconds * 1000;
}

bool
alarms_add(struct alarms *alarms, const struct config_alarms *bounds,
	   enum alarm_pattern pattern, double amount, uint64_t now_ms)
{
	struct alarm_count *count = &alarms->count[pattern];
	double passed_ms = count->counted_ms ? (double)(now_ms - count->counted_ms) : 0;
	uint32_t most = most_of(bounds, pattern);
	double before;

	count->recent *= exp(-passed_ms / RECENT_MS);
	count->usual *= exp(-passed_ms / USUAL_MS);
	before = count->usual * (RECENT_MS / USUAL_MS);
	count->recent += amount;
	count->usual += amount;
	count->counted_ms = now_ms;
	if (most == 0 || count->recent < most || count->recent < before * bounds->unusual_times ||
	    alarms_is_raised(alarms, bounds, pattern, now_ms))
		return false;
	count->raised_ms = now_ms;
	count->raised_count = (uint64_t)llround(count->recent);
	count->raised_usual = (uint64_t)llround(before);
	return true;
}

/* A secure hash: a script must not find a host that is taken for another one. */
static uint64_t
hash_of_host(const char *host, size_t len)
{
	char digits[CHAIN_DIGITS + 1];

	chain_hash(host, len, digits);
	digits[HASH_DIGITS] = '\0';
	return strtoull(digits, NULL, 16) | 1;	/* 0: a free place */
}

bool
alarms_is_new_host(struct alarms *alarms, const char *host, size_t len)
{
	uint64_t hash = hash_of_host(host, len), *set;

	if (!alarms->hosts)
		alarms->hosts = xcalloc(ALARM_HOST_SETS, sizeof(*alarms->hosts));
	set = alarms->hosts[(hash >> 1) % ALARM_HOST_SETS];
	for (size_t i = 0; i < ALARM_HOSTS_OF_SET; i++)
		if (set[i] == hash)
			return false;
	memmove(set + 1, set, (ALARM_HOSTS_OF_SET - 1) * sizeof(*set));
	set[0] = hash;
	return true;
}
