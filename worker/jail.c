/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a new worker's first process (enter), the script's process (prove, limit).
 * Owns:    nothing that outlives the worker.
 * A step that fails ends the worker. The host name alone is no wall: where a filter around the
 * service refuses it, the worker continues with the one that it has. */
#include "worker/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "proto/frame.h"
#include "worker/landlock.h"
#include "worker/mounts.h"
#include "worker/procfs.h"
#include "worker/seccomp.h"

#define HOST_NAME "python"
#define DESCRIPTORS 1024	/* of a script */

/* ---- once, in the zygote ---- */

/* Limits that every worker inherits. jail_settle() sets one more, for the size of a file. */
static const struct {
	int what;
	rlim_t soft, hard;
} limits[] = {
	/* With 0 the kernel would still start the host's core handler, if that is a program; with 1
	 * it writes and starts nothing (core(5)). A script cannot change it (seccomp.c). */
	{ RLIMIT_CORE, 1, 1 },
	/* A session's process receives orders with those above the soft limit (snapshot.c). */
	{ RLIMIT_NOFILE, DESCRIPTORS, DESCRIPTORS + 32 },
	{ RLIMIT_STACK, 8UL << 20, 64UL << 20 },
	{ RLIMIT_MEMLOCK, 65536, 65536 },
	{ RLIMIT_MSGQUEUE, 0, 0 },
	{ RLIMIT_NICE, 0, 0 },
	{ RLIMIT_RTPRIO, 0, 0 },
	{ RLIMIT_SIGPENDING, 1024, 1024 },
};

static int
set_limit(int what, rlim_t soft, rlim_t hard)
{
	struct rlimit now, limit = { soft, hard };

	if (prlimit(0, what, &limit, NULL) == 0)
		return 0;
	/* A limit cannot exceed the service's own. */
	if (errno != EPERM || prlimit(0, what, NULL, &now) < 0)
		return -errno;
	if (limit.rlim_max > now.rlim_max)
		limit.rlim_max = now.rlim_max;
	if (limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	return prlimit(0, what, &limit, NULL) < 0 ? -errno : 0;
}

int
jail_no_core_handler(const char **what_r)
{
	own_fd int fd = -1;
	struct rlimit now;
	char first = '|';

	*what_r = "a crash would start the host's core handler (kernel.core_pattern); start the "
		  "service with a hard limit of core files of 1 or more (ulimit -Hc)";
	if (getrlimit(RLIMIT_CORE, &now) < 0)
		return -errno;
	if (now.rlim_cur == 1)
		return 0;
	fd = open("/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC);
	return fd < 0 || read(fd, &first, 1) < 0 || first == '|' || first == '@' ? -EPERM : 0;
}

int
jail_prepare(const struct msg_configure *configure, struct jail *jail_r,
	     const char **what_r)
{
	struct seccomp_host host = {
		.memory_counted = configure->memory_counted,
		.own_uid = !jail_r->groups_kept,
		.terminals = configure->terminals,
	};
	int r;

	*what_r = "syscall filter";
	r = seccomp_begin(&host);
	if (r < 0)
		return r;
	jail_r->memory_counted = configure->memory_counted;
	jail_r->terminals = configure->terminals;
	jail_r->memory_bytes = configure->memory_bytes;
	jail_r->disk_bytes = configure->disk_bytes;
	jail_r->file_bytes = configure->volume_bytes > configure->disk_bytes
		? configure->volume_bytes : configure->disk_bytes;
	mounts_options(configure->disk_bytes, configure->disk_inodes,
		       jail_r->disk_options, sizeof(jail_r->disk_options));
	jail_r->landlock_abi = landlock_abi();
	while (prctl(PR_CAPBSET_READ, jail_r->last_capability + 1, 0, 0, 0) >= 0)
		jail_r->last_capability++;
	*what_r = "limits";
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		r = set_limit(limits[i].what, limits[i].soft, limits[i].hard);
		if (r < 0)
			return r;
	}
	return 0;
}

int
jail_prepared(struct jail *jail, const char **what_r)
{
	return seccomp_end(&jail->filter, &jail->zygote_filter, what_r);
}

int
jail_fence_zygote(const struct jail *jail)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return seccomp_enter(&jail->zygote_filter);
}

void
jail_die(int control, const char *what, int error)
{
	struct msg msg = { .type = MSG_JAIL_FAILED, .jail_failed = {
		.what = msg_str(what), .error = (uint32_t)error } };

	frame_send(control, &msg, NULL, 0);
	_exit(1);
}

