/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python check-host.   Owns: a cgroup of its own during a trial.
 * The cgroup is made where the service would have its own. Nothing else there is changed: no
 * controller is enabled for others. */
#include "client/host/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH_ROOM 4096
#define MEMORY_LIMIT "16777216"
#define MEMORY_TAKEN (64 * 1024 * 1024)

#define SAMPLED "as a system service it does not start; by hand rlimits and a watchdog that " \
	"samples stand in, which is for your own scripts alone"

struct group {
	char parent[PATH_ROOM], path[PATH_ROOM + 64];	/* path "": none could be made */
	int fd, error;		/* error: of making it */
	bool mounted;
};

static char delegated[PATH_ROOM];	/* by probe_cgroup_settle(); "": none was */

static bool
find_mount(char path[PATH_ROOM])
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[2 * PATH_ROOM];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = strstr(line, " - cgroup2 ") &&
			sscanf(line, "%*s %*s %*s %*s %4095s", path) == 1;
	if (file)
		fclose(file);
	return found;
}

static void
find_own(char *path)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_ROOM];

	strcpy(path, "/");
	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, "0::/", 4) == 0) {
			line[strcspn(line, "\n")] = '\0';
			strcpy(path, line + 3);
		}
	if (file)
		fclose(file);
}

static bool
make_below(struct group *group, const char *mount, const char *parent)
{
	if (snprintf(group->parent, sizeof(group->parent), "%s%s", mount, parent) >=
	    (int)sizeof(group->parent))
		return false;
	snprintf(group->path, sizeof(group->path), "%s/mcp-python-check-%d%s", group->parent,
		 getpid(), delegated[0] ? "-trial" : "");
	if (mkdir(group->path, 0755) == 0) {
		group->fd = open(group->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return group->fd >= 0;
	}
	group->error = errno;
	group->path[0] = '\0';
	return false;
}

static int
probe_cgroup_set(const struct group *group, const char *file, const char *value)
{
	int fd = openat(group->fd, file, O_WRONLY | O_CLOEXEC), r = 0;

	if (fd < 0)
		return errno;
	if (write(fd, value, strlen(value)) < 0)
		r = errno;
	close(fd);
	return r;
}

/* systemd gives root's service a cgroup, so the controllers at the root of the tree count. A
 * user's service gets one from the user's manager, as this program did. Without either manager
 * the cgroup is made below the current one. */
static void
make_group(struct group *group)
{
	char mount[PATH_ROOM], own[PATH_ROOM];

	*group = (struct group){ .fd = -1 };
	group->mounted = find_mount(mount);
	if (!group->mounted)
		return;
	if (delegated[0])
		strcpy(own, delegated);
	else
		find_own(own);
	if (getuid() != 0 || !make_below(group, mount, ""))
		make_below(group, mount, own);
}

/* As the service does: it moves its own processes away first, because a cgroup with processes in
 * it can limit no cgroups below it. */
void
probe_cgroup_settle(void)
{
	static const char *const controllers[] = { "+cpu", "+memory", "+pids" };
	char mount[PATH_ROOM], own[PATH_ROOM], pid[24];
	struct group base = { .fd = -1 };

	if (!find_mount(mount))
		return;
	find_own(own);
	if (!make_below(&base, mount, own))
		return;
	snprintf(pid, sizeof(pid), "%d", getpid());
	if (probe_cgroup_set(&base, "cgroup.procs", pid) == 0) {
		close(base.fd);
		base.fd = open(base.parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++)
			probe_cgroup_set(&base, "cgroup.subtree_control", controllers[i]);
		strcpy(delegated, own);
	}
	if (base.fd >= 0)
		close(base.fd);
}

static void
remove_group(struct group *group)
{
	if (group->fd >= 0)
		close(group->fd);
	if (group->path[0])
		rmdir(group->path);
}

static bool
probe_cgroup_has_word(const char *directory, const char *file, const char *word)
{
	char path[PATH_ROOM + 128], text[512];
	size_t len = strlen(word);

	snprintf(path, sizeof(path), "%s/%s", directory, file);
	for (const char *at = probe_read(path, text, sizeof(text)); (at = strstr(at, word));
	     at += len)
		if ((at == text || at[-1] == ' ') && (at[len] == '\0' || at[len] == ' '))
			return true;
	return false;
}

/* Forks a child in the group. -1 with errno. */
static pid_t
born_inside(const struct group *group)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD,
				   .cgroup = (uint64_t)group->fd };
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		probe_child_begins();
	return pid;
}

/* Filters of containers answer ENOSYS for clone3, also where the kernel has it. */
static void
advise_clone(struct finding *finding, int error)
{
	unsigned int major = 0, minor = 0;
	struct utsname name;

	uname(&name);
	sscanf(name.release, "%u.%u", &major, &minor);
	if (major > 5 || (major == 5 && minor >= 7))
		finding_advise(finding, error == ENOSYS || error == EPERM
			       ? "in a container, let its filter of system calls pass clone3 (docker: "
				 "--security-opt seccomp=docker-seccomp.json)"
			       : "see doc/containers.md");
	else
		finding_advise(finding, "use Linux 5.7 or newer");
}

static void
advise_place(struct finding *finding)
{
	if (getuid() == 0)
		finding_advise(finding, "let systemd start the service; in a container, mount "
			       "/sys/fs/cgroup writable (docker: --cgroupns private, and a "
			       "writable mount)");
	else
		finding_advise(finding, "systemctl --user enable mcp-pythond.socket, or "
			       "systemd-run --user --scope -p Delegate=yes mcp-pythond ...");
}

