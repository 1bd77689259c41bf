/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor before its loop; a child makes the namespaces and ends.
 * Owns:    the two descriptors that keep the namespaces alive. */
#include "host/outer.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "host/privilege.h"

#define SLOTS_MAX 65535

/* The child that calls unshare() and then only keeps the namespaces open. */
struct maker {
	pid_t pid;
	int told_fd;	/* the child writes errno here: 0 when the namespaces exist */
	int go_fd;	/* the child ends when this is closed */
};

static void
make_and_wait(const struct maker *child, bool mapped, uid_t uid, gid_t gid)
{
	int error = 0;
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (mapped && (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 ||
			setresuid(uid, uid, uid) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0))
		error = errno;
	if (error == 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		error = errno;
	if (write(child->told_fd, &error, sizeof(error)) == sizeof(error) && error == 0)
		while (read(child->go_fd, &c, 1) < 0 && errno == EINTR)
			;
	_exit(0);
}

static int
start_maker(bool mapped, uid_t uid, gid_t gid, struct maker *maker_r)
{
	int told[2], go[2], error = 0;
	pid_t pid;

	if (pipe2(told, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(go, O_CLOEXEC) < 0) {
		error = errno;
		close(told[0]);
		close(told[1]);
		return -error;
	}
	pid = fork();
	if (pid == 0) {
		struct maker self = { .told_fd = told[1], .go_fd = go[0] };

		close(go[1]);
		make_and_wait(&self, mapped, uid, gid);
	}
	error = pid < 0 ? errno : 0;
	close(told[1]);
	close(go[0]);
	if (pid > 0 && read(told[0], &error, sizeof(error)) != sizeof(error))
		error = ECHILD;
	close(told[0]);
	*maker_r = (struct maker){ .pid = pid, .go_fd = go[1], .told_fd = -1 };
	if (error != 0) {
		close(go[1]);
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
	return -error;
}

static void
end_maker(struct maker *maker)
{
	close(maker->go_fd);
	while (waitpid(maker->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int
write_proc(pid_t pid, const char *file, const char *text)
{
	char path[64];
	own_fd int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -errno;
}

static int
outer_hold(pid_t pid, uint32_t slots, struct outer_namespace **outer_r)
{
	struct outer_namespace *outer = xcalloc(1, sizeof(*outer));
	char path[64];
	int error;

	outer->slots = slots;
	outer->mount_fd = -1;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	outer->user_fd = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	if (outer->user_fd >= 0)
		outer->mount_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (outer->mount_fd < 0) {
		error = errno;
		outer_namespace_free(outer);
		return -error;
	}
	*outer_r = outer;
	return 0;
}

struct outer_namespace *
outer_new_missing(int error)
{
	struct outer_namespace *outer = xcalloc(1, sizeof(*outer));

	*outer = (struct outer_namespace){ .user_fd = -1, .mount_fd = -1, .error = error };
	return outer;
}

void
outer_namespace_free(struct outer_namespace *outer)
{
	if (outer == NULL)
		return;
	if (outer->user_fd >= 0)
		close(outer->user_fd);
	if (outer->mount_fd >= 0)
		close(outer->mount_fd);
	free(outer);
}

int
outer_new_mapped(uid_t uid, gid_t gid, uint32_t base, uint32_t slots,
		  struct outer_namespace **outer_r, struct why *why_r)
{
	const char *step = "make it";
	struct maker maker;
	char map[96];
	int r;

	if (slots == 0 || slots > SLOTS_MAX || base > UINT32_MAX - SLOTS_MAX - 1)
		return why_say(why_r, -EINVAL, "subuid_count",
			       "outer namespace: no usable "
			       "range of subordinate ids");
	r = start_maker(true, uid, gid, &maker);
	if (r < 0)
		return why_say(why_r, r, "", "cannot " OUTER_MAKE ": %s", strerror(-r));
	step = "become the service's user";
	r = privilege_become(uid, gid);
	if (r == 0) {
		step = "write its uid map";
		snprintf(map, sizeof(map), "0 %u 1\n1 %u %u\n", uid, base + 1, slots);
		r = write_proc(maker.pid, "uid_map", map);
	}
	if (r == 0) {
		step = "write its gid map";
		snprintf(map, sizeof(map), "0 %u 1\n1 %u %u\n", gid, base + 1, slots);
		r = write_proc(maker.pid, "gid_map", map);
	}
	if (r == 0) {
		step = "open it";
		r = outer_hold(maker.pid, slots, outer_r);
	}
	end_maker(&maker);
	if (r < 0)
		why_say(why_r, r, "", "outer namespace: cannot %s: %s", step,
			strerror(-r));
	return r;
}

/* ---- without root ---- */

static int
find_range(const char *text, const char *user, uid_t uid, uint32_t *first_r, uint32_t *count_r)
{
	char number[16];

	snprintf(number, sizeof(number), "%u", uid);
	for (const char *line = text; line != NULL && *line != '\0';
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		size_t name_len = strcspn(line, ":\n");
		unsigned long first, count;
		char *end;

		if (line[name_len] != ':' ||
		    !((user != NULL && strlen(user) == name_len &&
		       strncmp(line, user, name_len) == 0) ||
		      (strlen(number) == name_len &&
		       strncmp(line, number, name_len) == 0)))
			continue;
		first = strtoul(line + name_len + 1, &end, 10);
		if (*end != ':')
			continue;
		count = strtoul(end + 1, &end, 10);
		if ((*end != '\n' && *end != '\0') || first == 0 || count == 0 ||
		    first > UINT32_MAX - 1 || count > UINT32_MAX - first)
			continue;
		*first_r = (uint32_t)first;
		*count_r = (uint32_t)count;
		return 0;
	}
	return -ENOENT;
}

int
outer_read_range(const char *file, const char *user, uid_t uid, uint32_t *first_r,
		 uint32_t *count_r)
{
	own_fd int fd = open(file, O_RDONLY | O_CLOEXEC);
	own_mem char *text = NULL;
	size_t len = 0, size = 256 * 1024;
	ssize_t n;

	if (fd < 0)
		return -errno;
	text = xmalloc(size);
	while (len < size - 1 && (n = read(fd, text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		return -errno;
	text[len] = '\0';
	return find_range(text, user, uid, first_r, count_r);
}

/* newuidmap(1) and newgidmap(1) are the only programs that this function starts. */
static int
outer_run_mapper(const char *program, pid_t target, uid_t own, uint32_t first, uint32_t count)
{
	char words[6][16];
	char *argv[9] = { (char *)program };
	char *envp[] = { NULL };
	const unsigned int numbers[] = { (unsigned int)target, 0, own, 1, 1, first };
	int status = -1, null_fd;
	char count_text[16];
	pid_t pid;

	for (size_t i = 0; i < 6; i++) {
		snprintf(words[i], sizeof(words[i]), "%u", numbers[i]);
		argv[i + 1] = words[i];
	}
	snprintf(count_text, sizeof(count_text), "%u", count);
	argv[7] = count_text;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		null_fd = open("/dev/null", O_RDWR);
		if (null_fd >= 0 && dup2(null_fd, 0) >= 0 && dup2(null_fd, 1) >= 0 &&
		    dup2(null_fd, 2) >= 0)
			execve(program, argv, envp);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

/* The number of slots that could be mapped; 0 with a reason that the machine has; or -errno. */
static int
map_subordinates(pid_t target, const char **reason_r)
{
	struct passwd *entry = getpwuid(getuid());
	const char *user = entry ? entry->pw_name : NULL;
	uint32_t first_uid, uids, first_gid, gids, slots;
	int r;

	if (access("/usr/bin/newuidmap", X_OK) < 0 ||
	    access("/usr/bin/newgidmap", X_OK) < 0) {
		*reason_r = "newuidmap and newgidmap are not installed";
		return 0;
	}
	r = outer_read_range("/etc/subuid", user, getuid(), &first_uid, &uids);
	if (r == 0)
		r = outer_read_range("/etc/subgid", user, getuid(), &first_gid, &gids);
	if (r < 0) {
		*reason_r = "no range of yours in /etc/subuid and /etc/subgid";
		return r == -ENOENT || r == -EACCES ? 0 : r;
	}
	slots = uids < gids ? uids : gids;
	if (slots > SLOTS_MAX)
		slots = SLOTS_MAX;
	if (outer_run_mapper("/usr/bin/newuidmap", target, getuid(), first_uid, slots) < 0) {
		*reason_r = "newuidmap refused";
		return 0;
	}
	if (outer_run_mapper("/usr/bin/newgidmap", target, getgid(), first_gid, slots) < 0) {
		*reason_r = "newgidmap refused";
		return 0;
	}
	return (int)slots;
}

/* user_namespaces(7): without privilege only the process's own ids can be mapped, and
 * setgroups() is off. */
static int
map_self(pid_t target)
{
	char map[32];
	int r;

	r = write_proc(target, "setgroups", "deny");
	if (r < 0)
		return r;
	snprintf(map, sizeof(map), "0 %u 1\n", getuid());
	r = write_proc(target, "uid_map", map);
	if (r < 0)
		return r;
	snprintf(map, sizeof(map), "0 %u 1\n", getgid());
	return write_proc(target, "gid_map", map);
}

/* Makes the namespace, with subordinate ids or with id 0 only. After a failure it makes none: if
 * newuidmap(1) has written one map and newgidmap(1) was refused, the namespace cannot be used, and
 * the caller tries again with a new one. */
static int
new_as_user(bool subordinates, struct outer_namespace **outer_r, const char **reason_r)
{
	struct maker maker;
	uint32_t slots = 0;
	int r;

	r = start_maker(false, 0, 0, &maker);
	if (r < 0)
		return r;
	if (subordinates) {
		r = map_subordinates(maker.pid, reason_r);
		slots = r > 0 ? (uint32_t)r : 0;
		r = r > 0 ? 0 : r < 0 ? r : -ENOTSUP;
	} else {
		r = map_self(maker.pid);
	}
	if (r == 0)
		r = outer_hold(maker.pid, slots, outer_r);
	end_maker(&maker);
	return r;
}

int
outer_new_as_user(struct outer_namespace **outer_r, const char **reason_r,
		  struct why *why_r)
{
	int r;

	*reason_r = NULL;
	/* Otherwise no process, this one included, may look into /proc of this
	 * process's children. */
	prctl(PR_SET_DUMPABLE, 1);
	r = new_as_user(true, outer_r, reason_r);
	if (r == -ENOTSUP)
		r = new_as_user(false, outer_r, reason_r);
	if (r < 0)
		why_say(why_r, r, "", "cannot " OUTER_MAKE ": %s", strerror(-r));
	return r;
}
