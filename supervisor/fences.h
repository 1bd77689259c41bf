/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's last step before its loop and the first client: from then on it can open only
 * files below the folders that it works in, and make only the system calls that it needs.
 */
#ifndef SUPERVISOR_FENCES_H
#define SUPERVISOR_FENCES_H

struct cgroup_root;
struct config;
struct configuration_source;
struct endpoints;

/* The objects that name the folders; all borrowed. */
struct fences_of {
	const struct config *config;
	const struct configuration_source *source;
	const struct endpoints *endpoints;
	const struct cgroup_root *cgroups;	/* NULL: none */
	/* Starts the threads. The fence of files holds for threads that are started later only, and
	 * behind that of system calls none can be started. 0 or -errno. */
	int (*start_threads)(void *arg);
	void *arg;
};

/* Enters the fences permanently. If the kernel has no Landlock, files are not restricted; this is
 * logged and shown in the status. 0 or -errno; the error is logged. */
int fences_enter(const struct fences_of *of);

#endif
