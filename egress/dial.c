/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-egress.   Owns: a lookup and a socket that is being connected.
 * Reads:   answers of name servers, hostile: any name may lead anywhere. */
#include "egress/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <event2/dns.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/util.h>

#include "base/own.h"

#define ADDRESSES_MAX 4		/* addresses of one name that are tried */
#define ATTEMPT_S 5		/* for each of them */

/* evdns calls back even after a lookup was cancelled. */
struct lookup {
	struct dial *dial;	/* NULL: cancelled */
	struct evdns_getaddrinfo_request *request;
};

struct dial {
	struct dial_options options;
	struct lookup *lookup;
	struct network_address address[ADDRESSES_MAX];
	size_t n_addresses, next;
	int fd;
	struct event event;
	bool looked_up;
	struct dial_outcome outcome;	/* the current result */
	void (*done)(void *arg, const struct dial_outcome *outcome);
	void *arg;
};

/* ---- addresses ---- */

static socklen_t
to_sockaddr(const struct network_address *address, uint16_t port,
	    struct sockaddr_storage *storage_r)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	memset(storage_r, 0, sizeof(*storage_r));
	if (address->family == 4) {
		memcpy(&four.sin_addr, address->byte, 4);
		memcpy(storage_r, &four, sizeof(four));
		return sizeof(four);
	}
	memcpy(&six.sin6_addr, address->byte, 16);
	memcpy(storage_r, &six, sizeof(six));
	return sizeof(six);
}

static void
from_sockaddr(const struct sockaddr *sa, struct network_address *address_r)
{
	*address_r = (struct network_address){ 0 };
	if (sa->sa_family == AF_INET) {
		address_r->family = 4;
		memcpy(address_r->byte, &((const struct sockaddr_in *)(const void *)sa)->sin_addr,
		       4);
	} else if (sa->sa_family == AF_INET6) {
		address_r->family = 6;
		memcpy(address_r->byte, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr,
		       16);
	}
}

/* Is it an address of this machine? Then the kernel would use it as the source, too. */
static bool
is_own(const struct network_address *address)
{
	struct sockaddr_storage to, from;
	socklen_t len = to_sockaddr(address, 9, &to), from_len = sizeof(from);
	own_fd int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct network_address mine;

	/* There is no route: connect(2) will report that too. */
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, len) < 0 ||
	    getsockname(fd, (struct sockaddr *)&from, &from_len) < 0)
		return false;
	from_sockaddr((struct sockaddr *)&from, &mine);
	return mine.family == address->family &&
	       memcmp(mine.byte, address->byte, sizeof(mine.byte)) == 0;
}

/* The reason against a connection; NULL: it is allowed. */
static const char *
dial_objection(const struct dial *dial, const struct network_address *address)
{
	static const char *const texts[NETWORK_CLASS_COUNT] = {
		[NETWORK_LOOPBACK] = "a loopback address",
		[NETWORK_PRIVATE] = "a private address",
		[NETWORK_LINK_LOCAL] = "a link-local address",
		[NETWORK_METADATA] = "a metadata address",
		[NETWORK_MULTICAST] = "a multicast address",
		[NETWORK_RESERVED] = "a reserved address",
	};
	enum network_class which = network_classify(address);

	for (size_t i = 0; i < dial->options.n_ranges; i++)
		if (network_range_has(&dial->options.range[i], address))
			return NULL;
	if (which != NETWORK_PUBLIC)
		return texts[which];
	return is_own(address) ? "an address of this machine" : NULL;
}

static void
take_address(struct dial *dial, const struct network_address *address)
{
	const char *text = dial_objection(dial, address);

	if (text && dial->n_addresses == 0)
		dial->outcome = (struct dial_outcome){ -1, EGRESS_DENIED_ADDRESS, text,
						       *address };
	else if (!text && dial->n_addresses < ADDRESSES_MAX)
		dial->address[dial->n_addresses++] = *address;
}

/* ---- connecting ---- */

static void dial_on_event(evutil_socket_t fd, short what, void *arg);

/* Calls back, with a copy: the callback may free the dial. */
static void
dial_finish(struct dial *dial)
{
	struct dial_outcome outcome = dial->outcome;

	dial->done(dial->arg, &outcome);
}

static void
attempt_failed(struct dial *dial, int error)
{
	enum egress_verdict verdict = error == ETIMEDOUT ? EGRESS_TIMED_OUT
							 : EGRESS_NO_CONNECTION;
	const char *text = error == ETIMEDOUT ? "no connection in time" :
		error == ECONNREFUSED ? "the connection was refused" :
		error == ENETUNREACH || error == EHOSTUNREACH ? "there is no route" :
		"no connection could be made";

	dial->outcome = (struct dial_outcome){ -1, verdict, text,
					       dial->address[dial->next - 1] };
	if (dial->fd >= 0)
		close(give_fd(dial->fd));
}

