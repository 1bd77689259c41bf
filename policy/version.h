/* SPDX-License-Identifier: Apache-2.0 */
/* Versions and version specifiers (PEP 440): reading, order, containment. Pure; every text
 * may be hostile and is given with its length, bounded by VERSION_MAX.
 */
#ifndef POLICY_VERSION_H
#define POLICY_VERSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VERSION_MAX 256		/* bytes of one version */
#define VERSION_PARTS_MAX 32	/* parts of the release; also parts of the local label */

/* A version. pre: 'a', 'b' or 'r' (rc); 0: none. post and dev: -1: none. */
struct version {
	uint64_t epoch;
	uint64_t release[VERSION_PARTS_MAX];
	size_t n_release;
	char pre;
	uint64_t pre_number;
	int64_t post, dev;
	char local[VERSION_MAX];	/* lower case, separated by '.'; "": none */
};

/* Parses a version. Spaces around it are skipped. 0, or -EINVAL: text is not a version; numbers may
 * have at most 18 digits. */
int version_read(const char *text, size_t len, struct version *version_r);

/* Compares versions: < 0: a is lower; 0: they are equal; > 0: a is higher. */
int version_compare(const struct version *a, const struct version *b);

/* Parses one specifier, an operator and a version, at *at, and moves *at past it. *contained_r:
 * does it contain version? version NULL: only the grammar is checked. A version that is not valid
 * is contained only in ===. Pre-releases are treated like other versions, because the question is
 * about installed packages. 0 or -EINVAL. */
int specifier_take(const char **at, const char *end, const char *version,
		   bool *contained_r);

/* Is text a version, and equal to the expected one? */
bool version_is(const char *text, size_t len, const char *expected);

/* As specifier_take, for a whole text: a set of specifiers, separated by commas. The empty set
 * contains everything. */
int specifiers_check(const char *text, size_t len, const char *version,
		     bool *contained_r);

#endif
