/* SPDX-License-Identifier: Apache-2.0 */
/* Rules, targets and kinds of addresses: tables. */
#include "policy/network.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define N(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	const char *text;
	enum network_class which;
} addresses[] = {
	{ "1.1.1.1", NETWORK_PUBLIC },
	{ "223.255.255.255", NETWORK_PUBLIC },
	{ "128.0.0.1", NETWORK_PUBLIC },
	{ "126.255.255.255", NETWORK_PUBLIC },
	{ "127.0.0.1", NETWORK_LOOPBACK },
	{ "127.255.255.255", NETWORK_LOOPBACK },
	{ "0.0.0.0", NETWORK_RESERVED },
	{ "0.1.2.3", NETWORK_RESERVED },
	{ "10.0.0.1", NETWORK_PRIVATE },
	{ "11.0.0.0", NETWORK_PUBLIC },
	{ "100.63.255.255", NETWORK_PUBLIC },
	{ "100.64.0.0", NETWORK_PRIVATE },
	{ "100.127.255.255", NETWORK_PRIVATE },
	{ "100.128.0.0", NETWORK_PUBLIC },
	{ "100.100.100.200", NETWORK_METADATA },
	{ "168.63.129.16", NETWORK_METADATA },
	{ "169.254.169.254", NETWORK_METADATA },
	{ "169.254.0.1", NETWORK_LINK_LOCAL },
	{ "172.15.255.255", NETWORK_PUBLIC },
	{ "172.16.0.0", NETWORK_PRIVATE },
	{ "172.31.255.255", NETWORK_PRIVATE },
	{ "172.32.0.0", NETWORK_PUBLIC },
	{ "192.0.0.192", NETWORK_METADATA },
	{ "192.0.0.8", NETWORK_RESERVED },
	{ "192.0.2.1", NETWORK_RESERVED },
	{ "192.168.255.255", NETWORK_PRIVATE },
	{ "192.169.0.0", NETWORK_PUBLIC },
	{ "198.17.255.255", NETWORK_PUBLIC },
	{ "198.18.0.0", NETWORK_RESERVED },
	{ "198.19.255.255", NETWORK_RESERVED },
	{ "224.0.0.1", NETWORK_MULTICAST },
	{ "239.255.255.255", NETWORK_MULTICAST },
	{ "240.0.0.1", NETWORK_RESERVED },
	{ "255.255.255.255", NETWORK_MULTICAST },
	{ "2606:4700::1111", NETWORK_PUBLIC },
	{ "3ffe:ffff::1", NETWORK_PUBLIC },
	{ "::", NETWORK_RESERVED },
	{ "::1", NETWORK_LOOPBACK },
	{ "::2", NETWORK_RESERVED },
	{ "::7f00:1", NETWORK_RESERVED },
	{ "fc00::1", NETWORK_PRIVATE },
	{ "fdff::1", NETWORK_PRIVATE },
	{ "fd00:ec2::254", NETWORK_METADATA },
	{ "fe80::1", NETWORK_LINK_LOCAL },
	{ "febf::1", NETWORK_LINK_LOCAL },
	{ "fec0::1", NETWORK_PRIVATE },
	{ "ff02::1", NETWORK_MULTICAST },
	{ "2001:db8::1", NETWORK_RESERVED },
	{ "2001::1", NETWORK_RESERVED },
	{ "2001:200::1", NETWORK_PUBLIC },
	{ "3fff:fff::1", NETWORK_RESERVED },
	{ "4000::1", NETWORK_RESERVED },
	{ "100::1", NETWORK_RESERVED },
	{ "::ffff:127.0.0.1", NETWORK_LOOPBACK },
	{ "::ffff:10.1.2.3", NETWORK_PRIVATE },
	{ "::ffff:8.8.8.8", NETWORK_PUBLIC },
	{ "64:ff9b::a9fe:a9fe", NETWORK_METADATA },
	{ "64:ff9b::808:808", NETWORK_PUBLIC },
	{ "64:ff9b::1:808:808", NETWORK_RESERVED },
	{ "64:ff9b:1::1", NETWORK_RESERVED },
	{ "2002:7f00:1::", NETWORK_LOOPBACK },
	{ "2002:c0a8:101::1", NETWORK_PRIVATE },
	{ "2002:808:808::1", NETWORK_PUBLIC },
};

