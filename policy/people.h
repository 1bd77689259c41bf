/* SPDX-License-Identifier: Apache-2.0 */
/* The users and groups of the host that a configuration names, as user:NAME or group:NAME, in
 * sections of tenants and in lists of approvers and operators. The host's directory of users is
 * asked only about these, and not at all if none is named.
 */
#ifndef POLICY_PEOPLE_H
#define POLICY_PEOPLE_H

#include <stdbool.h>
#include <stddef.h>

struct config;

struct people {
	bool any;		/* a user or a group is named */
	char **group;		/* names of groups, each once, in the order of strcmp */
	size_t n;
};

/* Collects the users and groups that config names. The caller releases *people_r by people_done.
 * Aborts when out of memory. */
void people_of(const struct config *config, struct people *people_r);
void people_done(struct people *people);

/* Would both lead to the same lookups? */
bool people_are_same(const struct people *a, const struct people *b);

#endif
