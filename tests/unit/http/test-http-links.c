/* SPDX-License-Identifier: Apache-2.0 */
/* Signed links: only what was signed leads to a file, and only until it expires. And the header
 * Range. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "http/range.h"
#include "policy/config.h"
#include "tools/shared/links.h"

#define URI "mcp-python://x-abc/out/a%20b.bin"

static struct config *config;
static struct tenant *alice, *bob;
static uint64_t the_time = 1000000;

static uint64_t
test_clock(void)
{
	return the_time;
}

static int
start(void **state)
{
	(void)state;
	config = config_new();
	alice = engine_tenant_named(NULL, "sub:alice");
	bob = engine_tenant_named(NULL, "sub:bob");
	links_set_clock(test_clock);
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	tenant_release(alice);
	tenant_release(bob);
	config_free(config);
	return 0;
}

/* The path of a new link, malloc'd. */
static char *
path_of(const struct tenant *tenant, const char *base)
{
	char *link, *path;

	free(config->http.links);
	config->http.links = strdup(base);
	link = link_new(config, tenant, URI);
	assert_non_null(link);
	assert_int_equal(strncmp(link, "https://f.example/x" LINKS_PATH, 26), 0);
	path = strdup(link + strlen("https://f.example/x"));
	free(link);
	return path;
}

static void
is_for(const char *path, const char *principal)
{
	struct link link;

	assert_true(link_read(path, &link));
	assert_string_equal(link.principal, principal);
	assert_string_equal(link.uri, URI);
	free(link.uri);
}

static void
a_link_leads_to_its_file(void **state)
{
	char *path;

	(void)state;
	assert_null(link_new(config, alice, URI));
	path = path_of(alice, "https://f.example/x");
	is_for(path, "sub:alice");
	free(path);
	path = path_of(bob, "https://f.example/x/");
	is_for(path, "sub:bob");
	free(path);
}

static void
nothing_else_does(void **state)
{
	static const char *const odd[] = {
		"", "/", "/files", "/files/", "/files/0", "/files/0-", "/files/0-1-", "/files/-1-1-/x",
		"/files/0-9999999999999-00000000000000000000000000000000/x-abc/out/a%20b.bin",
		"/files/0-1003600-00000000000000000000000000000000/x-abc/out/a%20b.bin",
		"/files/99999999999999999999-1-00000000000000000000000000000000/x", "/mcp",
	};
	char *path = path_of(alice, "https://f.example/x");
	struct link link;

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++)
		assert_false(link_read(odd[i], &link));
	/* Each character counts, of the tenant, the end, the signature and the file. */
	for (size_t i = 0; path[i]; i++)
		for (unsigned int bit = 0; bit < 8; bit++) {
			path[i] = (char)(path[i] ^ (1 << bit));
			assert_false(link_read(path, &link));
			path[i] = (char)(path[i] ^ (1 << bit));
		}
	for (size_t len = strlen(path); len-- > 0;) {
		char *part = strndup(path, len);

		assert_false(link_read(part, &link));
		free(part);
	}
	is_for(path, "sub:alice");
	free(path);
}

static void
a_link_expires(void **state)
{
	char *path = path_of(alice, "https://f.example/x");
	struct link link;

	(void)state;
	the_time += config->http.link_seconds - 1;
	is_for(path, "sub:alice");
	the_time++;
	assert_false(link_read(path, &link));
	free(path);
}

static void
a_tenants_links_are_ended(void **state)
{
	char *first = path_of(alice, "https://f.example/x"), *second;
	char *other = path_of(bob, "https://f.example/x");
	struct link link;

	(void)state;
	links_end("sub:alice");
	links_end("sub:nobody");
	assert_false(link_read(first, &link));
	is_for(other, "sub:bob");
	second = path_of(alice, "https://f.example/x");
	is_for(second, "sub:alice");
	assert_false(link_read(first, &link));
	free(first);
	free(second);
	free(other);
}

static void
ranges_are_read(void **state)
{
	static const struct {
		const char *text;
		uint64_t size;
		int status;
		uint64_t offset, len;
	} cases[] = {
		{ NULL, 10, 200, 0, 10 }, { "", 10, 200, 0, 10 }, { "bytes=", 10, 200, 0, 10 },
		{ "bytes=0-0", 10, 206, 0, 1 }, { "bytes=3-5", 10, 206, 3, 3 },
		{ "Bytes=3-", 10, 206, 3, 7 }, { "bytes=3-99", 10, 206, 3, 7 },
		{ "bytes=-3", 10, 206, 7, 3 }, { "bytes=-99", 10, 206, 0, 10 },
		{ "bytes=-0", 10, 416, 0, 10 }, { "bytes=10-", 10, 416, 0, 10 },
		{ "bytes=10-11", 10, 416, 0, 10 }, { "bytes=0-", 0, 416, 0, 0 },
		{ "bytes=-1", 0, 416, 0, 0 }, { "bytes=5-4", 10, 200, 0, 10 },
		{ "bytes=1-2,4-5", 10, 200, 0, 10 }, { "bytes=1", 10, 200, 0, 10 },
		{ "bytes= 1-2", 10, 200, 0, 10 }, { "bytes=1-2x", 10, 200, 0, 10 },
		{ "bytes=--1", 10, 200, 0, 10 }, { "items=1-2", 10, 200, 0, 10 },
		{ "bytes=0-999999999999999999", 10, 206, 0, 10 },
		{ "bytes=0-9999999999999999999", 10, 200, 0, 10 },
		{ "bytes=99999999999999999999-", 10, 200, 0, 10 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t offset, len;

		assert_int_equal(http_range(cases[i].text, cases[i].size, &offset, &len),
				 cases[i].status);
		assert_int_equal(offset, cases[i].offset);
		assert_int_equal(len, cases[i].len);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_link_leads_to_its_file),
		cmocka_unit_test(nothing_else_does),
		cmocka_unit_test(a_link_expires),
		cmocka_unit_test(a_tenants_links_are_ended),
		cmocka_unit_test(ranges_are_read),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
