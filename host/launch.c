/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the launcher; run_child() in the forked child, before it becomes the program.
 * Owns:    nothing. */
#include "host/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/helper.h"
#include "host/outer.h"

#define CONTROL_FD 3

enum {
	STEP_DESCRIPTORS,
	STEP_USER_NS,
	STEP_MOUNT_NS,
	STEP_UNSHARE,
	STEP_IDENTITY,
	STEP_DEATH,
	STEP_EXEC,
	STEPS
};
static const char *const step_names[STEPS] = {
	[STEP_DESCRIPTORS] = "arrange descriptors",
	[STEP_USER_NS] = "enter the outer user namespace",
	[STEP_MOUNT_NS] = "enter the outer mount namespace",
	[STEP_UNSHARE] = "unshare the mount namespace",
	[STEP_IDENTITY] = "become its id",
	[STEP_DEATH] = "die with the supervisor",
	[STEP_EXEC] = "execute the program",
};

/* ---- in the child: async-signal-safe calls only ---- */

/* Arranges descriptors 0 to 3 as the header says. Exec closes the others. */
static int
arrange_descriptors(int control, int *program_fd)
{
	int null_fd, program, kept;

	/* A number above those that are about to be assigned. */
	kept = fcntl(control, F_DUPFD_CLOEXEC, 16);
	program = fcntl(*program_fd, F_DUPFD_CLOEXEC, 16);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (kept < 0 || program < 0 || null_fd < 0)
		return -1;
	if (fcntl(2, F_GETFD) < 0 && dup2(null_fd, 2) < 0)
		return -1;
	if (dup2(null_fd, 0) < 0 || dup2(2, 1) < 0 || dup2(kept, CONTROL_FD) < 0)
		return -1;
	*program_fd = program;
	return (int)syscall(SYS_close_range, CONTROL_FD + 1, ~0u,
			    CLOSE_RANGE_CLOEXEC);
}

static int
launch_become(uid_t id, bool may_setgroups)
{
	if (may_setgroups && setgroups(0, NULL) < 0)
		return -1;
	return setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0 ? -1 : 0;
}

/* The steps that are left out for strangers: they keep the current mount namespace, and without
 * spare ids the user namespace too. */
static bool
launch_is_left_out(int step, enum launch_as as, const struct outer_namespace *outer)
{
	if (as == LAUNCH_ROOT_OF_OUTER)
		return false;
	if (step == STEP_MOUNT_NS || step == STEP_UNSHARE)
		return true;
	return (step == STEP_USER_NS || step == STEP_IDENTITY) &&
	       outer->slots < (as == LAUNCH_STRANGER ? 2 : 3);
}

static void
run_child(const struct outer_namespace *outer, const struct launch_program *program, int control,
	  pid_t parent, int trouble)
{
	static const char *const envp[] = {
		"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", NULL,
	};
	uid_t id = program->as == LAUNCH_STRANGER ? outer->slots :
		   program->as == LAUNCH_SECOND_STRANGER ? outer->slots - 1 : 0;
	int user_fd, mount_fd, program_fd = program->fd, step;

	helper_reset_signals();
	setsid();
	user_fd = fcntl(outer->user_fd, F_DUPFD_CLOEXEC, 16);
	mount_fd = fcntl(outer->mount_fd, F_DUPFD_CLOEXEC, 16);
	trouble = fcntl(trouble, F_DUPFD_CLOEXEC, 16);
	for (step = STEP_DESCRIPTORS; step <= STEP_EXEC; step++) {
		int r = 0;

		if (launch_is_left_out(step, program->as, outer))
			continue;
		switch (step) {
		case STEP_DESCRIPTORS:
			r = arrange_descriptors(control, &program_fd);
			break;
		case STEP_USER_NS:
			r = setns(user_fd, CLONE_NEWUSER);
			break;
		case STEP_MOUNT_NS:
			r = setns(mount_fd, CLONE_NEWNS);
			break;
		case STEP_UNSHARE:
			r = unshare(CLONE_NEWNS);
			break;
		case STEP_IDENTITY:
			r = launch_become(id, outer->slots > 0);
			break;
		case STEP_DEATH:
			/* After the change of identity, which would clear it. */
			r = prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (r == 0 && getppid() != parent)
				_exit(1);
			break;
		case STEP_EXEC:
			r = (int)syscall(SYS_execveat, program_fd, "", program->argv,
					 envp, AT_EMPTY_PATH);
			break;
		}
		if (r < 0) {
			struct launch_trouble failed = { step, errno };

			/* The message fits into the pipe. If the pipe has no reader, the error
			 * cannot be reported. */
			if (write(trouble, &failed, sizeof(failed)) < 0)
				_exit(2);
			_exit(1);
		}
	}
}

/* ---- in the launcher ---- */

const char *
launch_step(int step)
{
	return step >= 0 && step < STEPS ? step_names[step] : NULL;
}

pid_t
launch_start(const struct outer_namespace *outer, const struct launch_program *program,
	     pid_t parent, int control, int trouble, int *pidfd_r)
{
	int pidfd = -1;
	struct clone_args args = {
		.flags = CLONE_PARENT | CLONE_PIDFD,
		.pidfd = (uintptr_t)&pidfd,
	};
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		run_child(outer, program, control, parent, trouble);
		_exit(1);
	}
	*pidfd_r = pidfd;
	return pid;
}
