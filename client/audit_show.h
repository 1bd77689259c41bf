/* SPDX-License-Identifier: Apache-2.0 */
/* Selects records of the audit log and prints them. */
#ifndef CLIENT_AUDIT_SHOW_H
#define CLIENT_AUDIT_SHOW_H

#include <stdbool.h>

#include <jansson.h>

#include "client/admin.h"

struct audit_asked {
	const char *path;
	/* NULL: any. */
	const char *tenant, *event, *status, *execution, *text;
	char who[ADMIN_WHO];		/* tenant may point here: the principal of a user */
	char since[32], until[32];	/* times as in records, or their beginnings; "":
					 * any */
	char early[32];			/* records before this time need not be read; "": all */
	json_int_t record;		/* 0: any */
	size_t last;			/* how many of the last ones; 0: all */
	bool follow;
	bool table;			/* for people; otherwise JSON lines */
};

#define AUDIT_LAST_MAX 10000

/* Returns the exit code. */
int audit_show(const struct audit_asked *asked);

#endif
