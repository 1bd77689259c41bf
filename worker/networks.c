/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the zygote.   Owns: a descriptor of each network namespace that is used or rests.
 * Reads:   the kernel's counters of the network that it is in. */
#include "worker/networks.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

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

/* By default the buffers of one TCP connection can grow to megabytes. Here its receive and its send
 * buffer can each grow to half the size of another socket's buffer. */
static int
bound_buffers(void)
{
	static const char *const files[] = {
		"/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_wmem",
	};
	static const char sizes[] = "4096 65536 106496";

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		own_fd int fd = open(files[i], O_WRONLY | O_CLOEXEC);

		if (fd < 0 || write(fd, sizes, sizeof(sizes) - 1) < 0)
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
networks_make(uint64_t owner, uint64_t worker, bool small_buffers, const char **what_r)
{
	struct network *n;
	int r, fd;

	*what_r = "network namespace";
	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	*what_r = "loopback";
	r = loopback_up();
	if (r == 0 && small_buffers) {
		*what_r = "buffers of TCP";
		r = bound_buffers();
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
networks_enter(uint64_t owner, uint64_t worker, bool small_buffers, const char **what_r)
{
	return enter_resting(owner, worker)
		? 0 : networks_make(owner, worker, small_buffers, what_r);
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
