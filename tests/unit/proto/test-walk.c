/* SPDX-License-Identifier: Apache-2.0 */
/* The walk alone: every first byte, the end of the bytes, depth, and number of objects. */
#include "proto/codec.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define ZEROS "\0\0\0\0\0\0\0\0"

/* First bytes, with what must follow for one whole object. */
static const struct head_case {
	unsigned char first, last;
	const char *rest;
	size_t rest_len;
	int result;
} head_cases[] = {
#define HEAD(first, last, rest, result) { first, last, rest, sizeof(rest) - 1, result }
	HEAD(0x00, 0x7f, "", 0),
	HEAD(0x80, 0x80, "", 0), HEAD(0x81, 0x81, "\1\1", 0), HEAD(0x8f, 0x8f,
		"\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1", 0),
	HEAD(0x90, 0x90, "", 0), HEAD(0x92, 0x92, "\1\1", 0),
	HEAD(0xa0, 0xa0, "", 0), HEAD(0xa3, 0xa3, "abc", 0),
	HEAD(0xbf, 0xbf, "1234567890123456789012345678901", 0),
	HEAD(0xc0, 0xc1, "", -EBADMSG),			/* nil, never used */
	HEAD(0xc2, 0xc3, "", 0),
	HEAD(0xc4, 0xc4, "\2ab", 0), HEAD(0xc5, 0xc5, "\0\2ab", 0),
	HEAD(0xc6, 0xc6, "\0\0\0\2ab", 0),
	HEAD(0xc7, 0xc7, "\1\1a", -EBADMSG), HEAD(0xc8, 0xc8, "\0\1\1a", -EBADMSG),
	HEAD(0xc9, 0xc9, "\0\0\0\1\1a", -EBADMSG),	/* extensions */
	HEAD(0xca, 0xca, "\0\0\0\0", -EBADMSG),		/* floats */
	HEAD(0xcb, 0xcb, ZEROS, -EBADMSG),
	HEAD(0xcc, 0xcc, "\0", 0), HEAD(0xcd, 0xcd, "\0\0", 0),
	HEAD(0xce, 0xce, "\0\0\0\0", 0), HEAD(0xcf, 0xcf, ZEROS, 0),
	HEAD(0xd0, 0xd0, "\0", 0), HEAD(0xd1, 0xd1, "\0\0", 0),
	HEAD(0xd2, 0xd2, "\0\0\0\0", 0), HEAD(0xd3, 0xd3, ZEROS, 0),
	HEAD(0xd4, 0xd4, "\1a", -EBADMSG), HEAD(0xd5, 0xd5, "\1ab", -EBADMSG),
	HEAD(0xd6, 0xd6, "\1abcd", -EBADMSG), HEAD(0xd7, 0xd7, "\1abcdefgh", -EBADMSG),
	HEAD(0xd8, 0xd8, "\1abcdefghabcdefgh", -EBADMSG),
	HEAD(0xd9, 0xd9, "\2ab", 0), HEAD(0xda, 0xda, "\0\2ab", 0),
	HEAD(0xdb, 0xdb, "\0\0\0\2ab", 0),
	HEAD(0xdc, 0xdc, "\0\2\1\1", 0), HEAD(0xdd, 0xdd, "\0\0\0\2\1\1", 0),
	HEAD(0xde, 0xde, "\0\1\1\1", 0), HEAD(0xdf, 0xdf, "\0\0\0\1\1\1", 0),
	HEAD(0xe0, 0xff, "", 0),
#undef HEAD
};

static int
walk_exact(unsigned char first, const char *rest, size_t len, size_t objects_max)
{
	unsigned char *exact = malloc(1 + len);
	int r;

	assert_non_null(exact);
	exact[0] = first;
	memcpy(exact + 1, rest, len);
	r = walk_body(exact, 1 + len, objects_max);
	free(exact);
	return r;
}

static void
every_head_takes_exactly_its_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(head_cases); i++)
		for (int b = head_cases[i].first; b <= head_cases[i].last; b++) {
			const struct head_case *c = &head_cases[i];
			unsigned char byte = (unsigned char)b;
			char longer[64];

			if (walk_exact(byte, c->rest, c->rest_len, 100) != c->result)
				fail_msg("0x%02x", b);
			for (size_t len = 0; len < c->rest_len; len++)
				assert_int_equal(walk_exact(byte, c->rest, len, 100), -EBADMSG);
			memcpy(longer, c->rest, c->rest_len);
			longer[c->rest_len] = 1;
			assert_int_equal(walk_exact(byte, longer, c->rest_len + 1, 100), -EBADMSG);
		}
	assert_int_equal(walk_body("", 0, 100), -EBADMSG);
}

static void
the_second_container_is_the_deepest(void **state)
{
	(void)state;
	assert_int_equal(walk_body("\x91\x91\x01", 3, 100), 0);
	assert_int_equal(walk_body("\x81\x01\x81\x01\x01", 5, 100), 0);
	assert_int_equal(walk_body("\x91\x91\x90", 3, 100), -EBADMSG);
	assert_int_equal(walk_body("\x91\x91\x80", 3, 100), -EBADMSG);
	/* two beside each other are not deeper */
	assert_int_equal(walk_body("\x92\x91\x01\x91\x01", 5, 100), 0);
}

static void
objects_are_counted(void **state)
{
	(void)state;
	assert_int_equal(walk_body("\x92\x01\x01", 3, 3), 0);
	assert_int_equal(walk_body("\x92\x01\x01", 3, 2), -EBADMSG);
	assert_int_equal(walk_body("\x81\x01\x92\x01\x01", 5, 5), 0);
	assert_int_equal(walk_body("\x81\x01\x92\x01\x01", 5, 4), -EBADMSG);
	assert_int_equal(walk_body("\x01", 1, 0), -EBADMSG);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_head_takes_exactly_its_bytes),
		cmocka_unit_test(the_second_container_is_the_deepest),
		cmocka_unit_test(objects_are_counted),
	};

	return cmocka_run_group_tests_name("walk", tests, NULL, NULL);
}
