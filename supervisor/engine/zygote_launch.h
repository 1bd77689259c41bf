/* From a fork of the supervisor to the program of a zygote, in the outer namespace.
 */
#ifndef SUPERVISOR_ZYGOTE_LAUNCH_H
#define SUPERVISOR_ZYGOTE_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

struct launch_report;
struct outer_namespace;

/* A process that was started. Unused descriptors are -1. */
struct zygote_launch {
	pid_t pid;			/* 0: none */
	int pidfd;
	int control;			/* our end of its socket, non-blocking */
	struct launch_report *report;
};

void zygote_launch_init(struct zygote_launch *launch);

/* Closes what is open; the process must be gone. */
void zygote_launch_done(struct zygote_launch *launch);

/* Starts worker_fd (borrowed) as supervisor/engine/zygote.h describes. 0 or -errno; what fails
 * between fork and exec shows when the process has ended: zygote_launch_trouble. */
int zygote_launch(const struct outer_namespace *outer, int worker_fd,
		  struct zygote_launch *launch);

/* Whether a step before exec failed: which (static) and errno. */
bool zygote_launch_trouble(const struct zygote_launch *launch, const char **step_r,
			   int *error_r);

#endif