/* ---- the walls, in order ---- */

/* The zygote writes this process's uid_map and gid_map, then one int: 0 or the errno of that. */
static int
ids_mapped(const struct jail_birth *b)
{
	int error = EPIPE;

	if (read(b->mapped, &error, sizeof(error)) != (ssize_t)sizeof(error))
		return -EPIPE;
	return -error;
}

static int
keep_only_declared(const struct jail_birth *b)
{
	if (dup3(b->control, JAIL_CONTROL, O_CLOEXEC) < 0 ||
	    dup2(b->out, STDOUT_FILENO) < 0 || dup2(b->err, STDERR_FILENO) < 0)
		return -errno;
	if (close_range(STDERR_FILENO + 1, JAIL_CONTROL - 1, 0) < 0 ||
	    close_range(JAIL_CONTROL + 1, ~0U, 0) < 0)
		return -errno;
	return 0;
}

static int
jail_identity(const struct jail_birth *b)
{
	if (!b->jail->groups_kept && setgroups(0, NULL) < 0)
		return -errno;
	if (setresgid(JAIL_UID, JAIL_UID, JAIL_UID) < 0 ||
	    setresuid(JAIL_UID, JAIL_UID, JAIL_UID) < 0)
		return -errno;
	return setsid() < 0 ? -errno : 0;
}

static bool has_host_name;

/* The filter of a container refuses the call in most default settings. */
static int
host_name(const struct jail_birth *)
{
	has_host_name = sethostname(HOST_NAME, sizeof(HOST_NAME) - 1) == 0;
	return has_host_name || errno == EPERM ? 0 : -errno;
}

bool
jail_has_host_name(void)
{
	return has_host_name;
}

static int
file_tree(const struct jail_birth *b)
{
	int r = mounts_enter(b->jail->disk_options, b->jail->memory_bytes);

	return r == 0 && b->jail->terminals ? mounts_terminals() : r;
}

static int
jail_capabilities(const struct jail_birth *b)
{
	struct __user_cap_header_struct head = { .version =
							 _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	for (unsigned long cap = 0; cap <= b->jail->last_capability; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -errno;
	if (prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
		  SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
		  SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
		  SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED, 0, 0, 0) < 0)
		return -errno;
	return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

static int
no_new_privs(const struct jail_birth *)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

/* Ends the worker with the supervisor. Set after the last change of credentials, which would
 * clear it. If the supervisor ended before this, the worker finds its control socket closed. */
static int
end_with_supervisor(const struct jail_birth *)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}

/* Init makes these rules, and only the script's process enters them: init has to write to
 * /proc/PID/oom_score_adj (processes_weigh()), and a rule cannot allow that file alone. The filter
 * of system calls lets no process of the worker make other rules. */
static int landlock_rules = -1;

static int
jail_landlock(const struct jail_birth *b)
{
	return landlock_make(b->jail->landlock_abi, b->jail->memory_counted, b->jail->terminals,
			     &landlock_rules);
}

static int
jail_syscall_filter(const struct jail_birth *b)
{
	return seccomp_enter(&b->jail->filter);
}

void
jail_enter(const struct jail_birth *birth)
{
	static const struct {
		const char *what;
		int (*enter)(const struct jail_birth *birth);
	} steps[] = {
		{ "uid map", ids_mapped },
		{ "descriptors", keep_only_declared },
		{ "identity", jail_identity },
		{ "host name", host_name },
		{ "file tree", file_tree },
		{ "capabilities", jail_capabilities },
		{ "no new privileges", no_new_privs },
		{ "parent's death", end_with_supervisor },
		{ "landlock", jail_landlock },
		{ "syscall filter", jail_syscall_filter },
	};
	int control = birth->control;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		int r = steps[i].enter(birth);

		if (steps[i].enter == keep_only_declared && r == 0)
			control = JAIL_CONTROL;
		if (r < 0)
			jail_die(control, steps[i].what, -r);
	}
}

int
jail_confine(const struct jail *jail)
{
	int rules = landlock_rules;

	landlock_rules = -1;
	return landlock_enter(jail->landlock_abi, rules);
}

/* ---- the proof ---- */

