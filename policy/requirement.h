/* SPDX-License-Identifier: Apache-2.0 */
/* Requirements (PEP 508): "name[extra]>=1,<2; marker" and "name @ url". Pure; every text may
 * be hostile, and is bounded by REQUIREMENT_MAX. A requirement is one line of printable ASCII, as
 * in the grammar of PEP 508, without tabs and "$".
 */
#ifndef POLICY_REQUIREMENT_H
#define POLICY_REQUIREMENT_H

#include <stdbool.h>
#include <stddef.h>

#define REQUIREMENT_MAX 4096		/* bytes of one requirement */
#define REQUIREMENTS_MAX 1024		/* of one script, after merging */

struct requirement {
	char *written;			/* as it was given; NUL after it */
	char *name;			/* normalised (PEP 503): lower case, one '-' between */
	char *extras;			/* normalised, sorted, joined by ','; "": none */
	char *specifiers;		/* "" : any version */
	char *url;			/* of a direct reference; NULL: none */
	char *marker;			/* NULL: none */
};

/* Values of the marker variables, for what asks: NULL when there is no such variable. */
struct marker_environment {
	const char *(*value)(void *arg, const char *variable);
	void *arg;
};

/* 0 and *requirement_r (requirement_done), -EINVAL when it is none, -ENOMEM. */
int requirement_read(const char *text, size_t len, struct requirement *requirement_r);
void requirement_done(struct requirement *requirement);

/* Does its marker hold? extra: normalised, or "" for none. Without a marker it does. */
bool requirement_applies(const struct requirement *requirement,
			 const struct marker_environment *environment, const char *extra);

/* name, len bytes, by PEP 503 into to, which has room for len + 1. */
void requirement_normalise(const char *name, size_t len, char *to);

/* A growing list in which each name stands once: what is said twice of one name is put
 * together into one requirement, unless markers or urls set them apart. */
struct requirements {
	struct requirement *item;
	size_t n;
};

/* 0 (the requirement belongs to the list now), -E2BIG or -ENOMEM (it is released). */
int requirements_add(struct requirements *list, struct requirement *requirement);
void requirements_done(struct requirements *list);

#endif
