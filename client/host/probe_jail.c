/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python check-host.   Owns: nothing.
 * Each wall of a worker is built and tested in a child. As root it drops privilege first where
 * the service does, too. */
#include "client/host/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "policy/id_range.h"

#define TESTED_MAJOR 6		/* the oldest kernel that the service was tested with */
#define TESTED_MINOR 1
#define STRANGER 65534		/* the user that root becomes for tests of what the service's user
				 * will do */
#define RANGE_FIRST 1879048192	/* [service] subuid_base */
#define RANGE_COUNT 65536
#define RANGE_LEAST 258		/* for [pool] workers_max */
#define SOME_ID 7		/* an id within any useful range */

#define NO_JAIL "no jail can be built, and nothing is run"

void
probe_kernel(const struct probe_place *, struct finding *finding_r)
{
	unsigned int major = 0, minor = 0;
	struct utsname name;

	uname(&name);
	sscanf(name.release, "%u.%u", &major, &minor);
	if (major > TESTED_MAJOR || (major == TESTED_MAJOR && minor >= TESTED_MINOR)) {
		finding_ok(finding_r, "Linux %s", name.release);
		return;
	}
	finding_not(finding_r, VERDICT_WEAKER, "the service was not tested there", "Linux %s",
		    name.release);
	finding_advise(finding_r, "use %u.%u or newer", TESTED_MAJOR, TESTED_MINOR);
}

/* ---- namespaces ---- */

static int
probe_jail_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), r = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) < 0)
		r = errno;
	close(fd);
	return r;
}

/* Gives up root. If the namespace has only one uid (EINVAL), the child stays root. 0, or an errno.
 */
static int
give_up_root(void)
{
	if (geteuid() == 0 && (setresgid(STRANGER, STRANGER, STRANGER) < 0 ||
			       setgroups(0, NULL) < 0 ||
			       setresuid(STRANGER, STRANGER, STRANGER) < 0) &&
	    errno != EINVAL)
		return errno;
	/* otherwise /proc/self would be root's */
	return prctl(PR_SET_DUMPABLE, 1) < 0 ? errno : 0;
}

/* A child that makes a user namespace and keeps it open. Its parent enters it, as in the service:
 * AppArmor may take all capabilities from the process that makes one. */
struct holder {
	pid_t pid;
	int end;		/* it ends when this is closed */
};

static void __attribute__((noreturn))
hold(int to_parent)
{
	int error = unshare(CLONE_NEWUSER) < 0 ? errno : 0;
	char none;

	_exit(write(to_parent, &error, sizeof(error)) == sizeof(error) &&
	      read(to_parent, &none, 1) == 0 ? 0 : 1);
}

static void
end_holder(const struct holder *holder)
{
	close(holder->end);
	waitpid(holder->pid, NULL, 0);
}

static int
start_holder(struct holder *holder_r)
{
	int pair[2], error = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return errno;
	*holder_r = (struct holder){ .pid = fork(), .end = pair[0] };
	if (holder_r->pid == 0) {
		close(pair[0]);
		hold(pair[1]);
	}
	if (holder_r->pid < 0)
		error = errno;
	close(pair[1]);
	if (error != 0) {
		close(pair[0]);
		return error;
	}
	if (read(pair[0], &error, sizeof(error)) != sizeof(error))
		error = ECHILD;
	if (error != 0)
		end_holder(holder_r);
	return error;
}

static int
write_of(const struct holder *holder, const char *file, const char *text)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)holder->pid, file);
	return probe_jail_write_file(path, text);
}

/* Root of the namespace becomes the user of this process. */
static int
map_own_ids(const struct holder *holder)
{
	char uid[32], gid[32];
	int r = write_of(holder, "setgroups", "deny");

	snprintf(uid, sizeof(uid), "0 %u 1", getuid());
	snprintf(gid, sizeof(gid), "0 %u 1", getgid());
	if (r == 0)
		r = write_of(holder, "uid_map", uid);
	return r == 0 ? write_of(holder, "gid_map", gid) : r;
}

static int
probe_jail_join(const struct holder *holder)
{
	char path[64];
	int fd, r;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)holder->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	r = setns(fd, CLONE_NEWUSER) < 0 ? errno : 0;
	close(fd);
	return r;
}

/* Enters a new user namespace, as its root, and other namespaces. */
static int
probe_jail_enter(int namespaces)
{
	struct holder holder;
	int r = give_up_root();

	if (r == 0)
		r = start_holder(&holder);
	if (r != 0)
		return r;
	r = map_own_ids(&holder);
	if (r == 0)
		r = probe_jail_join(&holder);
	end_holder(&holder);
	if (r == 0 && (prctl(PR_SET_DUMPABLE, 1) < 0 || unshare(namespaces) < 0))
		r = errno;
	return r;
}

