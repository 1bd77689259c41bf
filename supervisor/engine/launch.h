/* From a fork of the supervisor to a program of ours with a socket to us.
 *
 *   descriptor 0  /dev/null     1 and 2  our standard error     3  the socket
 * and nothing else open; SIGKILL comes when the supervisor ends (PR_SET_PDEATHSIG).
 */
#ifndef SUPERVISOR_LAUNCH_H
#define SUPERVISOR_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

struct launch_report;
struct outer_namespace;

enum launch_as {
	/* Id 0 of the outer namespace, in a mount namespace of its own below it. */
	LAUNCH_ROOT_OF_OUTER,
	/* Its last id, which no worker has, in our other namespaces and without any
	 * capability; where it has one id only, our own. */
	LAUNCH_STRANGER,
};

struct launch_program {
	int fd;				/* O_PATH; borrowed */
	const char *const *argv;	/* NULL-terminated */
	enum launch_as as;
};

/* A process that was started. Unused descriptors are -1. */
struct launch {
	pid_t pid;			/* 0: none */
	int pidfd;
	int control;			/* our end of its socket, non-blocking */
	struct launch_report *report;
};

void launch_init(struct launch *launch);

/* Closes what is open; the process must be gone. */
void launch_done(struct launch *launch);

/* 0 or -errno; what fails between fork and exec shows when the process has ended:
 * launch_trouble. */
int launch_start(const struct outer_namespace *outer, const struct launch_program *program,
		 struct launch *launch);

/* Whether a step before exec failed: which (static) and errno. */
bool launch_trouble(const struct launch *launch, const char **step_r, int *error_r);

#endif
