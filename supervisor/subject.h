/* Who a principal is to the system: login name and groups of a uid. Asks the system's user
 * database, which is expected to answer at once.
 */
#ifndef SUPERVISOR_SUBJECT_H
#define SUPERVISOR_SUBJECT_H

#include "policy/rules.h"

struct subject {
	struct policy_subject policy;	/* points to what follows */
	char *principal, *user;
	char **group;
};

void subject_read(const char *principal, struct subject *subject_r);
void subject_done(struct subject *subject);

#endif
