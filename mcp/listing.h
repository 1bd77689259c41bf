/* The input schema of a tool as tools/list shows it. A model reads the list before anything else,
 * and pays for each word of it: arguments that a model has no reason to choose are taken, but not
 * shown. In the schemas of tools these have the keyword x-unlisted.
 */
#ifndef MCP_LISTING_H
#define MCP_LISTING_H

#include <stdbool.h>

#define LISTING_KEYWORD "x-unlisted"

/* The schema without the keyword, malloc'd, on one line. Unless all: also without the properties
 * that have it, and without what a model cannot use: bounds of lengths, patterns, and, where a
 * property was left out, the statement that there are no others. schema: the text of an object. */
char *listing_of(const char *schema, bool all);

#endif
