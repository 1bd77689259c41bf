/* Runs in: the supervisor.   Owns: nothing. What mcp-pythond offers. */
#include "supervisor/tools/catalog.h"

void
catalog_fill(struct catalog *catalog, const struct config *config)
{
	catalog_add_own(catalog, config);
}
