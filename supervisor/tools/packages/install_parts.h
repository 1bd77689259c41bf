/* An installation from inside: what its two modules share. install.c finds out what there is to
 * install, and installs; install_decide.c whether that may be.
 */
#ifndef SUPERVISOR_TOOLS_PACKAGES_INSTALL_PARTS_H
#define SUPERVISOR_TOOLS_PACKAGES_INSTALL_PARTS_H

#include "supervisor/govern/audit.h"
#include "supervisor/tools/packages/install.h"

#define INSTALL_MESSAGE_MAX 3000	/* bytes */

struct consent;
struct environment_ask;
struct event;
struct program;
struct taking;

struct install {
	struct tool_host host;
	install_done *done;
	void *arg;
	json_t *requirements, *indexes;
	json_t *urls;			/* of direct references */
	char *reason;
	bool may_ask;
	struct consent *consent;	/* NULL: nobody has to agree */
	const char *profile;
	struct event *begin;
	struct environment_ask *ask;	/* one of these two at most */
	struct program *program;
	struct taking *taking;
	char *platform;
	json_t *set;			/* what it comes to */
	char request[SET_NAME + 1], name[SET_NAME + 1];
	/* The second worker and the keeper end in any order. */
	bool installing, installed, taken;
	int take_error;
	char *words;			/* of a failed installer */
	char *take_text;
};

/* ---- install.c ---- */

/* It is over, and freed: done is called. */
void install_finish(struct install *install, const struct install_result *result);

/* In the audit log. */
void install_record(const struct install *install, enum audit_event event, const char *why);

/* Installs its set; or it has that. cached: without having to. */
void install_make(struct install *install);
void install_succeed(struct install *install, bool cached);

/* ---- install_decide.c ---- */

/* May its tenant have exactly this set? Goes on with it, asks, or ends it. */
void install_decide(struct install *install);

#endif
