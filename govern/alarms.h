/* SPDX-License-Identifier: Apache-2.0 */
/* Unusual use of the service by one tenant: more executions, failures, denials, new hosts or
 * processor time than [alarms] allows, and than the tenant has used before. Each number decays, so
 * that it costs the same however much a tenant does. Pure: the caller passes the time, in
 * milliseconds of a monotonic clock.
 */
#ifndef GOVERN_ALARMS_H
#define GOVERN_ALARMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config_alarms;

enum alarm_pattern {
	ALARM_EXECUTIONS,		/* that were started */
	ALARM_FAILURES,			/* executions that did not end well */
	ALARM_DENIALS,			/* by policy, a quota or an approver */
	ALARM_NEW_HOSTS,		/* that scripts reached for the first time */
	ALARM_CPU_SECONDS,
	ALARM_PATTERNS
};

/* The name of a pattern, which is that of its key: "executions" ... Static. */
const char *alarm_name(enum alarm_pattern pattern);

#define ALARM_HOST_SETS 64
#define ALARM_HOSTS_OF_SET 4

/* The numbers of a tenant. Zeroed: it has used nothing. */
struct alarms {
	struct alarm_count {
		double recent;		/* in about ten minutes */
		double usual;		/* in about a day */
		uint64_t counted_ms;	/* the time of both; 0: nothing was counted */
		uint64_t raised_ms;	/* the time of the last alarm; 0: none */
		uint64_t raised_count;	/* recent and usual, as they were then */
		uint64_t raised_usual;
	} count[ALARM_PATTERNS];
	uint64_t (*hosts)[ALARM_HOSTS_OF_SET];	/* hashes of those reached; NULL: none */
};

void alarms_done(struct alarms *alarms);

/* Counts amount. True: the pattern has become unusual, and there was no alarm about it within
 * [alarms] period_seconds; count[pattern].raised_count and raised_usual have the numbers. */
bool alarms_add(struct alarms *alarms, const struct config_alarms *bounds,
		enum alarm_pattern pattern, double amount, uint64_t now_ms);

/* Notes that a script has reached a host. True: for the first time, as far as is known: the hosts
 * that were reached last are. */
bool alarms_is_new_host(struct alarms *alarms, const char *host, size_t len);

/* Was there an alarm within the period? */
bool alarms_is_raised(const struct alarms *alarms, const struct config_alarms *bounds,
		      enum alarm_pattern pattern, uint64_t now_ms);

#endif
