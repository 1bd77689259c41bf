/* SPDX-License-Identifier: Apache-2.0 */
/* A person's permission, which policy may require before a tool is started: the item that is
 * approved, and the form that the person sees. The run waits for the decision
 * (mcp/run_permission.c).
 */
#ifndef MCP_PERMISSION_H
#define MCP_PERMISSION_H

#include <stdbool.h>

#include <jansson.h>

#include "govern/approvals.h"
#include "mcp/tool.h"
#include "policy/rules.h"

/* The verdict of policy about a call. For the tool that installs packages it is never
 * POLICY_APPROVE: the tool asks for approval later, when it knows the packages. With POLICY_DENY
 * why_r says what refuses the call: the rule about the tool, or the one about the profile in the
 * arguments. */
enum policy_verdict permission_verdict(const struct tool_host *host, const struct tool *tool,
				       const json_t *arguments, struct why *why_r);

/* The arguments with the content that references in them have now; the caller releases them. To be
 * used in place of the client's by all that follows. */
json_t *permission_bind(const struct tool_host *host, const struct tool *tool,
			const json_t *arguments);

/* The item that is approved: the tool and exactly these arguments. Malloc'd. */
char *permission_item(const struct tool *tool, const json_t *arguments);

/* Was the item granted? If so, this call uses the grant up. 1: yes; 0: no; -errno: yes, but that
 * cannot be written down, so nothing may be done. */
int permission_use(const struct tool_host *host, const char *item);

/* Was the same call refused, and is the refusal still valid? If so, why_r has the text of the
 * answer.
 */
bool permission_is_denied(const struct tool_host *host, const struct tool *tool, const char *item,
			  struct why *why_r);

/* May the client's own user be asked, and can this client ask its user? */
bool permission_by_session(const struct tool_host *host);

/* Makes the form for the client's user, with all arguments (policy/shown.h). True: the caller
 * releases it by permission_question_done. False: the arguments do not fit in a form, and an
 * operator must be asked. */
bool permission_question(const struct tool_host *host, const struct tool *tool,
			 const json_t *arguments, struct tool_question *question_r);
void permission_question_done(struct tool_question *question);

/* Has the user agreed in the form? */
bool permission_is_given(const struct tool_reply *reply);

/* To be called when the user has agreed: records that, and grants this call. -errno: this cannot be
 * written down, so the same call would be granted again, and nothing may be done. */
int permission_grant(const struct tool_host *host, const struct tool *tool,
		      const char *item, const json_t *arguments);

/* Asks the operators to approve the item. on_decided and the result are as for approvals_ask. */
int permission_ask(const struct tool_host *host, const struct tool *tool, const char *item,
		   const json_t *arguments,
		   void (*on_decided)(void *arg, const struct approval_decision *decision),
		   void *arg, const struct approval **approval_r, struct why *why_r);

/* Answers in the tool's own form that nothing was done. */
void permission_refuse(const struct tool_host *host, const struct tool *tool,
		       const char *reason, const char *text);

#endif
