/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons are one clean line, however long and strange what they quote. */
#include "base/why.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void
the_code_comes_back(void **state)
{
	struct why why;

	(void)state;
	assert_int_equal(why_say(&why, -ERANGE, "pids", "at most %d", 5), -ERANGE);
	assert_string_equal(why.field, "pids");
	assert_string_equal(why.text, "at most 5");
	assert_int_equal(why_say(NULL, -EINVAL, "pids", "nobody listens"), -EINVAL);
}

static void
it_is_one_line(void **state)
{
	struct why why;

	(void)state;
	why_say(&why, 0, "a\nb", "%s", "one\ntwo\r\x1b[31m\x7fred");
	assert_string_equal(why.field, "a b");
	assert_string_equal(why.text, "one two  [31m red");
}

static void
a_cut_leaves_whole_characters(void **state)
{
	char text[sizeof(((struct why *)0)->text) + 10];
	struct why why;

	(void)state;
	for (size_t shift = 0; shift < 4; shift++) {
		size_t len;

		memset(text, 'x', shift);
		for (size_t i = shift; i + 4 < sizeof(text); i += 4)
			memcpy(text + i, "\xf0\x9f\x90\x8d", 5);
		why_say(&why, 0, "", "%s", text);
		len = strlen(why.text);
		assert_int_equal((len - shift) % 4, 0);
		assert_true(len > sizeof(why.text) - 6);
	}
}

static void
what_just_fits_is_not_cut(void **state)
{
	char text[sizeof(((struct why *)0)->text) + 1];
	struct why why;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(why.text) - 2] = '\0';
	why_say(&why, 0, "", "%s", text);
	assert_string_equal(why.text, text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_code_comes_back),
		cmocka_unit_test(it_is_one_line),
		cmocka_unit_test(a_cut_leaves_whole_characters),
		cmocka_unit_test(what_just_fits_is_not_cut),
	};

	return cmocka_run_group_tests_name("why", tests, NULL, NULL);
}
