/* What a caller can do about a module that its script could not import: have its package
 * installed, where that is possible, or learn that it is not.
 */
#ifndef TOOLS_PACKAGES_MISSING_H
#define TOOLS_PACKAGES_MISSING_H

#include <stdbool.h>

#include "mcp/tool.h"

#define MISSING_ADVICE 2048	/* bytes of an advice, with its NUL */

/* Writes a sentence or two for a reader, without a line break, if the outcome is that a module
 * of the top level was not found. in_session: a cell of a session ran, whose packages are
 * installed in another way. False: there is nothing to advise. The module's name in the outcome
 * is a stranger's text; only letters, digits and '_' of it are repeated. */
bool missing_advise(const struct tool_host *host, const struct outcome *outcome,
		    bool in_session, char advice_r[MISSING_ADVICE]);

#endif
