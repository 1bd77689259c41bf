/* SPDX-License-Identifier: Apache-2.0 */
/* Consent of a person to the installation of a set of packages. There is one item for each package
 * that needs an approval: its exact name, version, hash and origin.
 */
#ifndef TOOLS_PACKAGES_CONSENT_H
#define TOOLS_PACKAGES_CONSENT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "govern/approvals.h"
#include "mcp/tool.h"
#include "policy/rules.h"

struct consent;

/* each: the verdict about each package of the set. Everything is borrowed for the call, and host
 * for longer. reason: the client's words; NULL: none. */
struct consent *consent_new(const struct tool_host *host, const json_t *set,
			    const enum policy_verdict *each, const char *reason);
void consent_free(struct consent *consent);	/* NULL is fine; no callback is called any more */

/* May the host's tenant have exactly this set now, without asking a person? */
bool consent_allows(const struct tool_host *host, const json_t *set);

/* Were all items approved before? */
bool consent_is_given(const struct consent *consent);

/* Asks the client's own user, if policy and the client allow it. True: consent_take_reply must get
 * the reply, and records a yes. False: the user was not asked. */
bool consent_ask_session(const struct consent *consent);
bool consent_take_reply(const struct consent *consent, const struct tool_reply *reply);

/* Were exactly these packages refused, and is the refusal still valid? Then why_r is the answer. */
bool consent_is_denied(const struct consent *consent, struct why *why_r);

/* Asks the operators. on_decided NULL: the caller does not wait. As approvals_ask. */
int consent_ask(struct consent *consent,
		void (*on_decided)(void *arg, const struct approval_decision *decision),
		void *arg, const struct approval **approval_r, struct why *why_r);

#endif
