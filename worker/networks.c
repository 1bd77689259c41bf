/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the zygote.   Owns: a descriptor of each network namespace that is used or rests.
 * Reads:   the kernel's counters of the network that it is in. */
#include "worker/networks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mount_calls.h"
#include "base/own.h"

#define NETWORKS 256		/* that are known; a network beyond is used once */
#define RESTING_MOST 16		/* of one owner: as many workers may end together */

/* owner 0: no network. worker 0: it rests. */
static struct network {
	uint64_t owner, worker;
	uint64_t rested;	/* in the order of their ends */
	int fd;
} networks[NETWORKS];

static uint64_t last_rest;

static void
close_network(struct network *n)
{
	close(n->fd);
	*n = (struct network){ 0 };
}

static bool
networks_rests(const struct network *n)
{
	return n->owner != 0 && n->worker == 0;
}

/* The owner's network that has rested longest, or NULL. owner 0: of any owner. */
static struct network *
longest_resting(uint64_t owner)
{
	struct network *found = NULL;

	for (size_t i = 0; i < NETWORKS; i++) {
		struct network *n = &networks[i];

		if (networks_rests(n) && (owner == 0 || n->owner == owner) &&
		    (!found || n->rested < found->rested))
			found = n;
	}
	return found;
}

static size_t
count_resting(uint64_t owner)
{
	size_t count = 0;

	for (size_t i = 0; i < NETWORKS; i++)
		count += networks_rests(&networks[i]) && networks[i].owner == owner;
	return count;
}

/* ---- the test for an empty network ---- */

/* Does the file have all of these texts? False also if it cannot be read as a whole. */
static bool
networks_says(const char *path, const char *const *texts)
{
	own_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[1024];
	ssize_t len = fd >= 0 ? read(fd, text, sizeof(text)) : -1;

	if (len < 0 || len == (ssize_t)sizeof(text))
		return false;
	text[len] = '\0';
	for (; *texts; texts++)
		if (!strstr(text, *texts))
			return false;
	return true;
}

/* "used" counts sockets of all families, with TCP's orphans; "tw" counts closed connections of
 * which the kernel keeps a record (net/ipv4/proc.c of the kernel). If a kernel writes another form,
 * no network counts as empty. */
static bool
is_empty(void)
{
	static const char *const all[] = { "sockets: used 0\n", " tw 0 ",
					   "\nFRAG: inuse 0 memory 0\n", NULL };
	static const char *const v6[] = { "\nFRAG6: inuse 0 memory 0\n", NULL };

	return networks_says("/proc/self/net/sockstat", all) &&
	       (access("/proc/self/net/sockstat6", F_OK) < 0 ||
		networks_says("/proc/self/net/sockstat6", v6));
}

/* ---- a new one ---- */

static int
loopback_up(void)
{
	own_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };

	return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

/* What the kernel keeps for connections that nobody has accepted, that were closed, or that are
 * incomplete is charged to no cgroup, and TCP's memory and orphans are bounded for all network
 * namespaces together. So each connection may keep little, and not for long: see engine/tables.h.
 * The default buffers of TCP grow to megabytes; here they have half the size of another socket's.
 */
static const struct {
	const char *file, *value;
} settings[] = {
	{ "net/ipv4/tcp_rmem", "4096 65536 106496" },
	{ "net/ipv4/tcp_wmem", "4096 65536 106496" },
	{ "net/core/somaxconn", "128" },		/* connections that wait for accept() */
	{ "net/ipv4/tcp_max_syn_backlog", "128" },
	{ "net/ipv4/tcp_orphan_retries", "1" },
	{ "net/ipv4/tcp_fin_timeout", "5" },
	{ "net/ipv4/tcp_max_tw_buckets", "4096" },
	{ "net/ipv4/ipfrag_low_thresh", "196608" }, { "net/ipv4/ipfrag_high_thresh", "262144" },
	{ "net/ipv6/ip6frag_low_thresh", "196608" }, { "net/ipv6/ip6frag_high_thresh", "262144" },
};

/* A /proc/sys: files below net/ are those of the network that the process which opens them is in.
 */
static int sysctls = -1;

