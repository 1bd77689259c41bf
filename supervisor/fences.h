/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's last step before its loop, in which the first client is served: from then on it
 * opens only files below the folders that it works in, and makes few system calls.
 */
#ifndef SUPERVISOR_FENCES_H
#define SUPERVISOR_FENCES_H

struct cgroup_root;
struct config;
struct configuration_source;
struct endpoints;

/* What names the folders; all borrowed. */
struct fences_of {
	const struct config *config;
	const struct configuration_source *source;
	const struct endpoints *endpoints;
	const struct cgroup_root *cgroups;	/* NULL: none */
};

/* For good. Without Landlock in the kernel all files stay open; that is logged, and the status says
 * so. 0 or -errno, logged. */
int fences_enter(const struct fences_of *of);

#endif
