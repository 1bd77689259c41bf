/* SPDX-License-Identifier: Apache-2.0 */
/* Delivery of installed packages to an existing session of run_repl. The packages are mounted while
 * the delivery has the session's turn, so that the next cell can import them. A session keeps all
 * packages that it has: a new set must contain them unchanged.
 */
#ifndef TOOLS_PACKAGES_DELIVERY_H
#define TOOLS_PACKAGES_DELIVERY_H

#include <jansson.h>

#include "mcp/tool.h"
#include "tools/session/repl_sessions.h"

struct delivery;

/* Makes the list of requirements to resolve, so that a session gets the requested packages and
 * keeps its own. asked: texts of set_requirement. 0 and *list_r, which the caller releases; or
 * -EEXIST with why_r: the session has another version of a requested package. */
int delivery_requirements(const struct repl_session *session, const json_t *asked,
			  json_t **list_r, struct why *why_r);

/* trouble NULL: the session has the packages. Otherwise it is a sentence, and the session is
 * unchanged. */
typedef void delivery_done(void *arg, const char *trouble);

/* Waits for the turn of the tenant's session with this handle, then mounts the packages. done is
 * called once, from a later turn of the loop. 0 and *delivery_r, valid until then. Or, with why_r,
 * -ESRCH: there is no such session; -EBUSY: too many calls wait for its turn. */
int delivery_start(const struct tool_host *host, const char *handle,
		   const struct repl_packages *packages, delivery_done *done, void *arg,
		   struct delivery **delivery_r, struct why *why_r);
void delivery_cancel(struct delivery *delivery);

#endif
