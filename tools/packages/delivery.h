/* Installed packages for an existing session of run_repl: mounted when it is the
 * session's turn, so that the next cell imports them. What a session has it keeps: another set
 * has all of that, as it is, and more.
 */
#ifndef TOOLS_PACKAGES_DELIVERY_H
#define TOOLS_PACKAGES_DELIVERY_H

#include <jansson.h>

#include "mcp/tool.h"
#include "tools/session/repl_sessions.h"

struct delivery;

/* What has to be asked for, so that a session gets what is asked (texts of set_requirement) and
 * keeps what it has. 0 and *list_r (json_decref), or -EEXIST and why_r: it has a version of one
 * of these that is not asked for. */
int delivery_requirements(const struct repl_session *session, const json_t *asked,
			  json_t **list_r, struct why *why_r);

/* trouble: a sentence, and the session is as it was; NULL: it has them. */
typedef void delivery_done(void *arg, const char *trouble);

/* Waits for the turn of the tenant's session of this handle, then mounts them; done is called
 * once, from a later turn of the loop. 0 and *delivery_r, valid until then, or with why_r
 * filled -ESRCH: there is no such session, -EBUSY: too many wait for it. */
int delivery_start(const struct tool_host *host, const char *handle,
		   const struct repl_packages *packages, delivery_done *done, void *arg,
		   struct delivery **delivery_r, struct why *why_r);
void delivery_cancel(struct delivery *delivery);

#endif
