/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts of the HTTP server: for each peer its connections and their bytes, for each tenant its
 * sessions and the bytes of its calls. Counting only, no I/O.
 */
#ifndef HTTP_ACCOUNT_H
#define HTTP_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct engine;
struct sockaddr_storage;
struct tenant;

#define HTTP_PEER_BYTES_MAX (256 * 1024 * 1024)		/* unread and unsent bytes; the
							 * longest body is allowed in
							 * addition */
#define HTTP_TENANT_BYTES_MAX (256 * 1024 * 1024)	/* of calls in flight */

/* A peer: a uid on a unix socket, or an address on TCP. All addresses of an IPv6 network are the
 * same peer. */
struct http_peer {
	unsigned char key[24];
	size_t connections;
	size_t bytes;
};

struct http_tenant {
	char *principal;		/* auth/auth.h */
	struct http_tenants *all;
	struct tenant *tenant;		/* the engine's */
	size_t holders;			/* sessions, connections, requests being served */
	size_t connections;		/* whose last request was the tenant's */
	size_t sessions;
	size_t bytes;
	size_t replay_bytes;		/* http/replay.h */
};

struct http_peers {
	void *tree;			/* by key */
	size_t connections;
	size_t bytes;			/* of all peers */
};

struct http_tenants {
	void *tree;			/* base/named.h */
	struct engine *engine;		/* borrowed */
	size_t sessions;
	size_t bytes, replay_bytes;	/* of all tenants */
};

/* What all peers and all tenants may have together, of each kind: this part of the machine's
 * memory. Each has a share (base/fair.h). */
#define HTTP_ALL_PART 4

/* Counts a connection. address: the peer's, on TCP; NULL: the peer is uid, on a unix socket. most,
 * most_each: the bounds in total and for each peer. 0; -EUSERS: too many in total; -EDQUOT:
 * too many of this peer. */
int http_peer_join(struct http_peers *peers, const struct sockaddr_storage *address, uid_t uid,
		   size_t most, size_t most_each, struct http_peer **peer_r);

/* Stops counting a connection. The last one frees the peer, whose bytes must be 0. */
void http_peer_leave(struct http_peers *peers, struct http_peer *peer);

/* Holds the tenant of a principal. The first holder makes the engine's tenant. */
struct http_tenant *http_tenant_find(struct http_tenants *tenants, const char *principal);
void http_tenant_hold(struct http_tenant *tenant);	/* adds a holder */
void http_tenant_let_go(struct http_tenant *tenant);

/* Counts bytes of a peer that wait, in place of those counted before. False: the peer has more than
 * its share of what all may have. */
bool http_peer_charge(struct http_peers *peers, struct http_peer *peer, size_t before,
		      size_t bytes);

/* The members hold and let_go of struct mcp_conversation_options; arg is a struct http_tenant. */
bool http_tenant_take_bytes(void *arg, size_t bytes);
void http_tenant_give_bytes(void *arg, size_t bytes);

#endif