/* Required lines of /proc/self/status. */
static const struct {
	const char *key, *value;
} must_read[] = {
	{ "\nUid:\t", "1000\t1000\t1000\t1000\n" },
	{ "\nGid:\t", "1000\t1000\t1000\t1000\n" },
	{ "\nCapInh:\t", "0000000000000000\n" },
	{ "\nCapPrm:\t", "0000000000000000\n" },
	{ "\nCapEff:\t", "0000000000000000\n" },
	{ "\nCapBnd:\t", "0000000000000000\n" },
	{ "\nCapAmb:\t", "0000000000000000\n" },
	{ "\nNoNewPrivs:\t", "1\n" },
	{ "\nSeccomp:\t", "2\n" },
	{ "\nThreads:\t", "1\n" },
};

static void
prove_status(const struct jail *jail)
{
	own_fd int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	char text[8192];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		jail_die(JAIL_CONTROL, "proof: /proc/self/status", errno ? errno : EIO);
	text[n] = '\0';
	for (size_t i = 0; i < sizeof(must_read) / sizeof(must_read[0]); i++) {
		const char *at = strstr(text, must_read[i].key);
		const char *value = must_read[i].value;

		if (!at ||
		    strncmp(at + strlen(must_read[i].key), value, strlen(value)) != 0)
			jail_die(JAIL_CONTROL, must_read[i].key + 1, EPERM);
	}
	if (!jail->groups_kept && !strstr(text, "\nGroups:\t \n") &&
	    !strstr(text, "\nGroups:\t\n"))
		jail_die(JAIL_CONTROL, "proof: groups", EPERM);
}

/* Proves that no other descriptors are open than 0, 1, 2, the control socket, the three that
 * procfs_tell will close, and the list itself. */
static void
prove_descriptors(void)
{
	own_fd int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char list[1024], *at = list;
	ssize_t n = dir < 0 ? -1 : syscall(SYS_getdents64, dir, list, sizeof(list));
	unsigned int count = 0;

	if (n <= 0)
		jail_die(JAIL_CONTROL, "proof: /proc/self/fd", errno ? errno : EIO);
	while (at < list + n) {
		const struct {
			uint64_t ino, off;
			unsigned short len;
			unsigned char type;
			char name[];
		} *entry = (const void *)at;
		int fd = atoi(entry->name);

		if (entry->name[0] != '.') {
			count++;
			if (fd > STDERR_FILENO && fd != JAIL_CONTROL && fd != dir &&
			    !procfs_holds(fd))
				jail_die(JAIL_CONTROL, "proof: descriptors", EBADF);
		}
		at += entry->len;
	}
	if (count != 8)
		jail_die(JAIL_CONTROL, "proof: descriptors", EBADF);
}

/* Ways out of the jail that must be closed: each returns -1 with one of these errors. */
static void
must_fail(const char *what, long result, int expected, int or_else)
{
	if (result >= 0)
		jail_die(JAIL_CONTROL, what, EPERM);
	if (errno != expected && errno != or_else)
		jail_die(JAIL_CONTROL, what, errno);
}

static void
prove_limits(void)
{
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct rlimit now;

		if (prlimit(0, limits[i].what, NULL, &now) < 0 ||
		    now.rlim_max > limits[i].hard ||
		    (limits[i].what == RLIMIT_CORE && now.rlim_cur != now.rlim_max))
			jail_die(JAIL_CONTROL, "proof: limits", EPERM);
	}
}

static void
prove_ways_out(void)
{
	const char *outside = mounts_outside();
	int root;

	if (outside)
		must_fail("proof: a file of the host",
			  open(outside, O_PATH | O_CLOEXEC), ENOENT, EACCES);
	must_fail("proof: a new user namespace", unshare(CLONE_NEWUSER), EPERM, EPERM);
	must_fail("proof: mount", mount("none", "/tmp", "tmpfs", 0, NULL), EPERM,
		  EPERM);
	must_fail("proof: joining a namespace", setns(STDIN_FILENO, 0), EPERM, EPERM);
	must_fail("proof: chroot", chroot("/tmp"), EPERM, EPERM);
	must_fail("proof: other uid", setuid(0), EINVAL, EPERM);
	must_fail("proof: a file in the root",
		  open("/escape", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), EROFS, EACCES);
	must_fail("proof: raw sockets", socket(AF_INET, SOCK_RAW, 0), ENOSYS, EPERM);
	must_fail("proof: the host's /proc",
		  open("/proc/sys/kernel/random/boot_id", O_PATH | O_CLOEXEC), ENOENT, EACCES);
	must_fail("proof: netlink", socket(AF_NETLINK, SOCK_DGRAM, 0), EPERM, EPERM);
	must_fail("proof: signals to others", kill(2147483646, 0), ESRCH, ESRCH);
	/* The parent of the root is the root. */
	root = open("/..", O_PATH | O_CLOEXEC);
	if (root >= 0) {
		struct stat up, top;

		if (fstat(root, &up) < 0 || stat("/", &top) < 0 ||
		    up.st_ino != top.st_ino || up.st_dev != top.st_dev)
			jail_die(JAIL_CONTROL, "proof: above the root", EPERM);
		close(root);
	}
}

