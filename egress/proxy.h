/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the proxy: grants, one for each execution that may have a network, and their
 * connections. Everything runs in one loop, in which no call may wait.
 */
#ifndef EGRESS_PROXY_H
#define EGRESS_PROXY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <event2/event_struct.h>

#include "policy/network.h"
#include "proto/message.h"

struct bufferevent_rate_limit_group;
struct connection;
struct evdns_base;
struct event_base;
struct secrets;

/* RLIMIT_DATA bounds the memory of the process, and an allocation that fails ends it. So the bytes
 * of a connection (its buffers, and its TLS) and the number of connections are bounded: together
 * they have three quarters of it. */
#define PROXY_DATA_MAX (1UL << 30)
#define PROXY_CONNECTION_MAX (256UL << 10)
#define PROXY_CONNECTIONS_MAX (PROXY_DATA_MAX / 4 * 3 / PROXY_CONNECTION_MAX)

struct proxy {
	struct event_base *base;	/* borrowed */
	struct evdns_base *dns;		/* borrowed */
	const struct secrets *secrets;	/* borrowed; NULL: none */
	/* Sends a message to the supervisor. */
	void (*tell)(void *arg, const struct msg *msg);
	void *tell_arg;
	LIST_HEAD(, grant) grants;
	LIST_HEAD(, holder) holders;
	bool is_wanted;			/* a grant waits for the connections of others to end */
	unsigned int n_connections;	/* of all grants */
	unsigned int connections_max;	/* as many as there are descriptors for, at most
					 * PROXY_CONNECTIONS_MAX */
};

/* A tenant that has grants. */
struct holder {
	LIST_ENTRY(holder) link;
	unsigned int n_grants, n_connections;
	size_t len;
	char name[];
};

/* The rights of one execution, and its use of them. */
struct grant {
	LIST_ENTRY(grant) link;
	struct proxy *proxy;
	struct holder *holder;			/* NULL: not yet */
	uint64_t execution;
	struct network_rule *rule;
	struct network_range *range;
	size_t n_rules, n_ranges;
	uint32_t secrets;			/* those that it may use: secrets_named() */
	uint64_t bytes_max;
	unsigned int at_once, in_all;		/* the most connections, at a time and in total */
	unsigned int idle_seconds, connection_seconds;
	int fd;					/* the listening socket in the worker's namespace;
						 * -1: closed */
	struct event acceptable, retry;
	struct bufferevent_rate_limit_group *rate;
	LIST_HEAD(, connection) connections;
	unsigned int n_connections, n_accepted;
	uint64_t bytes;				/* of all connections, in both directions */
};

/* ---- grant.c ---- */

/* Makes a grant, which serves the listening socket fd. fd belongs to the grant from now on, also
 * after a failure. 0; -EEXIST: the execution has a grant already; or another -errno, and
 * EGRESS_CLOSED was sent. -ENOTSOCK: fd is not a listening socket, because the cell has ended or
 * the worker is hostile.
 */
int grant_open(struct proxy *proxy, const struct msg_egress_open *open, int fd);

/* Ends the grant of an execution: cuts its connections, and sends EGRESS_CLOSED after the last
 * report. Does nothing if there is no grant: it was closed before, and EGRESS_CLOSED was sent then.
 */
void grant_close(struct proxy *proxy, uint64_t execution);

bool grant_allows(const struct grant *grant, const struct network_target *target);

/* To be called when a connection of the grant was freed. */
void grant_release(struct grant *grant);

/* ---- connection.c ---- */

/* Makes a connection from an accepted socket, which belongs to it. 0; or -errno, and fd was closed.
 */
int connection_new(struct grant *grant, int fd);

/* Ends a connection at once. */
void connection_cut(struct connection *connection);

struct connection *connection_next(struct connection *connection);	/* of its grant */

#endif
