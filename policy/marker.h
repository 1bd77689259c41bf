/* SPDX-License-Identifier: Apache-2.0 */
/* Environment markers (PEP 508), which are parsed and, if requested, evaluated in one pass. */
#ifndef POLICY_MARKER_H
#define POLICY_MARKER_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/requirement.h"

#define MARKER_DEPTH_MAX 16	/* parentheses within parentheses */

/* Parses a marker, which must be the whole text, and evaluates it: *holds_r. environment NULL: only
 * the grammar is checked. extra: the value of the variable extra. 0 or -EINVAL. */
int marker_check(const char *text, size_t len, const struct marker_environment *environment,
		 const char *extra, bool *holds_r);

#endif