void
probe_cgroup(const struct probe_place *, struct finding *finding_r)
{
	struct group group;
	pid_t pid = -1;
	int r = 0;

	make_group(&group);
	if (group.fd >= 0) {
		pid = born_inside(&group);
		if (pid == 0)
			_exit(0);
		r = pid < 0 ? errno : probe_wait(pid);
	}
	if (!group.mounted) {
		finding_not(finding_r, VERDICT_MISSING, SAMPLED, "cgroup v2 is not mounted");
		finding_advise(finding_r, "boot with systemd.unified_cgroup_hierarchy=1");
	} else if (group.fd < 0) {
		finding_not(finding_r, VERDICT_MISSING, SAMPLED, "no cgroup can be made in %.150s: %s",
			    group.parent, strerror(group.error));
		advise_place(finding_r);
	} else if (r == EACCES) {
		finding_not(finding_r, VERDICT_MISSING, SAMPLED,
			    "your processes may not move from here into %.150s", group.parent);
		advise_place(finding_r);
	} else if (r != 0) {
		finding_not(finding_r, VERDICT_MISSING, "workers cannot be made in their groups",
			    "clone3: %s", probe_error(r));
		advise_clone(finding_r, r);
	} else {
		finding_ok(finding_r, "a process was born in a new group below %.150s",
			   group.parent);
	}
	remove_group(&group);
}

/* ---- controllers ---- */

static int
try_memory(const struct group *group)
{
	int status, r = probe_cgroup_set(group, "memory.max", MEMORY_LIMIT);
	pid_t pid;

	if (r == 0)
		probe_cgroup_set(group, "memory.swap.max", "0");	/* missing without swap */
	pid = r == 0 ? born_inside(group) : -1;
	if (pid == 0) {
		char *memory = mmap(NULL, MEMORY_TAKEN, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory != MAP_FAILED)
			memset(memory, 1, MEMORY_TAKEN);
		_exit(0);
	}
	if (pid < 0)
		return r != 0 ? r : errno;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : EPERM;
}

static int
try_pids(const struct group *group)
{
	int r = probe_cgroup_set(group, "pids.max", "1");
	pid_t pid = r == 0 ? born_inside(group) : -1;

	if (pid == 0) {
		pid_t child = fork();

		if (child == 0)
			_exit(0);
		_exit(child < 0 ? 0 : EPERM);
	}
	return r != 0 ? r : probe_wait(pid);
}

static int
try_cpu(const struct group *group)
{
	return probe_cgroup_set(group, "cpu.max", "10000 100000");
}

static bool
is_of_version_1(const char *controller)
{
	char line[256], name[64];
	FILE *file = fopen("/proc/cgroups", "re");
	unsigned int hierarchy = 0;
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "%63s %u", name, &hierarchy) == 2 &&
			strcmp(name, controller) == 0 && hierarchy > 0;
	if (file)
		fclose(file);
	return found;
}

static void
probe_controller(const char *controller, int (*trial)(const struct group *group),
		 const char *worked, struct finding *finding_r)
{
	struct group group;
	int r = 0;

	make_group(&group);
	if (group.fd >= 0 && probe_cgroup_has_word(group.path, "cgroup.controllers", controller)) {
		r = trial(&group);
		if (r == 0)
			finding_ok(finding_r, "%s", worked);
		else
			finding_not(finding_r, VERDICT_MISSING, SAMPLED, "the limit does not hold: %s",
				    probe_error(r));
	} else if (group.fd >= 0 && probe_cgroup_has_word(group.parent, "cgroup.controllers", controller)) {
		finding_ok(finding_r, "can be enabled in %.150s; not tried", group.parent);
	} else {
		finding_not(finding_r, VERDICT_MISSING, SAMPLED, "no %s controller %s%.150s",
			    controller, group.mounted ? "in " : "in cgroup v2", group.parent);
		if (is_of_version_1(controller))
			finding_advise(finding_r, "cgroup v1 has it: boot with "
				       "systemd.unified_cgroup_hierarchy=1");
		else if (getuid() != 0)
			finding_advise(finding_r, "Delegate=cpu memory pids for user@.service "
				       "(systemctl edit user@.service)");
		else
			finding_advise(finding_r, "a kernel with it, and none of cgroup_disable= on "
				       "its command line");
	}
	remove_group(&group);
}

void
probe_memory(const struct probe_place *, struct finding *finding_r)
{
	probe_controller("memory", try_memory, "who took more than the limit was killed",
			 finding_r);
}

void
probe_pids(const struct probe_place *, struct finding *finding_r)
{
	probe_controller("pids", try_pids, "one process too many was refused", finding_r);
}

void
probe_cpu(const struct probe_place *, struct finding *finding_r)
{
	probe_controller("cpu", try_cpu, "a share can be set", finding_r);
}

/* ---- ending all of a group ---- */

void
probe_cgroup_kill(const struct probe_place *, struct finding *finding_r)
{
	struct group group;
	int r, status = 0;
	pid_t pid;

	make_group(&group);
	pid = group.fd >= 0 ? born_inside(&group) : -1;
	if (pid == 0) {
		pause();
		_exit(0);
	}
	r = pid < 0 ? (group.fd >= 0 ? errno : ENOENT) : probe_cgroup_set(&group, "cgroup.kill", "1");
	if (pid > 0 && r != 0)
		kill(pid, SIGKILL);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r == 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
		finding_ok(finding_r, "a whole group was ended at once");
	} else {
		finding_not(finding_r, VERDICT_WEAKER,
			    "workers are ended through their pid namespace alone", "%s",
			    group.fd < 0 ? "not tried: no group can be made" : probe_error(r));
		finding_advise(finding_r, group.fd < 0 || pid < 0 ? "see above" : "use Linux 5.14 or newer");
	}
	remove_group(&group);
}
