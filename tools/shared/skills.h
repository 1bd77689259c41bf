/* SPDX-License-Identifier: Apache-2.0 */
/* Skills: short texts that say how to work with the tools, served as skill:// resources by the
 * extension io.modelcontextprotocol/skills. Those of this service are part of the program; an
 * operator adds folders with a SKILL.md each in [skills] directory. A skill is that one file.
 */
#ifndef TOOLS_SHARED_SKILLS_H
#define TOOLS_SHARED_SKILLS_H

#include "mcp/catalog.h"

/* Reads the skills. To be called once, at the start. Of two with the same name the operator's is
 * served. A skill that breaks a rule is left out, and a log line says why. */
const struct skill_provider *skills_load(const struct config *config);

/* The skill whose SKILL.md has this address. NULL: there is none. */
const struct skill *skills_find(const char *uri);

void skills_forget(void);

#endif
