/* SPDX-License-Identifier: Apache-2.0 */
/* Installation: makes an environment in the store from requirements. If the store has an
 * environment for these requirements, it is used. Otherwise the requirements are resolved; the
 * resulting set is checked by policy, approved, installed and stored. Used by install_package, and
 * for scripts that declare dependencies.
 */
#ifndef TOOLS_PACKAGES_INSTALL_H
#define TOOLS_PACKAGES_INSTALL_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "mcp/tool.h"
#include "policy/requirement.h"
#include "tools/sets/set.h"

struct install;

enum install_status {
	INSTALL_OK,
	INSTALL_APPROVAL_PENDING,
	INSTALL_DENIED,
	INSTALL_ERROR,
};

const char *install_status_name(enum install_status status);

/* Valid during the call only; all borrowed. */
struct install_result {
	enum install_status status;
	const char *message;		/* for people; may quote the installer */
	const json_t *packages;		/* a set (set.h); NULL: not known */
	const json_t *advisories;	/* about these (consent_advisories); NULL: none */
	const char *environment;	/* with INSTALL_OK: its name in the store; NULL: all of it
					 * was there already, and nothing has been made */
	const char *approval_id;	/* with INSTALL_APPROVAL_PENDING */
	const char *job;		/* the job that waits for the approval; NULL: none does */
	/* With INSTALL_ERROR: the outcome of a worker that ended abnormally; NULL: none did. */
	const struct outcome *trouble;
};

struct install_request {
	const json_t *requirements;	/* texts of set_requirement */
	const char *profile;		/* as environment_profile gave it */
	const char *reason;		/* a client's words; NULL: none */
	const json_t *has;		/* the set of the session that asks; NULL: there is none */
	bool fills;			/* the set only has what the profile lacks: a package of the
					 * profile that satisfies a dependency is not installed */
};

typedef void install_done(void *arg, const struct install_result *result);

/* Can packages be installed? 0, or -ENOSYS with why_r: no index or no store is configured. */
int install_is_configured(const struct config *config, struct why *why_r);

/* Starts an installation. done is called once, from a later turn of the loop. Progress is sent to
 * the host. 0 and *install_r, valid until done is called; -ENOSYS: as for install_is_configured; or
 * -EACCES: policy denies these requirements before they are resolved. */
int install_start(const struct tool_host *host, const struct install_request *request,
		  install_done *done, void *arg, struct install **install_r,
		  struct why *why_r);

/* The installation while it waits for an approval: INSTALL_APPROVAL_PENDING, without a message.
 * Valid until the next turn of the loop. */
void install_waiting(const struct install *install, struct install_result *result_r);

/* Takes the reply to a question that the installation has asked by its host. May call done. */
void install_reply(struct install *install, const struct tool_reply *reply);

void install_cancel(struct install *install, enum cancel_reason reason);

#endif
