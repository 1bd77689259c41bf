/* What a call needs before its tool is started, when policy says that a person has to agree
 * to it: which item that is, and what the person who decides is shown. The run itself does the
 * waiting (mcp/run_permission.c).
 */
#ifndef MCP_PERMISSION_H
#define MCP_PERMISSION_H

#include <stdbool.h>

#include <jansson.h>

#include "govern/approvals.h"
#include "mcp/tool.h"
#include "policy/rules.h"

/* What policy says of a call. An install is decided about by its tool, once it is known what
 * there is to install: it is denied here, or allowed. With POLICY_DENY why_r says what refuses
 * it: the verdict about the tool, or the profile that these arguments ask for. */
enum policy_verdict permission_verdict(const struct tool_host *host, const struct tool *tool,
				       const json_t *arguments, struct why *why_r);

/* The item that is approved: the tool and exactly these arguments. Malloc'd. */
char *permission_item(const struct tool *tool, const json_t *arguments);

/* Was it granted, and is it this call that uses it up? */
bool permission_use(const struct tool_host *host, const char *item);

/* Was the same call refused, and does that stand? Then why_r is the answer. */
bool permission_is_denied(const struct tool_host *host, const struct tool *tool, const char *item,
			  struct why *why_r);

/* May the session's own user be asked, with this client? */
bool permission_by_session(const struct tool_host *host);

/* The form for them, with all arguments (policy/shown.h). False: they have no room in one, and
 * somebody else has to be asked; else for permission_question_done. */
bool permission_question(const struct tool *tool, const json_t *arguments,
			 struct tool_question *question_r);
void permission_question_done(struct tool_question *question);
bool permission_is_given(const struct tool_reply *reply);

/* They have agreed: records it; the grant is for this call. */
void permission_grant(const struct tool_host *host, const struct tool *tool,
		      const char *item, const json_t *arguments);

/* Asks the others. As approvals_ask. */
int permission_ask(const struct tool_host *host, const struct tool *tool, const char *item,
		   const json_t *arguments,
		   void (*on_decided)(void *arg, enum approval_state state, const char *reason),
		   void *arg, const struct approval **approval_r, struct why *why_r);

/* Answers in the tool's own form: nothing was done. */
void permission_refuse(const struct tool_host *host, const struct tool *tool,
		       const char *reason, const char *text);

#endif
