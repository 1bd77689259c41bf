/* SPDX-License-Identifier: Apache-2.0 */
/* Advice about what a script lacked: a module that it could not import (how its package can be
 * installed, or that it cannot be installed), or the network.
 */
#ifndef TOOLS_PACKAGES_MISSING_H
#define TOOLS_PACKAGES_MISSING_H

#include <stdbool.h>

#include "mcp/tool.h"

#define MISSING_ADVICE 2048	/* bytes of an advice, with its NUL */

/* Writes one or two sentences without a line break, if a script has failed because a top-level
 * module was not found, because a library asks for a package, because pip was called, or because no
 * host may be reached. in_session: the outcome is that of a
 * cell; a session gets packages in another way. False: there is no advice. The module's name is
 * hostile text: only its letters, digits and '_' are repeated. */
bool missing_advise(const struct tool_host *host, const struct outcome *outcome,
		    bool in_session, char advice_r[MISSING_ADVICE]);

#endif
