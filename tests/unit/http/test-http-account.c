/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <cmocka.h>

#include "base/fair.h"
#include "engine/engine.h"
#include "http/account.h"
#include "http/origin.h"
#include "tests/unit/tools/fake_engine.h"

static struct http_peer *
join(struct http_peers *peers, const char *text, uid_t uid)
{
	struct sockaddr_storage address;
	struct http_peer *peer = NULL;

	if (text)
		assert_true(http_address_read(text, &address));
	assert_int_equal(http_peer_join(peers, text ? &address : NULL, uid, 100, 100, &peer), 0);
	return peer;
}

static void
peers_are_told_apart(void **state)
{
	struct http_peers peers = { .connections = 0 };
	struct http_peer *one = join(&peers, NULL, 1), *two = join(&peers, NULL, 2);
	struct http_peer *four = join(&peers, "127.0.0.1:1", 0);
	struct http_peer *six = join(&peers, "[2001:db8::1]:1", 0), *more[3];

	(void)state;
	assert_ptr_not_equal(one, two);
	assert_ptr_equal(join(&peers, NULL, 1), one);
	assert_ptr_equal(join(&peers, "127.0.0.1:2", 5), four);
	/* this machine is one peer, with all its addresses */
	assert_ptr_equal(join(&peers, "127.99.0.2:1", 0), four);
	more[0] = join(&peers, "192.0.2.1:1", 0);
	more[1] = join(&peers, "192.0.2.2:1", 0);
	assert_ptr_not_equal(more[0], more[1]);
	/* a network of version 6 is one peer */
	assert_ptr_equal(join(&peers, "[2001:db8::ffff:2]:9", 0), six);
	more[2] = join(&peers, "[2001:db8:0:1::1]:1", 0);
	assert_ptr_not_equal(more[2], six);
	assert_int_equal(peers.connections, 11);
	for (int i = 0; i < 3; i++) {
		http_peer_leave(&peers, more[i]);
		http_peer_leave(&peers, four);
	}
	http_peer_leave(&peers, one);
	http_peer_leave(&peers, one);
	http_peer_leave(&peers, two);
	http_peer_leave(&peers, six);
	http_peer_leave(&peers, six);
	assert_int_equal(peers.connections, 0);
	assert_null(peers.tree);
}

static void
connections_are_bounded(void **state)
{
	struct http_peers peers = { .connections = 0 };
	struct http_peer *peer, *other = NULL;

	(void)state;
	assert_int_equal(http_peer_join(&peers, NULL, 1, 3, 2, &peer), 0);
	assert_int_equal(http_peer_join(&peers, NULL, 1, 3, 2, &peer), 0);
	assert_int_equal(http_peer_join(&peers, NULL, 1, 3, 2, &other), -EDQUOT);
	assert_int_equal(http_peer_join(&peers, NULL, 2, 3, 2, &other), 0);
	assert_int_equal(http_peer_join(&peers, NULL, 3, 3, 2, &other), -EUSERS);
	http_peer_leave(&peers, peer);
	assert_int_equal(http_peer_join(&peers, NULL, 1, 3, 2, &peer), 0);
	http_peer_leave(&peers, other);
	http_peer_leave(&peers, peer);
	http_peer_leave(&peers, peer);
}

static void
a_tenant_is_held_once_and_its_bytes_are_bounded(void **state)
{
	struct engine_options options = { .base = NULL };
	struct http_tenants tenants = { .sessions = 0 };
	struct http_tenant *tenant, *other;

	(void)state;
	assert_int_equal(engine_new(&options, &tenants.engine), 0);
	other = http_tenant_find(&tenants, "token:uid:7");
	tenant = http_tenant_find(&tenants, "uid:7");
	assert_ptr_equal(http_tenant_find(&tenants, "uid:7"), tenant);
	assert_ptr_not_equal(other, tenant);
	http_tenant_let_go(other);
	assert_int_equal(fake_engine_record()->tenants_held, 1);

	assert_true(http_tenant_take_bytes(tenant, HTTP_TENANT_BYTES_MAX - 1));
	assert_false(http_tenant_take_bytes(tenant, 2));
	assert_false(http_tenant_take_bytes(tenant, SIZE_MAX));
	assert_true(http_tenant_take_bytes(tenant, 1));
	http_tenant_give_bytes(tenant, HTTP_TENANT_BYTES_MAX);
	assert_int_equal(tenant->bytes, 0);

	http_tenant_let_go(tenant);
	assert_int_equal(fake_engine_record()->tenants_held, 1);
	http_tenant_let_go(tenant);
	assert_int_equal(fake_engine_record()->tenants_held, 0);
	engine_free(tenants.engine);
}

