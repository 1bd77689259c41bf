/* SPDX-License-Identifier: Apache-2.0 */
/* The input schema of a tool as tools/list shows it. The list costs the model tokens in every
 * session, so arguments that a model has no reason to choose are accepted but not listed. The
 * schemas of tools mark them by the keyword x-unlisted.
 */
#ifndef MCP_LISTING_H
#define MCP_LISTING_H

#include <stdbool.h>

#define LISTING_KEYWORD "x-unlisted"

/* Returns the schema to list, without the keyword, malloc'd, on one line. schema: the text of a
 * JSON object. all: every property stays, with its bounds. Otherwise the marked properties are left
 * out, and from the others the bounds of lengths and the patterns. If a property was left out,
 * additionalProperties is left out, too. */
char *listing_of(const char *schema, bool all);

#endif
