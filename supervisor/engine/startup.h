/* From however we were started to the state in which clients may be served: the cgroup
 * subtree is ours, the outer namespace exists, and no capability is left.
 *
 * main.c calls startup_privilege once, before the first client byte is read and after
 * everything that needs root (listening sockets, files of the configuration) is open.
 */
#ifndef SUPERVISOR_STARTUP_H
#define SUPERVISOR_STARTUP_H

#include <stdbool.h>
#include <sys/types.h>

struct cgroup_root;
struct config;
struct outer_namespace;
struct why;

/* as_service: started by systemd as a system service; then a missing controller, user or
 * capability is an error instead of a fallback that is said loudly on standard error.
 * On success *outer_r and *cgroups_r (NULL when no cgroup could be had) belong to the
 * caller. Returns 0 or -errno with why_r filled; then the process must end. */
int startup_privilege(const struct config *config, bool as_service,
		      struct outer_namespace **outer_r, struct cgroup_root **cgroups_r,
		      struct why *why_r);

/* Where a socket made by hand must belong to: the uid that the service will run as. */
uid_t startup_service_uid(const struct config *config);

/* Opens the worker program: $MCP_PYTHON_WORKER if set and not started as a service, else
 * beside this program (a build tree), else the installed one. An O_PATH descriptor or -errno. */
int startup_open_worker(bool as_service);

/* The same for mcp-python-worker-INTERPRETER, beside this program or the installed one. */
int startup_open_interpreter(const char *interpreter);

/* The same for mcp-python-egress, $MCP_PYTHON_EGRESS. */
int startup_open_egress(bool as_service);

void outer_namespace_free(struct outer_namespace *outer);
/* Ends whatever a service that failed has left in its cgroup, waits for it, and removes what it
 * made there. For ExecStopPost= alone, in whose cgroup this process is then: 0, or -errno. */
int cgroup_end_service(void);

void cgroup_root_free(struct cgroup_root *cgroups);	/* removes what it made, NULL is fine */

#endif
