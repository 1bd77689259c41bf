/* SPDX-License-Identifier: Apache-2.0 */
/* What tools/list says to whom: the tools of the catalog that policy does not deny, as their
 * descriptions are under one configuration. Made when it is first asked for, and shared.
 */
#ifndef MCP_TOOL_LIST_H
#define MCP_TOOL_LIST_H

#include <stdbool.h>

struct catalog;
struct config;
struct jsonout;
struct revision;
struct tool_list;
struct tool_lists;

/* The catalog is borrowed. */
struct tool_lists *tool_lists_new(const struct catalog *catalog);
void tool_lists_free(struct tool_lists *lists);		/* NULL is fine */

/* Held by its caller, for tool_list_release. */
struct tool_list *tool_lists_get(struct tool_lists *lists, const struct config *config);

/* Descriptions may be others now: those that were made are not given to anybody any more. */
void tool_lists_renew(struct tool_lists *lists);

void tool_list_release(struct tool_list *list);		/* NULL is fine */

/* Would a client see a difference? */
bool tool_list_differs(const struct tool_list *list, const struct tool_list *other);

/* What a handshake tells models first: which of the tools that are listed is for what. Valid as
 * long as the list is held. */
const char *tool_list_instructions(const struct tool_list *list);

/* The result of tools/list as the revision shows it. */
void tool_list_write(const struct tool_list *list, const struct revision *revision,
		     struct jsonout *out);

#endif
