/* SPDX-License-Identifier: Apache-2.0 */
/* Advisories about packages, in the format of OSV (https://ossf.github.io/osv-schema/): which
 * versions of a package they are about. Pure. An advisory is kept as one JSON text, made by
 * advisory_take of a record; its texts may be hostile to a terminal.
 */
#ifndef POLICY_ADVISORY_H
#define POLICY_ADVISORY_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* In the order of the choices of [packages] advisories_deny. */
enum advisory_severity {
	ADVISORY_NEVER = 1,		/* a choice only */
	ADVISORY_LOW,			/* or not known */
	ADVISORY_MODERATE,
	ADVISORY_HIGH,
	ADVISORY_CRITICAL,		/* or the package is malicious */
};

/* The name of a severity as in answers: "low", "moderate" ... Static. */
const char *advisory_severity_name(enum advisory_severity severity);

/* Makes the advisory of one member "affected" of a record. NULL: it is not about a package of PyPI,
 * the record was withdrawn, or it is not valid. name_r: the package's normalised name, malloc'd. */
json_t *advisory_take(const json_t *record, const json_t *affected, char **name_r);

/* Is the advisory about this version (PEP 440) of its package? found_r: with true, what answers and
 * approvers get: {"id", "aliases", "severity", "summary", "fixed"}; the last is missing if no later
 * version is known to be right. */
bool advisory_affects(const json_t *advisory, const char *version, json_t **found_r);

enum advisory_severity advisory_severity(const json_t *found);

/* Adds an advisory of advisory_affects to a list, which takes it over, unless the list has the same
 * one under another of its names: then the one that has a severity stays. */
void advisory_add(json_t *list, json_t *found);

#endif
