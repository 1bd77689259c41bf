/* SPDX-License-Identifier: Apache-2.0 */
/* Audit log, approvals and gate together, as main makes and ends them, and as a reload changes
 * them.
 */
#ifndef SUPERVISOR_OPERATE_GOVERNANCE_H
#define SUPERVISOR_OPERATE_GOVERNANCE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "supervisor/operate/admin.h"

struct config;
struct configuration_source;
struct directory;
struct event_base;
struct gate;
struct governance;
struct socketfile;
struct why;

/* Where a system service keeps its records. The directory belongs to its own user
 * (systemd/mcp-pythond.tmpfiles). */
#define GOVERNANCE_RECORDS "/var/lib/mcp-pythond/records"

/* Opens what is written to. as_service: a system service, which has given up its privilege
 * already; it keeps its files in its user's directory when the configuration names none.
 * config: held. 0, or -errno and why_r. */
int governance_new(const struct config *config, bool as_service,
		   struct governance **governance_r, struct why *why_r);

/* The operators' sockets: the one that systemd hands over as "admin", and that of the configuration,
 * which is made while that may need root. Either may be none: -1. fd_r: the caller's, and set
 * in any case. 0, or -errno and why_r. */
int governance_listen(const struct config *config, struct socketfile **file_r,
		      int fd_r[ADMIN_SOCKETS], struct why *why_r);

/* Before anything is served. Both are borrowed. */
void governance_start(struct governance *governance, struct event_base *base,
		      struct directory *directory);

void governance_free(struct governance *governance);	/* NULL is fine */

struct gate *governance_gate(struct governance *governance);

/* Reads the files again (source: as for configuration_read) and puts what they say in force for
 * what starts from now on, or says in the log why not. on_done: called once when that is over, as
 * by gate_reload. */
void governance_reload(struct governance *governance, const struct configuration_source *source,
		       void (*on_done)(void *arg), void *arg);

struct governance_reloads {
	time_t last;			/* 0: none yet */
	bool last_done;
	char *text;			/* what was wrong, or needs a restart; NULL: nothing */
	uint64_t succeeded, failed;
};

const struct governance_reloads *governance_reloads(const struct governance *governance);

#endif
