/* Runs in: the supervisor.   Owns: nothing. What mcp-pythond offers. */
#include "mcp/catalog.h"
#include "tools/toolsets.h"

void
catalog_fill(struct catalog *catalog, const struct config *config)
{
	toolsets_add(catalog, config);
}
