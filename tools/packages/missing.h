/* SPDX-License-Identifier: Apache-2.0 */
/* Advice about what a script lacked: a module (how its package can be installed, or that it cannot
 * be installed), pip, a program, or the network.
 */
#ifndef TOOLS_PACKAGES_MISSING_H
#define TOOLS_PACKAGES_MISSING_H

#include <stdbool.h>

#include "mcp/tool.h"

#define MISSING_ADVICE 2048	/* bytes of an advice, with its NUL */

/* Writes some sentences without a line break, if a top-level module was not found, or a library
 * asks for one; if pip or the like was called, a shell has not found a program, or no host was
 * reached. What shows this is the error, the notes in its traceback (worker/lacks.py) and the
 * output. The name of a package is given only if it is certain. in_session: the outcome is that
 * of a cell; a session gets packages in another way. False: there is no advice. Names are
 * hostile text: only letters, digits, '_' and, in names of programs and packages, "-.+" are
 * repeated. */
bool missing_advise(const struct tool_host *host, const struct outcome *outcome,
		    bool in_session, char advice_r[MISSING_ADVICE]);

/* The same for one module, which a script imports and the machine does not have. */
void missing_advise_module(const struct tool_host *host, const char *module,
			   char advice_r[MISSING_ADVICE]);

/* Would this requirement, by its normalised name, bring the module? */
bool missing_is_package_of(const struct config *config, const char *package, const char *module);

#endif
