/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing. Decisions without I/O.
 * Reads:   names of tools, which other servers choose, against patterns of the configuration. */
#include "policy/tools.h"

#include <fnmatch.h>
#include <stdint.h>
#include <string.h>

#include "policy/config.h"

bool
tools_allows_server(const struct config *config, const char *server)
{
	const struct config_list *servers = &config->tool_calls.servers;

	for (size_t i = 0; i < servers->n; i++)
		if (strcmp(servers->item[i], "*") == 0 || strcmp(servers->item[i], server) == 0)
			return true;
	return false;
}

/* The server's name ends at the first dot of a pattern; what follows is for the tool's name alone,
 * in which a dot is a character like others. */
static bool
names(const char *pattern, const char *server, const char *tool)
{
	const char *dot = strchr(pattern, '.');
	size_t len = (size_t)(dot - pattern);

	if (!(len == 1 && *pattern == '*') &&
	    (strlen(server) != len || memcmp(pattern, server, len) != 0))
		return false;
	return fnmatch(dot + 1, tool, FNM_NOESCAPE) == 0;
}

static bool
any_names(const struct config_list *patterns, const char *server, const char *tool)
{
	for (size_t i = 0; i < patterns->n; i++)
		if (names(patterns->item[i], server, tool))
			return true;
	return false;
}

enum policy_verdict
tools_verdict(const struct config *config, const char *server, const char *tool, bool read_only)
{
	const struct config_tool_calls *calls = &config->tool_calls;
	uint32_t said = read_only ? calls->read_only : calls->others;

	if (!tools_allows_server(config, server) || any_names(&calls->deny, server, tool))
		return POLICY_DENY;
	if (any_names(&calls->approve, server, tool))
		return POLICY_APPROVE;
	if (any_names(&calls->allow, server, tool))
		return POLICY_ALLOW;
	if (strcmp(server, TOOLS_CLIENT) == 0)
		return POLICY_ALLOW;
	return policy_preset_verdict(config, said, read_only ? POLICY_ALLOW : POLICY_APPROVE);
}
