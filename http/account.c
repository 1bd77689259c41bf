/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the counts of peers and tenants of the HTTP server. */
#include "http/account.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fair.h"
#include "base/named.h"
#include "base/xalloc.h"
#include "engine/engine.h"

static void
account_make_key(const struct sockaddr_storage *address, uid_t uid, unsigned char *key)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;

	if (!address) {
		key[0] = AF_UNIX;
		memcpy(key + 1, &uid, sizeof(uid));
	} else if (address->ss_family == AF_INET) {
		/* A local peer can use every address of 127/8. */
		key[0] = AF_INET;
		memcpy(key + 1, &four->sin_addr,
		       (ntohl(four->sin_addr.s_addr) >> 24) == 127 ? 1
								   : sizeof(four->sin_addr));
	} else {
		/* A peer with one address of version 6 has the whole /64 behind it. */
		key[0] = AF_INET6;
		memcpy(key + 1, &six->sin6_addr, 8);
	}
}

static int
compare_peers(const void *a, const void *b)
{
	const struct http_peer *one = a, *other = b;

	return memcmp(one->key, other->key, sizeof(one->key));
}

int
http_peer_join(struct http_peers *peers, const struct sockaddr_storage *address, uid_t uid,
	       size_t most, size_t most_each, struct http_peer **peer_r)
{
	struct http_peer sought = { .connections = 0 }, *peer, **found;

	if (peers->connections >= most)
		return -EUSERS;
	account_make_key(address, uid, sought.key);
	found = tfind(&sought, &peers->tree, compare_peers);
	peer = found ? *found : NULL;
	if (peer && peer->connections >= most_each)
		return -EDQUOT;
	if (!peer) {
		peer = xcalloc(1, sizeof(*peer));
		*peer = sought;
		xalloc_check(tsearch(peer, &peers->tree, compare_peers));
	}
	peer->connections++;
	peers->connections++;
	*peer_r = peer;
	return 0;
}

void
http_peer_leave(struct http_peers *peers, struct http_peer *peer)
{
	assert(peer->connections > 0 && peers->connections > 0);
	peers->connections--;
	if (--peer->connections)
		return;
	assert(peer->bytes == 0);
	tdelete(peer, &peers->tree, compare_peers);
	free(peer);
}

bool
http_peer_charge(struct http_peers *peers, struct http_peer *peer, size_t before,
		 size_t bytes)
{
	peer->bytes += bytes - before;
	peers->bytes += bytes - before;
	return peer->bytes <= fair_bytes(fair_memory(HTTP_ALL_PART), peers->bytes, peer->bytes);
}

struct http_tenant *
http_tenant_find(struct http_tenants *tenants, const char *principal)
{
	struct http_tenant *http = named_find(&tenants->tree, principal);

	if (!http) {
		http = xcalloc(1, sizeof(*http));
		http->all = tenants;
		http->principal = xstrdup(principal);
		http->tenant = engine_tenant_named(tenants->engine, principal);
		named_add(&tenants->tree, http);
	}
	http->holders++;
	return http;
}

void
http_tenant_hold(struct http_tenant *tenant)
{
	tenant->holders++;
}

void
http_tenant_let_go(struct http_tenant *tenant)
{
	assert(tenant->holders > 0);
	if (--tenant->holders)
		return;
	assert(tenant->sessions == 0 && tenant->bytes == 0 && tenant->replay_bytes == 0);
	named_remove(&tenant->all->tree, tenant);
	tenant_release(tenant->tenant);
	free(tenant->principal);
	free(tenant);
}

bool
http_tenant_take_bytes(void *arg, size_t bytes)
{
	struct http_tenant *tenant = arg;

	if (bytes > HTTP_TENANT_BYTES_MAX - tenant->bytes ||
	    tenant->bytes + bytes > fair_bytes(fair_memory(HTTP_ALL_PART), tenant->all->bytes,
					       tenant->bytes))
		return false;
	tenant->bytes += bytes;
	tenant->all->bytes += bytes;
	return true;
}

void
http_tenant_give_bytes(void *arg, size_t bytes)
{
	struct http_tenant *tenant = arg;

	assert(bytes <= tenant->bytes);
	tenant->bytes -= bytes;
	tenant->all->bytes -= bytes;
}
