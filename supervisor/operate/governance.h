/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and ends the audit log, approvals and the gate, and changes them at a reload.
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

/* The directory for records of a system service, which belongs to the service's user
 * (systemd/mcp-pythond.tmpfiles). */
#define GOVERNANCE_RECORDS "/var/lib/mcp-pythond/records"

/* Opens the files that are written to. as_service: a system service, which has dropped its
 * privilege already; if the configuration names no files, they are in GOVERNANCE_RECORDS. config:
 * held. 0, or -errno and why_r. */
int governance_new(const struct config *config, bool as_service,
		   struct governance **governance_r, struct why *why_r);

/* Opens the operators' sockets: the one that systemd passes as "admin", and that of the
 * configuration, which may need root. -1: there is none. fd_r belongs to the caller, and is always
 * set. 0, or -errno and why_r. */
int governance_listen(const struct config *config, struct socketfile **file_r,
		      int fd_r[ADMIN_SOCKETS], struct why *why_r);

/* Call it before the first client. Both are borrowed. */
void governance_start(struct governance *governance, struct event_base *base,
		      struct directory *directory);

void governance_free(struct governance *governance);	/* NULL is fine */

struct gate *governance_gate(struct governance *governance);

/* Reads the files again (source: as for configuration_read), and puts them in force for everything
 * that starts from now on; or logs why not. on_done: called once when that is complete, as by
 * gate_reload. */
void governance_reload(struct governance *governance, const struct configuration_source *source,
		       void (*on_done)(void *arg), void *arg);

struct governance_reloads {
	time_t last;			/* 0: none yet */
	bool last_done;
	char *text;			/* mistakes, or changes that need a restart; NULL: none */
	uint64_t succeeded, failed;
};

const struct governance_reloads *governance_reloads(const struct governance *governance);

#endif