/* In a child in its own pid namespace: mounts a procfs of that namespace, nowhere. Its descriptors
 * are the parent's, too. Returns the descriptor of its directory sys, or -1. */
static int
mount_sysctls(void)
{
	own_fd int context = call_fsopen("proc", FSOPEN_CLOEXEC), mount = -1;

	if (context >= 0 && call_fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		mount = call_fsmount(context, FSMOUNT_CLOEXEC, 0);
	return mount < 0 ? -1 : openat(mount, "sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Where the host's /proc has no sys, or none that may be written to, as in a unit with
 * ProcSubset=pid. Returns a descriptor or -1. */
static int
own_sysctls(void)
{
	int status = 0;
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_FILES | CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0) {
		int fd = mount_sysctls();

		_exit(fd < 0 || fd > 255 ? 0 : fd);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) > 0 ? WEXITSTATUS(status) : -1;
}

int
networks_prepare(void)
{
	bool writable = access("/proc/sys/net/ipv4/tcp_rmem", W_OK) == 0;

	sysctls = writable ? -1 : own_sysctls();
	if (sysctls < 0)
		sysctls = open("/proc/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return sysctls < 0 ? -errno : 0;
}

static int
bound_network(void)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		own_fd int fd = openat(sysctls, settings[i].file, O_WRONLY | O_CLOEXEC);

		/* A kernel without IPv6 lacks the last ones. */
		if (fd < 0 && errno == ENOENT && i > 1)
			continue;
		if (fd < 0 || write(fd, settings[i].value, strlen(settings[i].value)) < 0)
			return -errno;
	}
	return 0;
}

/* A free place; if there is none, the network that has rested longest gives way. NULL: all are in
 * use. */
static struct network *
networks_find_place(void)
{
	struct network *n;

	for (size_t i = 0; i < NETWORKS; i++)
		if (networks[i].owner == 0)
			return &networks[i];
	n = longest_resting(0);
	if (n)
		close_network(n);
	return n;
}

static int
networks_make(uint64_t owner, uint64_t worker, const char **what_r)
{
	struct network *n;
	int r, fd;

	*what_r = "network namespace";
	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	*what_r = "loopback";
	r = loopback_up();
	if (r == 0) {
		*what_r = "buffers of TCP";
		r = bound_network();
		if (r == -EROFS)
			*what_r = "buffers of TCP (in a container, add --security-opt unmask=ALL; "
				  "docker: systempaths=unconfined)";
	}
	if (r < 0)
		return r;
	/* A network that the list has no room for ends with its worker. */
	n = networks_find_place();
	fd = n ? open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0)
		*n = (struct network){ .owner = owner, .worker = worker, .fd = fd };
	return 0;
}

/* ---- for workers ---- */

static bool
networks_enter_kept(const struct network *n)
{
	return setns(n->fd, CLONE_NEWNET) == 0;
}

/* Enters a kept network of the owner, if there is one. True: this process is in it now. */
static bool
enter_resting(uint64_t owner, uint64_t worker)
{
	struct network *n = longest_resting(owner);

	if (!n)
		return false;
	if (!networks_enter_kept(n)) {
		close_network(n);
		return false;
	}
	n->worker = worker;
	return true;
}

int
networks_enter(uint64_t owner, uint64_t worker, const char **what_r)
{
	return enter_resting(owner, worker)
		? 0 : networks_make(owner, worker, what_r);
}

void
networks_free(uint64_t worker, bool keep)
{
	for (size_t i = 0; i < NETWORKS; i++) {
		struct network *n = &networks[i];

		if (n->owner == 0 || n->worker != worker)
			continue;
		n->worker = 0;
		n->rested = ++last_rest;
		if (!keep || !networks_enter_kept(n) || !is_empty())
			close_network(n);
		else if (count_resting(n->owner) > RESTING_MOST)
			close_network(longest_resting(n->owner));
		return;
	}
}

void
networks_drop(uint64_t owner)
{
	for (size_t i = 0; i < NETWORKS; i++)
		if (networks_rests(&networks[i]) && networks[i].owner == owner)
			close_network(&networks[i]);
}
