/* SPDX-License-Identifier: Apache-2.0 */
/* The fences: filters of system calls that the supervisor, the launcher and the helpers put up for
 * good, before a client's first byte is read. They come after the loss of privilege (privilege.h).
 */
#ifndef HOST_FENCE_H
#define HOST_FENCE_H

/* In the supervisor, when its sockets and files are open and the launcher is running. The process
 * is not dumpable and leaves no core. An allow-list of what its loop does: no new process, program,
 * namespace, mount or executable memory, no socket but AF_UNIX, and signals by pidfd only. Loads
 * the libraries of the name service first, because the fence would refuse that later. Proved by
 * trying. 0, or -errno with *what_r (static) naming the step. */
int fence_supervisor(const char **what_r);

/* The usage helper's: it opens files for reading and answers on its socket. An allow-list. 0 or
 * -errno. */
int fence_usage(void);

/* In the launcher. The processes that it starts inherit it and add filters of their own, so this is
 * a list of calls that none of them needs. 0 or -errno. */
int fence_family(void);

/* In a helper with jobs (jobs.h). As fence_family, and no program, namespace, mount, or signal but
 * SIGKILL. A list of refused calls, because modules of name services are loaded behind it and may
 * use the network. 0 or -errno. */
int fence_helper(void);

/* In a job of a helper, which may parse the answers of a name service. In addition to fence_helper:
 * no further process, and no signal to another process. 0 or -errno. */
int fence_job(void);

#endif