/* One tenant after the other takes what it can get, and something is left for the next. */
static void
tenants_have_shares_of_the_bytes(void **state)
{
	struct engine_options options = { .base = NULL };
	struct http_tenants tenants = { .sessions = 0 };
	struct http_peers peers = { .connections = 0 };
	struct http_peer *one, *two;
	struct http_tenant *tenant[12];
	size_t taken = SIZE_MAX;
	char name[16];

	(void)state;
	assert_int_equal(engine_new(&options, &tenants.engine), 0);
	for (size_t i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "uid:%zu", i);
		tenant[i] = http_tenant_find(&tenants, name);
		while (http_tenant_take_bytes(tenant[i], 4096))
			;
		assert_true(tenant[i]->bytes > 0 && tenant[i]->bytes <= taken);
		taken = tenant[i]->bytes;
	}
	assert_true(tenants.bytes < fair_memory(HTTP_ALL_PART));
	for (size_t i = 0; i < 12; i++) {
		http_tenant_give_bytes(tenant[i], tenant[i]->bytes);
		http_tenant_let_go(tenant[i]);
	}
	assert_int_equal(tenants.bytes, 0);
	engine_free(tenants.engine);
	taken = fair_memory(HTTP_ALL_PART) / 2;
	one = join(&peers, NULL, 1);
	two = join(&peers, NULL, 2);
	assert_true(http_peer_charge(&peers, one, 0, taken));
	assert_false(http_peer_charge(&peers, two, 0, taken));
	http_peer_charge(&peers, one, taken, 0);
	http_peer_leave(&peers, one);
	http_peer_charge(&peers, two, taken, 0);
	http_peer_leave(&peers, two);
}

/* The time of N calls for tenants and peers that are known, of n that there are. */
static uint64_t
take_time(struct http_tenants *tenants, struct http_peers *peers, unsigned int n)
{
	enum { N = 2000 };
	struct http_peer *peer;
	struct timespec from, to;
	char name[32];

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	for (unsigned int i = 0; i < N; i++) {
		unsigned int number = i * 7919 % n;

		snprintf(name, sizeof(name), "token:%u", number);
		http_tenant_let_go(http_tenant_find(tenants, name));
		assert_int_equal(http_peer_join(peers, NULL, number, SIZE_MAX, SIZE_MAX, &peer), 0);
		http_peer_leave(peers, peer);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	return (uint64_t)(to.tv_sec - from.tv_sec) * 1000000000 + (uint64_t)to.tv_nsec -
	       (uint64_t)from.tv_nsec;
}

/* Among 5,000 tenants and peers a call costs about what it does among 50. A walk over all would
 * cost a hundred times as much; a busy machine, whose caches others fill, some ten times. */
static void
a_call_does_not_pay_for_other_tenants(void **state)
{
	enum { FEW = 50, MANY = 5000, ROUNDS = 9 };
	struct engine_options options = { .base = NULL };
	struct http_tenants tenants[2] = { { .sessions = 0 } };
	struct http_peers peers[2] = { { .connections = 0 } };
	static struct http_tenant *tenant[2][MANY];
	static struct http_peer *peer[2][MANY];
	const unsigned int n[] = { FEW, MANY };
	uint64_t least[] = { UINT64_MAX, UINT64_MAX };
	char name[32];

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(engine_new(&options, &tenants[i].engine), 0);
		for (unsigned int t = 0; t < n[i]; t++) {
			snprintf(name, sizeof(name), "token:%u", t);
			tenant[i][t] = http_tenant_find(&tenants[i], name);
			assert_int_equal(http_peer_join(&peers[i], NULL, t, SIZE_MAX, SIZE_MAX,
							&peer[i][t]), 0);
		}
	}
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < 2; i++) {
			uint64_t took = take_time(&tenants[i], &peers[i], n[i]);

			least[i] = took < least[i] ? took : least[i];
		}
	assert_in_range(least[1], 0, 40 * least[0]);
	for (int i = 0; i < 2; i++) {
		for (unsigned int t = 0; t < n[i]; t++) {
			http_tenant_let_go(tenant[i][t]);
			http_peer_leave(&peers[i], peer[i][t]);
		}
		assert_null(tenants[i].tree);
		assert_null(peers[i].tree);
		engine_free(tenants[i].engine);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peers_are_told_apart),
		cmocka_unit_test(connections_are_bounded),
		cmocka_unit_test(a_tenant_is_held_once_and_its_bytes_are_bounded),
		cmocka_unit_test(tenants_have_shares_of_the_bytes),
		cmocka_unit_test(a_call_does_not_pay_for_other_tenants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