static void
each_address_has_its_class(void **state)
{
	struct network_address none = { 0 };

	(void)state;
	for (size_t i = 0; i < N(addresses); i++) {
		struct network_address a;

		if (network_address_parse(addresses[i].text, strlen(addresses[i].text), &a) < 0)
			fail_msg("%s", addresses[i].text);
		if (network_classify(&a) != addresses[i].which)
			fail_msg("%s has class %d", addresses[i].text, network_classify(&a));
	}
	assert_int_equal(network_classify(&none), NETWORK_RESERVED);
}

/* What carries an address is never better than what it carries. */
static void
carried_addresses_are_what_they_are(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 65536; i++) {
		struct network_address plain = { 4, { (uint8_t)(i >> 8), (uint8_t)i, 5, 6 } };
		struct network_address mapped = { 6, { [10] = 0xff, [11] = 0xff } };
		struct network_address nat64 = { 6, { 0, 0x64, 0xff, 0x9b } };
		struct network_address six = { 6, { 0x20, 0x02 } };

		memcpy(mapped.byte + 12, plain.byte, 4);
		memcpy(nat64.byte + 12, plain.byte, 4);
		memcpy(six.byte + 2, plain.byte, 4);
		assert_int_equal(network_classify(&mapped), network_classify(&plain));
		assert_int_equal(network_classify(&nat64), network_classify(&plain));
		assert_int_equal(network_classify(&six), network_classify(&plain));
	}
}

static const struct {
	const char *range, *address;
	bool has;
} ranges[] = {
	{ "127.0.0.1", "127.0.0.1", true },
	{ "127.0.0.1", "127.0.0.2", false },
	{ "127.0.0.1", "::ffff:127.0.0.1", true },
	{ "127.0.0.1", "::1", false },
	{ "10.0.0.0/8", "10.255.1.2", true },
	{ "10.0.0.0/8", "11.0.0.0", false },
	{ "192.168.4.0/22", "192.168.7.255", true },
	{ "192.168.4.0/22", "192.168.8.0", false },
	{ "0.0.0.0/0", "9.9.9.9", true },
	{ "0.0.0.0/0", "2606::1", false },
	{ "fd00::/8", "fd12::1", true },
	{ "fd00::/8", "fc12::1", false },
	{ "::1/128", "::1", true },
};

static const char *const bad_ranges[] = {
	"", "x", "10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8 ",
	"::1/129", "fd00::1/8", "10.0.0/8", "[::1]", "127.0.0.1:80", "/8",
};

static void
ranges_have_what_is_in_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(ranges); i++) {
		struct network_range range;
		struct network_address a;

		if (network_range_parse(ranges[i].range, strlen(ranges[i].range), &range) < 0 ||
		    network_address_parse(ranges[i].address, strlen(ranges[i].address), &a) < 0 ||
		    network_range_has(&range, &a) != ranges[i].has)
			fail_msg("%s %s", ranges[i].range, ranges[i].address);
	}
	for (size_t i = 0; i < N(bad_ranges); i++) {
		struct network_range range;

		if (network_range_parse(bad_ranges[i], strlen(bad_ranges[i]), &range) == 0)
			fail_msg("%s", bad_ranges[i]);
	}
}

