/* From however we were started to the state in which clients may be served: the cgroup
 * subtree is ours, the launcher has the outer namespace, and no capability is left.
 *
 * main.c calls startup_privilege once, before the first client byte is read and after
 * everything that needs root (listening sockets, files of the configuration) is open.
 */
#ifndef HOST_STARTUP_H
#define HOST_STARTUP_H

#include <stdbool.h>
#include <sys/types.h>

#include "policy/config.h"

struct cgroup_root;
struct launcher;
struct why;

/* What the launcher is to start: O_PATH descriptors. */
struct startup_programs {
	int worker_fd;
	int keeper_fd;		/* -1: no store is configured */
	int egress_fd;		/* -1: it is not installed */
	int interpreter_fd[CONFIG_PROFILES_MAX];	/* -1: the profile has the usual worker */
};

/* as_service: started by systemd as a system service; then a missing controller, user or
 * capability is an error instead of a fallback that is said loudly on standard error.
 * On success *launcher_r and *cgroups_r (NULL when no cgroup could be had) belong to the
 * caller. Returns 0 or -errno with why_r filled; then the process must end. */
int startup_privilege(const struct config *config, bool as_service,
		      const struct startup_programs *programs, struct launcher **launcher_r,
		      struct cgroup_root **cgroups_r, struct why *why_r);

/* Where a socket made by hand must belong to: the uid that the service will run as. */
uid_t startup_service_uid(const struct config *config);

/* Opens the programs: mcp-python-worker, mcp-python-egress, mcp-python-keeper where there is a
 * store, and for each profile that has another interpreter mcp-python-worker-INTERPRETER. Each
 * beside this program (a build tree), else the installed one; the first three before that by
 * $MCP_PYTHON_WORKER and so on when not started as a service. 0 or -errno with why_r filled;
 * startup_close_programs in any case. */
int startup_open_programs(const struct config *config, bool as_service,
			  struct startup_programs *programs_r, struct why *why_r);
void startup_close_programs(const struct startup_programs *programs);

/* Ends whatever a service that failed has left in its cgroup, waits for it, and removes what it
 * made there. For ExecStopPost= alone, in whose cgroup this process is then: 0, or -errno. */
int cgroup_end_service(void);

void cgroup_root_free(struct cgroup_root *cgroups);	/* removes what it made, NULL is fine */

#endif
