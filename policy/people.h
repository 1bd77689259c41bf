/* SPDX-License-Identifier: Apache-2.0 */
/* Whom of the host's users a configuration names: as user:NAME or group:NAME, in sections of
 * tenants and in lists of approvers and operators. What the host's directory of users is asked
 * follows from it, and nothing is asked where nobody is named.
 */
#ifndef POLICY_PEOPLE_H
#define POLICY_PEOPLE_H

#include <stdbool.h>
#include <stddef.h>

struct config;

struct people {
	bool any;		/* somebody is named */
	char **group;		/* names of groups, each once, in the order of strcmp */
	size_t n;
};

/* Those whom config names; for people_done. Aborts when out of memory. */
void people_of(const struct config *config, struct people *people_r);
void people_done(struct people *people);

/* Would the same be asked? */
bool people_are_same(const struct people *a, const struct people *b);

#endif
