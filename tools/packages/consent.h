/* SPDX-License-Identifier: Apache-2.0 */
/* Consent of a person to the installation of a set of packages. There is one item for each package
 * that needs an approval: its exact name, version, hash and origin.
 */
#ifndef TOOLS_PACKAGES_CONSENT_H
#define TOOLS_PACKAGES_CONSENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#include "govern/approvals.h"
#include "mcp/tool.h"
#include "policy/rules.h"

struct consent;

/* The advisories about the packages of a set: [{"package", "version", "id", "aliases", "severity",
 * "summary", "fixed"}]; NULL: none are known. */
json_t *consent_advisories(const struct tool_host *host, const json_t *set);

/* Writes a line about one of them: its words are those of whoever wrote the advisory, quoted. */
void consent_say_advisory(FILE *to, const json_t *advisory);

/* May the tenant have exactly this set, by the rules of [packages]? each_r and why_r: as for
 * packages_decide. advisories: those of consent_advisories. */
enum policy_verdict consent_decide(const struct tool_host *host, const json_t *set,
				   const json_t *advisories, enum policy_verdict *each_r,
				   struct why *why_r);

/* Makes the items of a set. each: the verdict about each package of the set. reason: the client's
 * words; NULL: none. Everything is borrowed during the call; host until consent_free. */
struct consent *consent_new(const struct tool_host *host, const json_t *set,
			    const enum policy_verdict *each, const char *reason);
void consent_free(struct consent *consent);	/* NULL is fine; no callback is called any more */

/* May the host's tenant have exactly this set now, without asking a person? */
bool consent_allows(const struct tool_host *host, const json_t *set);

/* Were all items approved before? */
bool consent_is_given(const struct consent *consent);

/* Asks the client's own user, if policy and the client allow it. True: the reply must be passed to
 * consent_take_reply. False: the user was not asked. */
bool consent_ask_session(const struct consent *consent);

/* Takes the user's reply. True: the user has agreed, and this was recorded. */
bool consent_take_reply(const struct consent *consent, const struct tool_reply *reply);

/* Were exactly these packages refused, and is the refusal still valid? If so, why_r has the text of
 * the answer. */
bool consent_is_denied(const struct consent *consent, struct why *why_r);

/* Asks the operators. on_decided (NULL: the caller does not wait) and the result: as of
 * approvals_ask. */
int consent_ask(struct consent *consent,
		void (*on_decided)(void *arg, const struct approval_decision *decision),
		void *arg, const struct approval **approval_r, struct why *why_r);

#endif
