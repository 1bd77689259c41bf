/* Runs in: the supervisor.   Owns: names of a user and its groups. A uid that the system does
 * not know has none: then only sections of the uid itself name it. */
#include "supervisor/subject.h"

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/xalloc.h"

#define GROUPS_MAX 1024

static void
read_groups(gid_t first, struct subject *subject)
{
	gid_t *gid = xcalloc(GROUPS_MAX, sizeof(*gid));
	int n = GROUPS_MAX;

	if (getgrouplist(subject->user, first, gid, &n) < 0)
		n = 0;		/* so many that no section can be sure to be heard */
	subject->group = xcalloc((size_t)n, sizeof(char *));
	for (int i = 0; i < n; i++) {
		const struct group *group = getgrgid(gid[i]);

		if (group)
			subject->group[subject->policy.n_groups++] = xstrdup(group->gr_name);
	}
	free(gid);
}

void
subject_read(const char *principal, struct subject *subject_r)
{
	const struct passwd *user = NULL;

	*subject_r = (struct subject){ .principal = xstrdup(principal) };
	if (strncmp(principal, "uid:", 4) == 0)
		user = getpwuid((uid_t)strtoul(principal + 4, NULL, 10));
	if (user) {
		subject_r->user = xstrdup(user->pw_name);
		read_groups(user->pw_gid, subject_r);
	}
	subject_r->policy.principal = subject_r->principal;
	subject_r->policy.user = subject_r->user;
	subject_r->policy.group = (const char *const *)subject_r->group;
}

void
subject_done(struct subject *subject)
{
	for (size_t i = 0; i < subject->policy.n_groups; i++)
		free(subject->group[i]);
	free(subject->group);
	free(subject->user);
	free(subject->principal);
	memset(subject, 0, sizeof(*subject));
}
