/* Runs in: the supervisor; run_child() in the forked child, before it becomes the
 * program.
 * Owns:    what is needed to hear of the child. */
#include "supervisor/engine/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/own.h"
#include "supervisor/engine/outer.h"

#define CONTROL_FD 3

/* What the child tells of a step that failed before exec: memory that both see. */
struct launch_report {
	volatile int step, error;
};

static const char *const launch_steps[] = {
	"start", "arrange descriptors", "enter the outer user namespace",
	"enter the outer mount namespace", "unshare the mount namespace",
	"become its id", "die with the supervisor", "execute the program",
};
enum {
	STEP_START,
	STEP_DESCRIPTORS,
	STEP_USER_NS,
	STEP_MOUNT_NS,
	STEP_UNSHARE,
	STEP_IDENTITY,
	STEP_DEATH,
	STEP_EXEC,
};

/* ---- in the child: async-signal-safe calls only ---- */

/* Descriptors 0 to 3 as the header says. The others go with exec. */
static int
arrange_descriptors(int control, int *program_fd)
{
	int null_fd, program, kept;

	/* Out of the way of the numbers that are about to be taken. */
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
become(uid_t id, bool may_setgroups)
{
	static const struct rlimit no_core = { 0, 0 };

	if (may_setgroups && setgroups(0, NULL) < 0)
		return -1;
	setrlimit(RLIMIT_CORE, &no_core);
	return setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0 ? -1 : 0;
}

/* A stranger's steps: it keeps the mount namespace that we are in, and where there is no id
 * to spare, the user namespace too. */
static bool
is_left_out(int step, enum launch_as as, const struct outer_namespace *outer)
{
	if (as == LAUNCH_ROOT_OF_OUTER)
		return false;
	if (step == STEP_MOUNT_NS || step == STEP_UNSHARE)
		return true;
	return (step == STEP_USER_NS || step == STEP_IDENTITY) && outer->slots < 2;
}

static void
reset_signals(void)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int signal = 1; signal < NSIG; signal++)
		sigaction(signal, &action, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void
run_child(const struct outer_namespace *outer, const struct launch_program *program, int control,
	  pid_t parent, struct launch_report *report)
{
	static const char *const envp[] = {
		"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", NULL,
	};
	uid_t id = program->as == LAUNCH_STRANGER ? outer->slots : 0;
	int user_fd, mount_fd, program_fd = program->fd, step;

	reset_signals();
	setsid();
	user_fd = fcntl(outer->user_fd, F_DUPFD_CLOEXEC, 16);
	mount_fd = fcntl(outer->mount_fd, F_DUPFD_CLOEXEC, 16);
	for (step = STEP_DESCRIPTORS; step <= STEP_EXEC; step++) {
		int r = 0;

		if (is_left_out(step, program->as, outer))
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
			r = become(id, outer->slots > 0);
			break;
		case STEP_DEATH:
			/* A change of identity clears it, so it comes after that. */
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
			report->error = errno;
			report->step = step;
			_exit(1);
		}
	}
}

/* ---- in the supervisor ---- */

void
launch_init(struct launch *launch)
{
	*launch = (struct launch){ .pidfd = -1, .control = -1 };
}

void
launch_done(struct launch *launch)
{
	if (launch->control >= 0)
		close(launch->control);
	if (launch->pidfd >= 0)
		close(launch->pidfd);
	if (launch->report != NULL)
		munmap(launch->report, sizeof(*launch->report));
	launch_init(launch);
}

bool
launch_trouble(const struct launch *launch, const char **step_r,
		      int *error_r)
{
	if (launch->report == NULL || launch->report->step == STEP_START)
		return false;
	*step_r = launch_steps[launch->report->step];
	*error_r = launch->report->error;
	return true;
}

int
launch_start(const struct outer_namespace *outer, const struct launch_program *program,
	     struct launch *launch)
{
	own_fd int ours = -1, theirs = -1;
	pid_t parent = getpid(), pid;
	int pair[2];
	void *page;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	page = mmap(NULL, sizeof(*launch->report), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return -errno;
	launch->report = page;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		run_child(outer, program, theirs, parent, launch->report);
		_exit(1);
	}
	launch->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (launch->pidfd < 0) {
		int error = errno;

		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return -error;
	}
	launch->pid = pid;
	launch->control = give_fd(ours);
	return 0;
}