static int
try_namespaces(void *)
{
	return probe_jail_enter(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
				CLONE_NEWUTS | CLONE_NEWCGROUP);
}

static void
advise_namespaces(struct finding *finding)
{
	static const struct {
		const char *path, *bad, *advice;
	} rules[] = {
		{ "/proc/sys/user/max_user_namespaces", "0",
		  "sysctl user.max_user_namespaces=65536" },
		{ "/proc/sys/kernel/unprivileged_userns_clone", "0",
		  "sysctl kernel.unprivileged_userns_clone=1" },
		{ "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
		  "give mcp-pythond an AppArmor profile with \"userns\", or sysctl "
		  "kernel.apparmor_restrict_unprivileged_userns=0" },
	};
	char text[64];

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (strcmp(probe_read(rules[i].path, text, sizeof(text)), rules[i].bad) == 0) {
			finding_advise(finding, "%s", rules[i].advice);
			return;
		}
	finding_advise(finding, "a kernel with CONFIG_USER_NS; in docker, add --security-opt "
		       "seccomp=docker-seccomp.json (doc/containers.md), or look for its AppArmor profile");
}

void
probe_user_namespace(const struct probe_place *, struct finding *finding_r)
{
	int r = probe_in_child(try_namespaces, NULL);

	if (r == 0) {
		finding_ok(finding_r, "user, mount, pid, net, ipc, uts and cgroup");
		return;
	}
	finding_not(finding_r, VERDICT_MISSING, NO_JAIL, "%s", probe_error(r));
	advise_namespaces(finding_r);
}

static int
try_mount(void *)
{
	int r = probe_jail_enter(CLONE_NEWNS);

	if (r == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		r = errno;
	if (r == 0 && mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k") < 0)
		r = errno;
	if (r == 0 && mount("/usr", "/tmp", NULL, MS_BIND | MS_REC, NULL) < 0)
		r = errno;
	return r;
}

void
probe_mounts(const struct probe_place *, struct finding *finding_r)
{
	int r = probe_in_child(try_mount, NULL);

	if (r == 0) {
		finding_ok(finding_r, "tmpfs and binds in a new namespace");
		return;
	}
	finding_not(finding_r, VERDICT_MISSING, NO_JAIL, "%s", probe_error(r));
	advise_namespaces(finding_r);
}

static int
try_proc(void *)
{
	int r = probe_jail_enter(CLONE_NEWNS | CLONE_NEWPID);
	pid_t pid;

	if (r != 0)
		return r;
	pid = fork();
	if (pid == 0) {
		probe_child_begins();
		if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
			  "hidepid=2") < 0 ||
		    mount(NULL, "/proc", NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_NOEXEC,
			  "hidepid=2,subset=pid") < 0)
			_exit(errno);
		_exit(0);
	}
	return probe_wait(pid);
}

void
probe_proc(const struct probe_place *, struct finding *finding_r)
{
	int r = probe_in_child(try_proc, NULL);

	if (r == 0) {
		finding_ok(finding_r, "a new one in a new namespace");
		return;
	}
	finding_not(finding_r, VERDICT_MISSING, NO_JAIL, "%s", probe_error(r));
	finding_advise(finding_r, "in a container: let it see the whole of /proc (podman: "
		       "--security-opt unmask=ALL; docker: systempaths=unconfined)");
}

static int
try_network(void *)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int r = probe_jail_enter(CLONE_NEWNET), fd;

	if (r != 0)
		return r;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return errno;
	return 0;
}

void
probe_network(const struct probe_place *, struct finding *finding_r)
{
	int r = probe_in_child(try_network, NULL);

	if (r == 0) {
		finding_ok(finding_r, "a new one, with a loopback device");
		return;
	}
	finding_not(finding_r, VERDICT_MISSING, NO_JAIL, "%s", probe_error(r));
	advise_namespaces(finding_r);
}

/* ---- subordinate ids ---- */

struct ids {
	int ready[2], mapped[2];
};

static int
try_ids(const struct ids *ids)
{
	struct holder holder;
	char byte;
	int r = give_up_root();

	if (r == 0)
		r = start_holder(&holder);
	if (r != 0)
		return r;
	if (write(ids->ready[1], &holder.pid, sizeof(holder.pid)) != sizeof(holder.pid) ||
	    read(ids->mapped[0], &byte, 1) != 1)
		r = EPIPE;
	if (r == 0)
		r = probe_jail_join(&holder);
	end_holder(&holder);
	if (r == 0 && (setresgid(SOME_ID, SOME_ID, SOME_ID) < 0 ||
		       setresuid(SOME_ID, SOME_ID, SOME_ID) < 0))
		r = errno;
	return r;
}