void
jail_prove(const struct jail *jail)
{
	prove_status(jail);
	prove_descriptors();
	prove_limits();
	prove_ways_out();
}

/* ---- limits of one run ---- */

/* The bytes that RLIMIT_DATA counts before the script starts. 0 or -errno. */
static int
data_in_use(uint64_t *bytes_r)
{
	own_fd int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	unsigned long long data = 0;
	char text[256];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	/* The sixth number is data and stack, in pages (proc(5)). */
	if (sscanf(text, "%*s %*s %*s %*s %*s %llu", &data) != 1)
		return -EIO;
	*bytes_r = data * (uint64_t)sysconf(_SC_PAGESIZE);
	return 0;
}

int
jail_settle(const struct jail *jail, struct jail_state *state_r)
{
	int r = data_in_use(&state_r->data_bytes);

	return r < 0 ? r : set_limit(RLIMIT_FSIZE, jail->file_bytes, jail->file_bytes);
}

static rlim_t
data_limit(const struct jail_state *state, uint64_t data_bytes)
{
	return data_bytes > UINT64_MAX - state->data_bytes ? UINT64_MAX
							   : data_bytes + state->data_bytes;
}

int
jail_limit_data(struct jail_state *state, uint64_t data_bytes, uint64_t most)
{
	state->data_limit = data_bytes;
	return data_bytes ? set_limit(RLIMIT_DATA, data_limit(state, data_bytes),
				      data_limit(state, most > data_bytes ? most : data_bytes))
			  : 0;
}

/* Whole seconds that this process has used: in a session earlier cells have run in it,
 * and a worker that was made ready has imported modules. */
static rlim_t
used_seconds(void)
{
	struct rusage used;

	return getrusage(RUSAGE_SELF, &used) < 0 ? 0
		: (rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
}

int
jail_limit(const struct jail_state *state, const struct msg_run *run)
{
	rlim_t data = data_limit(state, run->data_bytes);
	int r = run->data_bytes ? set_limit(RLIMIT_DATA, data, data) : 0;

	if (r == 0)
		r = set_limit(RLIMIT_NOFILE, DESCRIPTORS, DESCRIPTORS);
	/* The kernel counts init too, which is not charged to the script. */
	if (r == 0 && run->processes)
		r = set_limit(RLIMIT_NPROC, (rlim_t)run->processes + 1,
			      (rlim_t)run->processes + 1);
	if (r == 0 && run->cpu_seconds) {
		rlim_t most = used_seconds() + run->cpu_seconds;

		r = set_limit(RLIMIT_CPU, most, most + 1);
	}
	return r;
}

int
jail_limit_processes(uint32_t processes)
{
	return processes ? set_limit(RLIMIT_NPROC, processes, processes) : 0;
}

/* Sets the soft limit only: a hard limit could not be raised for the next cell. */
static int
set_soft_limit(int what, rlim_t soft)
{
	struct rlimit now;

	if (prlimit(0, what, NULL, &now) < 0)
		return -errno;
	now.rlim_cur = soft < now.rlim_max ? soft : now.rlim_max;
	return prlimit(0, what, &now, NULL) < 0 ? -errno : 0;
}

int
jail_limit_cell(struct jail_state *state, const struct msg_run *run)
{
	int r = 0;

	/* A limit that the state's own code has set stays, unless the session's limit was
	 * raised. */
	if (run->data_bytes != state->data_limit)
		r = set_soft_limit(RLIMIT_DATA, data_limit(state, run->data_bytes));
	state->data_limit = run->data_bytes;
	if (r == 0 && run->processes)
		r = set_soft_limit(RLIMIT_NPROC, run->processes);
	if (r == 0 && run->cpu_seconds)
		r = set_soft_limit(RLIMIT_CPU, used_seconds() + run->cpu_seconds);
	return r;
}
