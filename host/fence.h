/* SPDX-License-Identifier: Apache-2.0 */
/* The fences: permanent filters of system calls that the supervisor, the launcher and the helpers
 * load before a client's first byte is read, and after they have dropped privilege (privilege.h).
 */
#ifndef HOST_FENCE_H
#define HOST_FENCE_H

/* In the supervisor, when its sockets and files are open and the launcher is running. The process
 * is not dumpable and leaves no core. An allow-list of the calls of its loop: no new process,
 * program, namespace, mount or executable memory, no socket but AF_UNIX, and signals by pidfd only.
 * Loads the libraries of the name service first, because the fence would refuse that later. Tries
 * refused calls as a proof. 0, or -errno with the name of the step in *what_r (static). */
int fence_supervisor(const char **what_r);

/* In the usage helper: an allow-list for opening files to read and answering on its socket. 0 or
 * -errno. */
int fence_usage(void);

/* In the launcher. The processes that it starts inherit it and add filters of their own, so this is
 * a list of calls that none of them needs. 0 or -errno. */
int fence_family(void);

/* In a helper with jobs (jobs.h). As fence_family, and no program, namespace, mount, or signal but
 * SIGKILL. It is a list of refused calls, because modules of name services are loaded after it and
 * may use the network. 0 or -errno. */
int fence_helper(void);

/* In a job of a helper, which may parse the answers of a name service. In addition to fence_helper:
 * no further process, and no signal to another process. 0 or -errno. */
int fence_job(void);

#endif
