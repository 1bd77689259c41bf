/* SPDX-License-Identifier: Apache-2.0 */
/* The fences: permanent filters of system calls that the supervisor, the launcher and the helpers
 * load before a client's first byte is read, and after they have dropped privilege (privilege.h).
 */
#ifndef HOST_FENCE_H
#define HOST_FENCE_H

/* For the supervisor, when its sockets and files are open and the launcher is running. The fence is
 * a list of the calls that its loop needs. It allows no new process, program, namespace, mount or
 * executable memory, no socket but AF_UNIX, and no signal except by pidfd. From now on the process
 * is not dumpable and leaves no core. Libraries of the name service are loaded before the fence,
 * which would refuse to load them. As a proof, calls that the fence refuses are tried. 0, or -errno
 * with the name of the step in *what_r (static). */
int fence_supervisor(const char **what_r);

/* For the usage helper: a list of allowed calls. They are those that it needs to read files and to
 * answer on its socket. 0 or -errno. */
int fence_usage(void);

/* For the launcher: a list of refused calls. The processes that it starts inherit this filter and
 * add filters of their own, so the list has only calls that none of them needs. 0 or -errno. */
int fence_family(void);

/* For a fork server (forker.h), whose helpers inherit it: as fence_family, but kcmp is allowed,
 * which the usage helper needs. 0 or -errno. */
int fence_forker(void);

/* For a helper with jobs (jobs.h): refuses what fence_family refuses, and also new programs,
 * namespaces, mounts, and signals other than SIGKILL. It is a list of refused calls, not of allowed
 * ones, because modules of name services are loaded later and may use the network. 0 or -errno. */
int fence_helper(void);

/* For a job of a helper, which may parse the answers of a name service. In addition to fence_helper
 * it refuses new processes, and signals to other processes. 0 or -errno. */
int fence_job(void);

#endif
