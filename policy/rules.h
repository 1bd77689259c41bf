/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what: verdicts about tools, profiles and approvers, from the configuration in
 * force for one tenant (config_for). Pure decisions.
 */
#ifndef POLICY_RULES_H
#define POLICY_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct config_list;

/* A larger value is stricter. */
enum policy_verdict { POLICY_UNSAID, POLICY_ALLOW, POLICY_APPROVE, POLICY_DENY };

/* The verdicts where no key gives one: about run_script, run_repl, install_package, and calls of
 * other servers' tools. default: a person is asked before packages are installed, and before a tool
 * is called that may change something; strict: a person is asked before all of them; open: no
 * person is asked. In the order of the key's choices. */
enum policy_preset { POLICY_PRESET_DEFAULT = 1, POLICY_PRESET_STRICT, POLICY_PRESET_OPEN };

/* May scripts ask their user for input? In the order of the key's choices. */
enum policy_input { POLICY_INPUT_ALLOW = 1, POLICY_INPUT_DENY };

/* "allow", "approve", "deny"; "" for POLICY_UNSAID. */
const char *policy_verdict_name(enum policy_verdict verdict);

/* The verdict about calls of a tool, by its name in the catalog. A tool without a key in [policy]
 * is allowed. For install_package: the verdict about a package that no rule of [packages] names. */
enum policy_verdict policy_tool(const struct config *config, const char *tool);

/* Returns said (an enum policy_verdict), if it is not POLICY_UNSAID; otherwise the verdict of the
 * preset in force. standard: the verdict of the preset "default". */
enum policy_verdict policy_preset_verdict(const struct config *config, uint32_t said,
					  enum policy_verdict standard);

/* A person or program that the kernel or a carrier has identified. */
struct policy_subject {
	const char *principal;		/* "uid:1000", "user:alice" (by a proxy), "token:ci",
					 * "sub:SUB@ISSUER" */
	const char *user;		/* login name of a uid; NULL: none, or not a uid */
	const char *const *group;	/* names of the groups of a uid */
	size_t n_groups;
};

/* Does the word name this subject? A word is a principal, "user:NAME" or "group:NAME". */
bool policy_is(const struct policy_subject *subject, const char *word);

bool policy_is_any(const struct policy_subject *subject, const struct config_list *words);

/* May approver decide about a request of requester? config: the requester's. Users may decide about
 * their own requests only if "self" is among [policy] approvers. A request that came through a
 * proxy under a user's login name counts as the user's own. */
bool policy_may_approve(const struct config *config, const struct policy_subject *approver,
			const struct policy_subject *requester);

/* May the client's own user approve a request, in a form? */
bool policy_asks_session(const struct config *config);

/* Writes what a call waits for until the request with this id is approved, such as "waits for ...".
 * False: nobody but the session's user may approve, so it would wait in vain. */
bool policy_waits_for(const struct config *config, const char *id, char *text_r, size_t size);

/* Writes who has to approve the request with this id, and what to do: a sentence without its point,
 * for models and people. */
void policy_say_who_approves(const struct config *config, const char *id, char *text_r,
			     size_t size);

/* May the tenant's scripts ask the client's user for lines of input? By default only with the
 * preset open, because scripts show hostile text to a person. */
bool policy_allows_input(const struct config *config);

/* May the tenant's scripts run in this profile? */
bool policy_allows_profile(const struct config *config, const char *profile);

#endif