static void
dial_attempt(struct dial *dial)
{
	static const struct timeval most = { ATTEMPT_S, 0 };
	const struct network_address *address = &dial->address[dial->next++];
	struct sockaddr_storage to;
	socklen_t len = to_sockaddr(address, dial->options.target->port, &to);
	int one = 1;

	dial->fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (dial->fd < 0 || (connect(dial->fd, (struct sockaddr *)&to, len) < 0 &&
			     errno != EINPROGRESS)) {
		attempt_failed(dial, errno);
		return;
	}
	setsockopt(dial->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	event_del(&dial->event);
	event_assign(&dial->event, dial->options.base, dial->fd, EV_WRITE,
		     dial_on_event, dial);
	event_add(&dial->event, &most);
}

static void
go_on(struct dial *dial)
{
	while (dial->fd < 0 && dial->next < dial->n_addresses)
		dial_attempt(dial);
	if (dial->fd < 0)
		dial_finish(dial);
}

static void
on_connected(struct dial *dial, short what)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (what & EV_TIMEOUT)
		error = ETIMEDOUT;
	else if (getsockopt(dial->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error) {
		attempt_failed(dial, error);
		go_on(dial);
		return;
	}
	dial->outcome = (struct dial_outcome){ give_fd(dial->fd), EGRESS_CARRIED, "",
					       dial->address[dial->next - 1] };
	dial_finish(dial);
}

/* ---- names ---- */

static void
on_looked_up(int error, struct evutil_addrinfo *list, void *arg)
{
	struct lookup *lookup = arg;
	struct dial *dial = lookup->dial;
	struct network_address address;

	free(lookup);
	if (dial) {
		dial->lookup = NULL;
		dial->looked_up = true;
		dial->outcome = (struct dial_outcome){ -1, EGRESS_NO_NAME,
			error == EVUTIL_EAI_NONAME || error == EVUTIL_EAI_NODATA
			? "there is no such name" : "the name cannot be looked up", { 0 } };
		for (struct evutil_addrinfo *at = list; !error && at; at = at->ai_next) {
			from_sockaddr(at->ai_addr, &address);
			take_address(dial, &address);
		}
		event_active(&dial->event, EV_TIMEOUT, 0);
	}
	if (list)
		evutil_freeaddrinfo(list);
}

static void
look_up(struct dial *dial)
{
	struct evutil_addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct lookup *lookup = calloc(1, sizeof(*lookup));
	struct evdns_getaddrinfo_request *request;

	if (!lookup) {
		dial->outcome.text = "out of memory";
		dial_finish(dial);
		return;
	}
	lookup->dial = dial;
	dial->lookup = lookup;
	/* NULL: it has called back already. */
	request = evdns_getaddrinfo(dial->options.dns, dial->options.target->host, NULL, &hints,
				    on_looked_up, lookup);
	if (request)
		dial->lookup->request = request;
}

static void
dial_on_event(evutil_socket_t fd, short what, void *arg)
{
	struct dial *dial = arg;

	(void)fd;
	if (dial->fd >= 0) {
		on_connected(dial, what);
	} else if (!dial->looked_up && dial->options.target->address.family == 0) {
		look_up(dial);
	} else {
		if (!dial->looked_up)
			take_address(dial, &dial->options.target->address);
		go_on(dial);
	}
}

/* ---- life ---- */

struct dial *
dial_new(const struct dial_options *options,
	 void (*done)(void *arg, const struct dial_outcome *outcome), void *arg)
{
	struct dial *dial = calloc(1, sizeof(*dial));

	if (!dial)
		return NULL;
	*dial = (struct dial){ .options = *options, .fd = -1, .done = done, .arg = arg,
			       .outcome = { -1, EGRESS_NO_NAME, "", { 0 } } };
	evtimer_assign(&dial->event, options->base, dial_on_event, dial);
	event_active(&dial->event, EV_TIMEOUT, 0);
	return dial;
}

void
dial_free(struct dial *dial)
{
	if (!dial)
		return;
	event_del(&dial->event);
	if (dial->lookup) {
		struct lookup *lookup = dial->lookup;

		lookup->dial = NULL;
		evdns_getaddrinfo_cancel(lookup->request);
	}
	if (dial->fd >= 0)
		close(dial->fd);
	free(dial);
}
