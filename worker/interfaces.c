/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: every process of the worker program; replaces the C library's getifaddrs(),
 * freeifaddrs(), if_nameindex() and if_freenameindex().   Owns: nothing.
 * The C library's functions ask the kernel by netlink. Scripts may not use netlink, because no
 * limit counts the memory of messages that wait in such a socket. A worker has one interface,
 * loopback, whose addresses are set before the script starts. Programs that a script starts use the
 * C library's functions, which fail. */
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"

#define LOOPBACK "lo"
#define LOOPBACK_FLAGS (IFF_UP | IFF_RUNNING | IFF_LOOPBACK)

/* One block of memory, as the C library's. */
struct listed {
	struct listed_address {
		struct ifaddrs entry;
		union {
			struct sockaddr any;
			struct sockaddr_in v4;
			struct sockaddr_in6 v6;
		} address, mask;
	} v4, v6;
	char name[sizeof(LOOPBACK)];
};

static bool
has_v6(const struct sockaddr_in6 *address)
{
	own_fd int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && bind(fd, (const struct sockaddr *)address, sizeof(*address)) == 0;
}

static void
interfaces_list(struct listed_address *a, sa_family_t family, char *name)
{
	a->address.any.sa_family = a->mask.any.sa_family = family;
	a->entry = (struct ifaddrs){
		.ifa_name = name,
		.ifa_flags = LOOPBACK_FLAGS,
		.ifa_addr = &a->address.any,
		.ifa_netmask = &a->mask.any,
	};
}

__attribute__((visibility("default"))) int
getifaddrs(struct ifaddrs **list_r)
{
	struct listed *all = calloc(1, sizeof(*all));

	if (!all)
		return -1;
	memcpy(all->name, LOOPBACK, sizeof(LOOPBACK));
	interfaces_list(&all->v4, AF_INET, all->name);
	all->v4.address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	all->v4.mask.v4.sin_addr.s_addr = htonl(IN_CLASSA_NET);
	interfaces_list(&all->v6, AF_INET6, all->name);
	all->v6.address.v6.sin6_addr = in6addr_loopback;
	memset(&all->v6.mask.v6.sin6_addr, 0xff, sizeof(struct in6_addr));
	if (has_v6(&all->v6.address.v6))
		all->v4.entry.ifa_next = &all->v6.entry;
	*list_r = &all->v4.entry;
	return 0;
}

__attribute__((visibility("default"))) void
freeifaddrs(struct ifaddrs *first)
{
	free(first);		/* which the block begins with */
}

__attribute__((visibility("default"))) struct if_nameindex *
if_nameindex(void)
{
	struct {
		struct if_nameindex entry[2];	/* the second one is the end */
		char name[sizeof(LOOPBACK)];
	} *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	memcpy(all->name, LOOPBACK, sizeof(LOOPBACK));
	all->entry[0] = (struct if_nameindex){ if_nametoindex(LOOPBACK), all->name };
	return all->entry;
}

__attribute__((visibility("default"))) void
if_freenameindex(struct if_nameindex *first)
{
	free(first);
}
