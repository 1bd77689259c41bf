/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing; a catalog's tools are static. */
#include "mcp/catalog.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

const struct tool *
catalog_find(const struct catalog *catalog, const char *name)
{
	for (size_t i = 0; i < catalog->n_tools; i++)
		if (strcmp(catalog->tool[i]->name, name) == 0)
			return catalog->tool[i];
	return NULL;
}

void
catalog_add_tool(struct catalog *catalog, const struct tool *tool)
{
	xassert(catalog->n_tools < CATALOG_TOOLS_MAX && !catalog_find(catalog, tool->name));
	catalog->tool[catalog->n_tools++] = tool;
}
