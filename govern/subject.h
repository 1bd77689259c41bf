/* SPDX-License-Identifier: Apache-2.0 */
/* A principal as policy sees it: its text, and for a uid also the login name and the groups. Only
 * groups that the configuration names are known, and only if the host's directory has answered.
 */
#ifndef GOVERN_SUBJECT_H
#define GOVERN_SUBJECT_H

#include <stdbool.h>
#include <sys/types.h>

#include "policy/rules.h"

struct directory_person;
struct people;

struct subject {
	struct policy_subject policy;	/* points to the members below */
	char *principal, *user;
	char **group;
};

/* Makes a subject of the principal alone, without a name and groups. */
void subject_init(struct subject *subject, const char *principal);
void subject_done(struct subject *subject);

/* Is the principal a uid of the host? If so, *uid_r is its number. */
bool subject_is_uid(const char *principal, uid_t *uid_r);

/* Takes the directory's answer to a lookup of the subject's uid with the groups of people. The
 * owner of a subordinate uid is another subject. */
void subject_learn(struct subject *subject, const struct people *people,
		   const struct directory_person *person);

#endif
