/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and ends the audit log, approvals and the gate, and changes them at a reload.
 */
#ifndef SUPERVISOR_OPERATE_GOVERNANCE_H
#define SUPERVISOR_OPERATE_GOVERNANCE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

struct config;
struct configuration_source;
struct directory;
struct event_base;
struct gate;
struct ledger;
struct governance;
struct socketfile;
struct whole_file;
struct why;

#define ADMIN_SOCKETS 2		/* one from systemd, and one of the service's own */

/* The directory for records of a system service, which belongs to the service's user
 * (systemd/mcp-pythond.tmpfiles). */
#define GOVERNANCE_RECORDS "/var/lib/mcp-pythond/records"

/* Opens the files of the audit log, of approvals and of what is learned. as_service: this is a
 * system service, which has dropped its privilege already; if the configuration names no files,
 * they are in GOVERNANCE_RECORDS. config: held. 0, or -errno with why_r. */
int governance_new(const struct config *config, bool as_service,
		   struct governance **governance_r, struct why *why_r);

/* Opens the operators' sockets: the one that systemd passes as "admin", and the one that the
 * configuration names, for which root may be needed. The descriptors in fd_r belong to the caller
 * (-1: there is none); fd_r is also set after an error. 0, or -errno with why_r. */
int governance_listen(const struct config *config, struct socketfile **file_r,
		      int fd_r[ADMIN_SOCKETS], struct why *why_r);

/* To be called before the first client. base and directory are borrowed. */
void governance_start(struct governance *governance, struct event_base *base,
		      struct directory *directory);

/* Starts the threads that write records (supervisor/fences.h). arg: the governance. 0 or -errno. */
int governance_start_threads(void *arg);

void governance_free(struct governance *governance);	/* NULL is fine */

struct gate *governance_gate(struct governance *governance);
struct ledger *governance_ledger(struct governance *governance);

/* The file of what is learned (engine/learning.h), for the engine. NULL: there is none. */
struct whole_file *governance_learned(struct governance *governance);

/* Calls of governance_reload to its owner. */
struct governance_watcher {
	/* The configuration was read without a mistake. The callee writes the settings that are not
	 * in force yet to the stream "later", as words between commas. */
	void (*on_read)(void *arg, const struct config *config, FILE *later);
	void (*on_done)(void *arg);	/* the reload is complete (gate_reload), or failed */
	void *arg;
};

/* Reads the configuration again (source: as for configuration_read), and puts it in force for
 * everything that starts from now on. If it has mistakes, this is logged, and the old one stays in
 * force. */
void governance_reload(struct governance *governance, const struct configuration_source *source,
		       const struct governance_watcher *watcher);

/* For on_done, when all that depends on the configuration was told: records a reload that
 * succeeded. */
void governance_record_reload(struct governance *governance);

struct governance_reloads {
	time_t last;			/* the time of the last reload; 0: none yet */
	bool last_done;			/* the last reload has succeeded */
	char *text;			/* mistakes, or changes that need a restart; NULL: none */
	uint64_t succeeded, failed;
};

const struct governance_reloads *governance_reloads(const struct governance *governance);

#endif
