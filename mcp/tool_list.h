/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of tools/list: the tools of the catalog that policy does not deny, described for one
 * configuration. A list is made when it is first needed, and shared.
 */
#ifndef MCP_TOOL_LIST_H
#define MCP_TOOL_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct catalog;
struct config;
struct jsonout;
struct revision;
struct tool_description;
struct tool_lists;

/* Written by mcp/tool_list.c only. */
struct tool_list {
	unsigned int holders;
	uint64_t hash;			/* of all texts: lists with the same one are the same for a
					 * client */
	struct tool_description *tool;
	size_t n;
	char *instructions;		/* of the handshake's answer: they tell models the purpose
					 * of the tools */
};

/* The catalog is borrowed. */
struct tool_lists *tool_lists_new(const struct catalog *catalog);
void tool_lists_free(struct tool_lists *lists);		/* NULL is fine */

/* The list for this configuration. The caller holds it until tool_list_release. */
struct tool_list *tool_lists_get(struct tool_lists *lists, const struct config *config);

/* To be called when descriptions may have changed: lists that were made before are not used for new
 * requests. */
void tool_lists_renew(struct tool_lists *lists);

void tool_list_release(struct tool_list *list);		/* NULL is fine */

/* The names of the tools, with commas between; malloc'd. */
char *tool_list_names(const struct tool_list *list);

/* ---- schemas as tools/list shows them ----
 *
 * The list costs the model tokens in every session, so arguments that a model has no reason to
 * choose are accepted but not listed. The schemas of tools mark them by the keyword x-unlisted. */

#define LISTING_KEYWORD "x-unlisted"

/* Returns the schema to list, without the keyword, malloc'd, on one line. schema: the text of a
 * JSON object. all: every property stays, with its bounds. Otherwise the marked properties are left
 * out, and from the others the bounds of lengths and the patterns. If a property was left out,
 * additionalProperties is left out, too. */
char *listing_of(const char *schema, bool all);

#endif
