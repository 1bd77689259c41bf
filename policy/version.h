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
#define VERSION_PARTS_MAX 32	/* of its release; and of its local label */

/* pre: 0 none, else 'a', 'b' or 'r' (rc). post and dev: -1 none. */
struct version {
	uint64_t epoch;
	uint64_t release[VERSION_PARTS_MAX];
	size_t n_release;
	char pre;
	uint64_t pre_number;
	int64_t post, dev;
	char local[VERSION_MAX];	/* lower case, separated by '.'; "": none */
};

/* 0, or -EINVAL: it is not a version (numbers have at most 18 digits). Spaces around it are
 * skipped. */
int version_read(const char *text, size_t len, struct version *version_r);

/* < 0, 0, > 0 */
int version_compare(const struct version *a, const struct version *b);

/* Reads one specifier, an operator and a version, at *at, and moves *at past it. *contained_r:
 * whether it contains version (NULL: not wanted). A text that is not a valid version is contained
 * only in ===. Pre-releases are treated like other versions, because the question is about
 * installed packages. 0 or -EINVAL. */
int specifier_take(const char **at, const char *end, const char *version,
		   bool *contained_r);

/* Is the text a version, and the same as the expected one? */
bool version_is(const char *text, size_t len, const char *expected);

/* Checks a whole set, separated by commas; the empty set contains everything. */
int specifiers_check(const char *text, size_t len, const char *version,
		     bool *contained_r);

#endif
