/* SPDX-License-Identifier: Apache-2.0 */
/* Delivery of installed packages to an existing session of run_repl. They are mounted in a turn of
 * the session, so that the next cell can import them. A session keeps all packages that it has: a
 * new set must contain them unchanged.
 */
#ifndef TOOLS_PACKAGES_DELIVERY_H
#define TOOLS_PACKAGES_DELIVERY_H

#include <jansson.h>

#include "mcp/tool.h"
#include "tools/session/repl_sessions.h"

struct delivery;

/* The requirements to resolve, so that a session gets the requested packages (texts of
 * set_requirement) and keeps its own. 0 and *list_r (json_decref), or -EEXIST and why_r: the
 * session has another version of one of them. */
int delivery_requirements(const struct repl_session *session, const json_t *asked,
			  json_t **list_r, struct why *why_r);

/* trouble: a sentence; the session is unchanged. NULL: it has the packages. */
typedef void delivery_done(void *arg, const char *trouble);

/* Waits for a turn of the tenant's session of this handle, then mounts them. done is called once,
 * from a later turn of the loop. 0 and *delivery_r, valid until then, or with why_r filled -ESRCH:
 * no such session, -EBUSY: too many wait for it. */
int delivery_start(const struct tool_host *host, const char *handle,
		   const struct repl_packages *packages, delivery_done *done, void *arg,
		   struct delivery **delivery_r, struct why *why_r);
void delivery_cancel(struct delivery *delivery);

#endif