static const struct {
	const char *rule, *target;
	bool allows;
} rules[] = {
	{ "example.org", "example.org:443", true },
	{ "example.org", "example.org:80", true },
	{ "example.org", "example.org:8080", false },
	{ "example.org", "EXAMPLE.org.:443", true },
	{ "Example.Org.", "example.org:443", true },
	{ "example.org", "www.example.org:443", false },
	{ "example.org", "xexample.org:443", false },
	{ "example.org", "example.org.evil.net:443", false },
	{ "example.org:8443", "example.org:8443", true },
	{ "example.org:8443", "example.org:443", false },
	{ "example.org:*", "example.org:1", true },
	{ ".example.org", "a.example.org:443", true },
	{ ".example.org", "a.b.example.org:443", true },
	{ ".example.org", "example.org:443", false },
	{ ".example.org", "aexample.org:443", false },
	{ ".example.org:9", "a.example.org:9", true },
	{ ".example.org:9", "a.example.org:443", false },
	{ "*", "anything.test:443", true },
	{ "*", "9.9.9.9:443", true },
	{ "*", "anything.test:22", false },
	{ "*:22", "anything.test:22", true },
	{ "*:*", "[2606::1]:1", true },
	{ "127.0.0.1:8000", "127.0.0.1:8000", true },
	{ "127.0.0.1:8000", "localhost:8000", false },
	{ "localhost:8000", "127.0.0.1:8000", false },
	{ "[::1]:8000", "[::1]:8000", true },
	{ "[::1]:8000", "[0:0:0:0:0:0:0:1]:8000", true },
	{ ".1", "127.0.0.1:80", false },
};

static const char *const bad_rules[] = {
	"", ":", ":80", "*:0", "a:65536", "a:b", "a:", "a..b", ".", "..a", "a b", "a/b",
	"http://a", "*.example.org", "a:80:80", "::1", "[::1", "[127.0.0.1]", "user@a",
	"127.1", "0x7f.1", "1", "a.0x1", "\xc3\xa9.org",
};

static void
rules_allow_what_they_name(void **state)
{
	struct network_rule rule;

	(void)state;
	for (size_t i = 0; i < N(rules); i++) {
		struct network_target target;
		bool parsed = network_rule_parse(rules[i].rule, strlen(rules[i].rule), &rule) == 0;

		if (strcmp(rules[i].rule, ".1") == 0) {
			assert_false(parsed);
			continue;
		}
		if (!parsed || network_target_parse(rules[i].target, strlen(rules[i].target), 0,
						    &target) < 0 ||
		    network_rule_allows(&rule, &target) != rules[i].allows)
			fail_msg("%s %s", rules[i].rule, rules[i].target);
	}
	for (size_t i = 0; i < N(bad_rules); i++)
		if (network_rule_parse(bad_rules[i], strlen(bad_rules[i]), &rule) == 0)
			fail_msg("%s", bad_rules[i]);
}

static const char *const bad_targets[] = {
	"", ":", ":443", "a", "a:", "a:0", "a:65536", "a:-1", "a:+1", "a:1x", "a :1", "a\t:1",
	"[::1]", "::1:1", "[::1%lo]:1", "[::1", "u@a:1", "a/b:1", "127.1:80", "2130706433:80",
	"0x7f000001:80", "a.0x7f:80", "017700000001:1", "127.0.0.01:1", "a..b:1", "-", "a,b:1",
	"\x80:1", "[127.0.0.1]:1", "[a]:1", "a.123:1",
};

static void
odd_targets_are_refused(void **state)
{
	struct network_target target;
	char longest[300];

	(void)state;
	for (size_t i = 0; i < N(bad_targets); i++)
		if (network_target_parse(bad_targets[i], strlen(bad_targets[i]), 0, &target) == 0)
			fail_msg("%s", bad_targets[i]);
	assert_int_equal(network_target_parse("a\0b:1", 5, 0, &target), -EINVAL);
	memset(longest, 'a', sizeof(longest));
	assert_int_equal(network_target_parse(longest, 64, 80, &target), -EINVAL);
	assert_int_equal(network_target_parse(longest, 63, 80, &target), 0);
	for (size_t i = 50; i < sizeof(longest); i += 50)
		longest[i] = '.';
	assert_int_equal(network_target_parse(longest, 253, 80, &target), 0);
	assert_int_equal(strlen(target.host), 253);
	assert_int_equal(network_target_parse(longest, 254, 80, &target), -EINVAL);
	assert_int_equal(network_target_parse("a:", 2, 80, &target), 0);
	assert_int_equal(target.port, 80);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_address_has_its_class),
		cmocka_unit_test(carried_addresses_are_what_they_are),
		cmocka_unit_test(ranges_have_what_is_in_them),
		cmocka_unit_test(rules_allow_what_they_name),
		cmocka_unit_test(odd_targets_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
