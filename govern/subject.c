/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: names of a user and its groups.
 * A uid that the host does not know has no names: only sections of the uid itself apply to it. */
#include "govern/subject.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "host/directory.h"
#include "policy/people.h"

void
subject_init(struct subject *subject, const char *principal)
{
	*subject = (struct subject){ .principal = xstrdup(principal) };
	subject->policy.principal = subject->principal;
}

static void
subject_forget(struct subject *subject)
{
	for (size_t i = 0; i < subject->policy.n_groups; i++)
		free(subject->group[i]);
	free(subject->group);
	free(subject->user);
	subject->user = NULL;
	subject->group = NULL;
	subject->policy = (struct policy_subject){ .principal = subject->principal };
}

void
subject_done(struct subject *subject)
{
	subject_forget(subject);
	free(subject->principal);
	memset(subject, 0, sizeof(*subject));
}

bool
subject_is_uid(const char *principal, uid_t *uid_r)
{
	if (strncmp(principal, "uid:", 4) != 0)
		return false;
	*uid_r = (uid_t)strtoul(principal + 4, NULL, 10);
	return true;
}

void
subject_learn(struct subject *subject, const struct people *people,
	      const struct directory_person *person)
{
	subject_forget(subject);
	if (!person->user)
		return;
	subject->user = xstrdup(person->user);
	subject->group = xcalloc(people->n + 1, sizeof(char *));
	for (size_t i = 0; i < people->n; i++)
		if (person->member[i])
			subject->group[subject->policy.n_groups++] = xstrdup(people->group[i]);
	subject->policy.user = subject->user;
	subject->policy.group = (const char *const *)subject->group;
}
