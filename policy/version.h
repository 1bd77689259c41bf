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

/* 0, or -EINVAL when it is no version (numbers have at most 18 digits). Spaces around it
 * are passed over. */
int version_read(const char *text, size_t len, struct version *version_r);

/* < 0, 0, > 0 */
int version_compare(const struct version *a, const struct version *b);

/* Reads one specifier, operator and version, at *at; moves *at behind it. Is version (NULL:
 * not asked) contained? A version that is no version (the text of it cannot be read) is
 * contained in === alone. Pre-releases are treated like others: it is about what is there
 * already. 0 or -EINVAL. */
int specifier_take(const char **at, const char *end, const char *version,
		   bool *contained_r);

/* A whole set, separated by commas; nothing at all contains everything. */
int specifiers_check(const char *text, size_t len, const char *version,
		     bool *contained_r);

#endif