/* The first range of this user in /etc/subuid or /etc/subgid. */
static bool
probe_jail_find_range(const char *path, unsigned long *first_r, unsigned long *count_r)
{
	const struct passwd *user = getpwuid(getuid());
	FILE *file = fopen(path, "re");
	char line[256], name[128], uid[24];
	bool found = false;

	snprintf(uid, sizeof(uid), "%u", getuid());
	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "%127[^:]:%lu:%lu", name, first_r, count_r) == 3 &&
			*count_r > SOME_ID &&
			(strcmp(name, uid) == 0 || (user && strcmp(name, user->pw_name) == 0));
	if (file)
		fclose(file);
	return found;
}

static int
probe_jail_run_mapper(const char *program, pid_t pid, unsigned int own, unsigned long first,
		      unsigned long count)
{
	char text[5][24];
	pid_t child;

	snprintf(text[0], sizeof(text[0]), "%d", pid);
	snprintf(text[1], sizeof(text[1]), "%u", own);
	snprintf(text[2], sizeof(text[2]), "%lu", first);
	snprintf(text[3], sizeof(text[3]), "%lu", count);
	child = fork();
	if (child == 0) {
		probe_child_begins();
		execlp(program, program, text[0], "0", text[1], "1", "1", text[2], text[3],
		       (char *)NULL);
		_exit(ENOENT);
	}
	return probe_wait(child);
}

enum lack { LACKS_NOTHING, LACKS_RANGE, LACKS_PROGRAM, IS_REFUSED, LACKS };

static const char *const lack_texts[LACKS] = {
	[LACKS_RANGE] = "/etc/subuid or /etc/subgid has no range of yours",
	[LACKS_PROGRAM] = "newuidmap and newgidmap are not installed",
	[IS_REFUSED] = "newuidmap or newgidmap refuses your range",
};

static enum lack
map_by_program(pid_t pid, const char *program, const char *file, unsigned int own)
{
	unsigned long first, count;
	int r;

	if (!probe_jail_find_range(file, &first, &count))
		return LACKS_RANGE;
	r = probe_jail_run_mapper(program, pid, own, first, count);
	return r == ENOENT ? LACKS_PROGRAM : r != 0 ? IS_REFUSED : LACKS_NOTHING;
}

static enum lack
map_by_programs(pid_t pid)
{
	enum lack lack = map_by_program(pid, "newuidmap", "/etc/subuid", getuid());

	return lack ? lack : map_by_program(pid, "newgidmap", "/etc/subgid", getgid());
}

static void
advise_ids(struct finding *finding, enum lack lack)
{
	const struct passwd *user = getpwuid(getuid());
	const char *name = user ? user->pw_name : "USER";

	if (geteuid() == 0)
		finding_advise(finding, "give this container %d ids or more", 2 * RANGE_LEAST);
	else if (lack == LACKS_RANGE)
		finding_advise(finding, "add \"%s:100000:65536\" to /etc/subuid and /etc/subgid, and "
			       "install uidmap", name);
	else if (lack == LACKS_PROGRAM)
		finding_advise(finding, "install uidmap");
	else if (lack == IS_REFUSED)
		finding_advise(finding, "install uidmap again (newuidmap needs its setuid bit or "
			       "capability), and check the range of %s in /etc/subuid and "
			       "/etc/subgid", name);
	else
		finding_advise(finding, "start the service as root");
}

static const char *
map_by_root(pid_t pid)
{
	const struct id_range wanted = { RANGE_FIRST, RANGE_COUNT };
	struct id_range range;
	char path[64], text[128];

	if (id_range_here(&wanted, RANGE_LEAST, &range) < 0)
		return "too few ids are mapped here (/proc/self/uid_map)";
	snprintf(text, sizeof(text), "0 %u 1\n1 %u %u\n", STRANGER, range.first + 1,
		 range.count - 1);
	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	if (probe_jail_write_file(path, text) != 0)
		return "the map of a namespace cannot be written";
	snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
	return probe_jail_write_file(path, text) != 0 ? "the map of groups cannot be written" : NULL;
}

