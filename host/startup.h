/* SPDX-License-Identifier: Apache-2.0 */
/* Brings the process into the state in which it may serve clients: the cgroup subtree exists, the
 * launcher has the outer namespace, and this process has no capability.
 *
 * main.c calls startup_privilege once: before a client's first byte is read, and after everything
 * is open for which root is needed (listening sockets, files of the configuration).
 */
#ifndef HOST_STARTUP_H
#define HOST_STARTUP_H

#include <stdbool.h>
#include <sys/types.h>

#include "policy/config.h"

struct cgroup_root;
struct launcher;
struct why;

/* The programs that the launcher starts: O_PATH descriptors. */
struct startup_programs {
	int worker_fd;
	int keeper_fd;		/* -1: no store is configured */
	int egress_fd;		/* -1: it is not installed */
	int tools_fd;		/* -1: no other MCP server is configured */
	int interpreter_fd[CONFIG_PROFILES_MAX];	/* -1: the profile has the usual worker */
	const struct config *(*read)(void *arg);	/* as in struct launcher_options */
	void *read_arg;
	bool answers_without;	/* a service that can start no program still answers its client */
};

/* Makes the cgroups, the outer namespace and the launcher, and drops privilege. as_service: systemd
 * has started this process as a system service, and a missing controller, user or capability is an
 * error; otherwise there is a fallback, with a warning on standard error. 0, and *launcher_r and
 * *cgroups_r (NULL: no cgroups) belong to the caller; or -errno with why_r, and the process must
 * end. */
int startup_privilege(const struct config *config, bool as_service,
		      const struct startup_programs *programs, struct launcher **launcher_r,
		      struct cgroup_root **cgroups_r, struct why *why_r);

/* Did systemd start this process itself as a unit? A program that a unit's shell starts inherits
 * the environment variables, but has another pid. */
bool startup_is_unit(void);

/* The uid that the service will run as. It must own the sockets that this process makes. */
uid_t startup_service_uid(const struct config *config);

/* Opens the programs: mcp-python-worker; mcp-python-egress; mcp-python-keeper, if a store is
 * configured; mcp-python-tools, if another MCP server is configured. Also opens the worker of each
 * profile with another interpreter: the program that the section [interpreter NAME] names, or
 * mcp-python-worker-NAME. Programs without a path are looked for beside this program (a build
 * tree), then where they are installed. Unless as_service, the first four are first looked for by
 * $MCP_PYTHON_WORKER and similar variables. 0 or -errno with why_r. The caller calls
 * startup_close_programs in both cases. */
int startup_open_programs(const struct config *config, bool as_service,
			  struct startup_programs *programs_r, struct why *why_r);
void startup_close_programs(const struct startup_programs *programs);

/* Kills the processes that a failed service has left in its cgroup, waits for their end, and
 * removes the cgroups that it made. For ExecStopPost= only, which runs in that cgroup. 0 or
 * -errno. */
int cgroup_end_service(void);

void cgroup_root_free(struct cgroup_root *cgroups);	/* removes the directories that this
							 * process has made; NULL is fine */

/* ---- a scope of the user's own service manager (scope.c) ----
 *
 * A cgroup with controllers, for a service that the user has started by hand. (The cgroup of a
 * login session belongs to the system.) */

/* Asks the manager for the scope mcp-pythond-PID.scope with Delegate=yes, and waits until this
 * process was moved into it, at most timeout_ms. To be called before this process has a child. The
 * manager removes the scope when the process has ended. 0. Or -errno with why_r: -ENOENT or
 * -ENOMEDIUM: there is no such manager; -ETIMEDOUT: it does not answer. */
int scope_enter(unsigned int timeout_ms, struct why *why_r);

#endif
