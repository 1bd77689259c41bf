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
	char *written;			/* the original text; followed by NUL */
	char *name;			/* normalised (PEP 503): lower case, parts joined by '-' */
	char *extras;			/* normalised, sorted, joined by ','; "": none */
	char *specifiers;		/* "" : any version */
	char *url;			/* of a direct reference; NULL: none */
	char *marker;			/* NULL: none */
};

/* Gives the values of marker variables; NULL: there is no such variable. */
struct marker_environment {
	const char *(*value)(void *arg, const char *variable);
	void *arg;
};

/* Parses a requirement. 0 and *requirement_r, which requirement_done releases; -EINVAL: text is not
 * a requirement; or -ENOMEM. */
int requirement_read(const char *text, size_t len, struct requirement *requirement_r);
void requirement_done(struct requirement *requirement);

/* Is the requirement's marker true, or has it no marker? extra: normalised; "": none. */
bool requirement_applies(const struct requirement *requirement,
			 const struct marker_environment *environment, const char *extra);

/* Writes the normalised form (PEP 503) of a name of len bytes. to: has room for len + 1 bytes. */
void requirement_normalise(const char *name, size_t len, char *to);

/* A growing list with one requirement for each name: two requirements of the same name are merged,
 * unless their markers or urls differ. */
struct requirements {
	struct requirement *item;
	size_t n;
};

/* Adds a requirement, which belongs to the list from now on. 0; or -E2BIG or -ENOMEM, and the
 * requirement was released. */
int requirements_add(struct requirements *list, struct requirement *requirement);

/* Removes the requirements of this name (normalised). */
void requirements_remove(struct requirements *list, const char *name);
void requirements_done(struct requirements *list);

/* ---- markers (PEP 508), which marker.c parses and, if requested, evaluates in one pass ---- */

#define MARKER_DEPTH_MAX 16	/* parentheses within parentheses */

/* Parses a marker, which must be the whole text, and evaluates it: *holds_r. environment NULL: only
 * the grammar is checked. extra: the value of the variable extra. 0 or -EINVAL. */
int marker_check(const char *text, size_t len, const struct marker_environment *environment,
		 const char *extra, bool *holds_r);

#endif
