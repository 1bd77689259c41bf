/* SPDX-License-Identifier: Apache-2.0 */
/* The sets of tools that [mcp] toolsets names: the service's own, and sets that replace other
 * servers. Everything that tools keep from call to call is loaded, stopped and dropped here.
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

/* Can the sets that the configuration names be offered together? 0; or -EINVAL, and errors gets a
 * line for each name of a tool that two of them have. */
int toolsets_check(const struct config *config, FILE *errors);

/* Adds the tools of these sets, which toolsets_check has accepted. Adds the resources, too, unless
 * the catalog has a provider of resources already. */
void toolsets_add(struct catalog *catalog, const struct config *config);

/* Reads the files that tools have on disk, and looks for well-known packages; blocks. To be called
 * before the first client. */
void toolsets_load(const struct config *config);

/* Updates the descriptions of tools with what the engine knows at the time of this call: the
 * packages, and how many tools each other server has. True: other packages than before. */
bool toolsets_renew(const struct engine *engine);

/* To be called when the program ends, before the engine is freed. toolsets_stop cancels the calls
 * that continue as jobs; after that no session is in use. toolsets_forget closes the sessions and
 * drops everything else that the tools keep. */
void toolsets_stop(void);
void toolsets_forget(void);

#endif
