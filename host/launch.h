/* SPDX-License-Identifier: Apache-2.0 */
/* From a fork of the launcher to a program with a socket to the supervisor.
 *
 *   descriptor 0  /dev/null     1 and 2  standard error     3  the socket
 * and no other descriptor. The process is a child of the supervisor, and is killed when the
 * supervisor ends (PR_SET_PDEATHSIG).
 */
#ifndef HOST_LAUNCH_H
#define HOST_LAUNCH_H

#include <sys/types.h>

struct outer_namespace;

enum launch_as {
	/* Id 0 of the outer namespace, in its own mount namespace below that one. */
	LAUNCH_ROOT_OF_OUTER,
	/* The last id of the outer namespace, which no worker has, without any capability, in the
	 * service's other namespaces. If the outer namespace has only one id, the id of the
	 * service. */
	LAUNCH_STRANGER,
	/* The same with the last id but one, so that it cannot affect a process of the kind above.
	 */
	LAUNCH_SECOND_STRANGER,
};

struct launch_program {
	int fd;				/* O_PATH; borrowed */
	const char *const *argv;	/* NULL-terminated */
	enum launch_as as;
};

/* The step at which a child failed before it became its program; it writes this into the pipe. */
struct launch_trouble {
	int step, error;
};

/* "enter the outer user namespace" ...; NULL: there is no such step. */
const char *launch_step(int step);

/* parent: the supervisor. control: the child's end of its socket; trouble: the writing end of
 * a pipe. Both are borrowed. The pid, with *pidfd_r the caller's, or -errno. */
pid_t launch_start(const struct outer_namespace *outer, const struct launch_program *program,
		   pid_t parent, int control, int trouble, int *pidfd_r);

#endif
