/* SPDX-License-Identifier: Apache-2.0 */
/* The sets of tools that [mcp] toolsets names: the service's own and those of the servers that it
 * replaces. Everything that tools keep from call to call is loaded, stopped and dropped here.
 */
#ifndef TOOLS_TOOLSETS_H
#define TOOLS_TOOLSETS_H

#include <stdbool.h>
#include <stdio.h>

struct catalog;
struct config;
struct engine;

/* Does the configuration name this set? */
bool toolsets_wants(const struct config *config, const char *set);

/* Can the sets that the configuration names be offered together? 0, or -EINVAL and a line on
 * errors for each name that two of them have. */
int toolsets_check(const struct config *config, FILE *errors);

/* Adds the tools of those sets, which toolsets_check has accepted, and the resources, unless the
 * catalog has a provider of its own. */
void toolsets_add(struct catalog *catalog, const struct config *config);

/* Reads the tools' files on disk; blocks. Before the first client. */
void toolsets_load(const struct config *config);

/* From now on descriptions of tools have the packages and servers that the engine knows now. */
void toolsets_renew(const struct engine *engine);

/* When the program ends, before the engine is freed. toolsets_stop cancels the calls that continue
 * as jobs; after it no session is in use. toolsets_forget closes the sessions and drops everything
 * else that the tools keep. */
void toolsets_stop(void);
void toolsets_forget(void);

#endif
