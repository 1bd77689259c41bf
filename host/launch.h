/* SPDX-License-Identifier: Apache-2.0 */
/* How the launcher starts a program: from the fork to exec. The program gets these descriptors, and
 * no others:
 *
 *   descriptor 0  /dev/null     1 and 2  standard error     3  a socket to the supervisor
 *
 * The process is a child of the supervisor, and is killed when the supervisor ends
 * (PR_SET_PDEATHSIG).
 */
#ifndef HOST_LAUNCH_H
#define HOST_LAUNCH_H

#include <sys/types.h>

struct outer_namespace;

enum launch_as {
	/* Id 0 of the outer namespace, in a mount namespace of its own below the outer one. */
	LAUNCH_ROOT_OF_OUTER,
	/* The last id of the outer namespace, which no worker has. The program has no capability;
	 * apart from the user namespace, it is in the namespaces of the service. If the outer
	 * namespace has too few ids (slots below 2; for LAUNCH_SECOND_STRANGER below 3), the
	 * program also has the id and the user namespace of the service. */
	LAUNCH_STRANGER,
	/* As LAUNCH_STRANGER, with the id before the last one, so that it cannot affect a process
	 * that has the last one. */
	LAUNCH_SECOND_STRANGER,
};

struct launch_program {
	int fd;				/* O_PATH; borrowed */
	const char *const *argv;	/* NULL-terminated */
	enum launch_as as;
};

/* The step at which a child has failed before it executed its program. The child writes this into
 * the pipe. */
struct launch_trouble {
	int step, error;
};

/* The name of a step, "enter the outer user namespace" ...; NULL: there is no such step. */
const char *launch_step(int step);

/* Starts a program. parent: the supervisor. control: the child's end of its socket; trouble: the
 * writing end of a pipe for struct launch_trouble. Both are borrowed. Returns the pid, and
 * *pidfd_r, which the caller owns; or -errno. */
pid_t launch_start(const struct outer_namespace *outer, const struct launch_program *program,
		   pid_t parent, int control, int trouble, int *pidfd_r);

#endif
