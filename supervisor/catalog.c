/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * The tools and resources of mcp-pythond. */
#include "mcp/catalog.h"
#include "tools/toolsets.h"

void
catalog_fill(struct catalog *catalog, const struct config *config)
{
	toolsets_add(catalog, config);
}
