/* SPDX-License-Identifier: Apache-2.0 */
/* A principal as policy sees it: its text, and for a uid also the login name and the groups, as far
 * as the host's directory has given them and the configuration names them.
 */
#ifndef GOVERN_SUBJECT_H
#define GOVERN_SUBJECT_H

#include <stdbool.h>
#include <sys/types.h>

#include "policy/rules.h"

struct directory_person;
struct people;

struct subject {
	struct policy_subject policy;	/* points to what follows */
	char *principal, *user;
	char **group;
};

/* The principal alone: no name, no groups. */
void subject_init(struct subject *subject, const char *principal);
void subject_done(struct subject *subject);

/* Is it a uid of the host? Then *uid_r is its number. */
bool subject_is_uid(const char *principal, uid_t *uid_r);

/* Takes the directory's answer about it, to a lookup with the groups of people. */
void subject_learn(struct subject *subject, const struct people *people,
		   const struct directory_person *person);

#endif