void
probe_ids(const struct probe_place *, struct finding *finding_r)
{
	enum lack lack = LACKS_NOTHING;
	const char *why = NULL;
	struct ids ids = { { -1, -1 }, { -1, -1 } };
	pid_t pid = -1, holder;
	char byte = 0;
	int r;

	if (pipe2(ids.ready, O_CLOEXEC) < 0 || pipe2(ids.mapped, O_CLOEXEC) < 0 ||
	    (pid = fork()) < 0)
		why = strerror(errno);
	if (pid == 0) {
		probe_child_begins();
		close(ids.ready[0]);
		close(ids.mapped[1]);
		_exit(try_ids(&ids));
	}
	close(ids.ready[1]);
	close(ids.mapped[0]);
	if (!why && read(ids.ready[0], &holder, sizeof(holder)) != sizeof(holder))
		why = "no user namespace";
	else if (!why)
		why = geteuid() == 0 ? map_by_root(holder)
				     : lack_texts[lack = map_by_programs(holder)];
	if (!why && write(ids.mapped[1], &byte, 1) != 1)
		why = "the child is gone";
	close(ids.mapped[1]);
	close(ids.ready[0]);
	r = probe_wait(pid);
	if (!why && r == 0) {
		finding_ok(finding_r, "a uid for each worker, %s", geteuid() == 0
			   ? "mapped by root" : "by newuidmap");
		return;
	}
	finding_not(finding_r, VERDICT_WEAKER,
		    "all workers share your uid: namespaces alone keep them apart, and what the "
		    "kernel counts by uid is one budget", "%s", why ? why : probe_error(r));
	if (pid > 0)
		advise_ids(finding_r, lack);
}

/* ---- what a process takes from itself ---- */

static int
try_no_new_privs(void *)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return errno;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : EPERM;
}

void
probe_no_new_privs(const struct probe_place *, struct finding *finding_r)
{
	int r = probe_in_child(try_no_new_privs, NULL);

	if (r == 0)
		finding_ok(finding_r, "kept");
	else
		finding_not(finding_r, VERDICT_MISSING, NO_JAIL, "%s", probe_error(r));
}

/* Tries a filter that refuses one call. */
static int
try_seccomp(void *)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(rules) / sizeof(rules[0]), rules };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return errno;
	return syscall(SYS_getppid) < 0 && errno == ENOTTY ? 0 : EPERM;
}

void
probe_seccomp(const struct probe_place *, struct finding *finding_r)
{
	int r = probe_in_child(try_seccomp, NULL);

	if (r == 0) {
		finding_ok(finding_r, "a filter refuses what it is told to");
		return;
	}
	finding_not(finding_r, VERDICT_MISSING, NO_JAIL, "%s", probe_error(r));
	finding_advise(finding_r, "a kernel with CONFIG_SECCOMP_FILTER");
}

/* Tries rules that allow no file, and checks that no file can be read. */
static int
try_landlock(void *)
{
	struct landlock_ruleset_attr rules = { .handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE };
	int fd = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);

	if (fd < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return errno;
	return open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES ? 0 : EPERM;
}

void
probe_landlock(const struct probe_place *, struct finding *finding_r)
{
	int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0,
			       LANDLOCK_CREATE_RULESET_VERSION);
	int r = probe_in_child(try_landlock, NULL);

	if (r == 0) {
		finding_ok(finding_r, "ABI %d", abi);
		return;
	}
	finding_not(finding_r, VERDICT_WEAKER,
		    "the file tree has one wall instead of two, the proxy for scripts may open "
		    "files, and scripts have no /dev/zero", "%s", probe_error(r));
	finding_advise(finding_r, "a kernel with CONFIG_SECURITY_LANDLOCK, and landlock in lsm= on "
		       "its command line");
}

/* Tries a crash under the workers' limit. */
void
probe_core(const struct probe_place *, struct finding *finding_r)
{
	static const struct rlimit limit = { 1, 1 };
	char pattern[256];
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		probe_child_begins();
		signal(SIGABRT, SIG_DFL);
		setrlimit(RLIMIT_CORE, &limit);
		abort();
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	probe_read("/proc/sys/kernel/core_pattern", pattern, sizeof(pattern));
	if (pid > 0 && WIFSIGNALED(status) && !WCOREDUMP(status)) {
		finding_ok(finding_r, "crashes are not dumped, kernel.core_pattern=%s", pattern);
		return;
	}
	finding_not(finding_r, VERDICT_WEAKER,
		    "a crash of a script starts a program of the host's, as root, which reads the "
		    "script's memory", "kernel.core_pattern=%s", pattern);
	finding_advise(finding_r, "sysctl kernel.core_pattern=core");
}
