/* SPDX-License-Identifier: Apache-2.0 */
/* Versions and specifiers (PEP 440), requirements and markers (PEP 508), merging. */
#include "policy/requirement.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/version.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* In rising order; those on one line are the same version. */
static const char *const ascending[][4] = {
	{ "0.dev1" }, { "0a1" }, { "0", "0.0", "v0", " 0 " }, { "0.1" },
	{ "1.dev0", "1DEV", "1.0.dev" }, { "1a1.dev1" }, { "1a1", "1.alpha-1", "1_A.1" },
	{ "1a1.post1.dev2" }, { "1a1.post1" }, { "1b2", "1beta2" }, { "1rc1", "1c1", "1-pre_1" },
	{ "1", "1.0.0", "01" }, { "1+a" }, { "1+a.b" }, { "1+b" }, { "1+1" }, { "1+2", "1+02" },
	{ "1+10", "1.0+10" }, { "1+10.a" }, { "1.post0.dev1" }, { "1.post0", "1-0", "1.rev" },
	{ "1.post1", "1r1" }, { "1.0.1" }, { "1.2" }, { "1.10" }, { "2024.12.31" },
	{ "1!0" }, { "1!1.0", "1!1" },
};

static struct version
read_version(const char *text)
{
	struct version version;

	if (version_read(text, strlen(text), &version) < 0)
		fail_msg("not a version: %s", text);
	return version;
}

static void
versions_have_an_order(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(ascending); i++)
		for (size_t k = 0; k < N(ascending); k++)
			for (size_t n = 0; n < 4 && ascending[k][n]; n++) {
				struct version a = read_version(ascending[i][0]);
				struct version b = read_version(ascending[k][n]);
				int got = version_compare(&a, &b);

				if ((got > 0) - (got < 0) != (i > k) - (i < k))
					fail_msg("%s and %s: %d", ascending[i][0],
						 ascending[k][n], got);
			}
}

static void
what_is_no_version_is_refused(void **state)
{
	static const char *const wrong[] = {
		"", "a", "1.", ".1", "1..2", "1.x", "1+", "1+a_", "1a1b1", "1!2!3", "1 2", "==1",
		"1.0-", "1-a1-b", "1post1dev1x", "12345678901234567890",
	};
	struct version version;

	(void)state;
	for (size_t i = 0; i < N(wrong); i++)
		if (version_read(wrong[i], strlen(wrong[i]), &version) != -EINVAL)
			fail_msg("taken as a version: '%s'", wrong[i]);
}

static const struct {
	const char *specifiers, *version;
	int expected;		/* 1, 0, or -EINVAL */
} contained[] = {
	{ "", "1", 1 }, { ",", "1", 1 }, { ">=1,", "1", 1 }, { ">=1 , <2", "1.5", 1 },
	{ ">=1,<2", "2", 0 }, { "==1.0", "1", 1 }, { "==1.0", "1+local", 1 },
	{ "==1.0+local", "1", 0 }, { "==1.*", "1.9.3", 1 }, { "==1.*", "10", 0 },
	{ "==1.0.*", "1", 1 }, { "==1.*", "1!1", 0 }, { "==1.1.*", "1.1a1", 1 },
	{ "!=1.*", "2", 1 }, { "!=1.*", "1.2", 0 }, { "~=2.2", "2.9", 1 }, { "~=2.2", "3", 0 },
	{ "~=2.2", "2.1", 0 }, { "~=1.4.5a4", "1.4.9", 1 }, { "~=1.4.5a4", "1.5", 0 },
	{ "~=2.2.0", "2.2.7", 1 }, { "~=2.2.0", "2.3", 0 }, { "<1", "1a1", 0 }, { "<1", "0.9", 1 },
	{ "<1a2", "1a1", 1 }, { "<=1", "1+local", 1 }, { ">1", "1.post1", 0 },
	{ ">1.post0", "1.post1", 1 }, { ">1", "1+local", 0 }, { ">1", "1.0.1", 1 },
	{ ">=3.11", "3.11.2", 1 }, { ">=3.11", "3.11.0rc1", 0 }, { "===x y", "1", -EINVAL },
	{ "===1.0", "1.0", 1 }, { "===1.0", "1", 0 }, { "=== Odd", "odd", 1 },
	{ ">=1", "not a version", 0 }, { "1", "1", -EINVAL }, { "=1", "1", -EINVAL },
	{ "~=1", "1", -EINVAL }, { ">=1.*", "1", -EINVAL }, { ">=1+a", "1", -EINVAL },
	{ "==1a1.*", "1", -EINVAL }, { ">=3.x", "3", -EINVAL }, { ">=1 <2", "1", -EINVAL },
	{ "==", "1", -EINVAL }, { "<>1", "1", -EINVAL },
};

static void
specifiers_contain(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(contained); i++) {
		bool holds = false;
		int r = specifiers_check(contained[i].specifiers,
					 strlen(contained[i].specifiers),
					 contained[i].version, &holds);

		if ((r < 0 ? r : (int)holds) != contained[i].expected)
			fail_msg("'%s' and %s: %d, %d", contained[i].specifiers,
				 contained[i].version, r, holds);
	}
}

static const struct {
	const char *text, *name, *extras, *specifiers, *url, *marker;
} requirements[] = {
	{ "six", "six", "", "", NULL, NULL },
	{ " A.b_C--d ", "a-b-c-d", "", "", NULL, NULL },
	{ "a [ Z_z, b ,b]>=1, <2", "a", "b,z-z", ">=1, <2", NULL, NULL },
	{ "a[]==1.*", "a", "", "==1.*", NULL, NULL },
	{ "a (>=1,<2)", "a", "", ">=1,<2", NULL, NULL },
	{ "a>=1,", "a", "", ">=1", NULL, NULL },
	{ "a@https://x.invalid/a;b", "a", "", "", "https://x.invalid/a;b", NULL },
	{ "a[b] @ git+ssh://x/y ; os_name=='nt'", "a", "b", "", "git+ssh://x/y", "os_name=='nt'" },
	{ "a @ file:/x", "a", "", "", "file:/x", NULL },
	{ "a;extra=='b'", "a", "", "", NULL, "extra=='b'" },
};

static const char *const no_requirements[] = {
	"", " ", "-e x", "--index-url=http://x", "./x", "-six", "six-", "six=1", "six==", "six==1.x",
	"six # x", "six;", "six; x", "six; touch /tmp/x", "six[", "six[a", "six[a;]", "six[,]",
	"six(>=1", "six 1", "six >= 1 2", "a @ ", "a @ x", "a @ https://", "a @ https:/x",
	"a @ https://x y", "six; os_name == 'nt' and", "six; os_name = 'nt'",
	"six; os_name == 'nt", "six; os_name in", "six; os_name not 'nt'", "six; 'a'",
	"six; (os_name == 'nt'", "six; os_name == 'nt')", "s\xc3\xadx", "six>=1\nx",
	"six; ((((((((((((((((((os_name=='nt'))))))))))))))))))",
};

static void
requirements_are_taken_apart(void **state)
{
	struct requirement got;

	(void)state;
	for (size_t i = 0; i < N(requirements); i++) {
		if (requirement_read(requirements[i].text, strlen(requirements[i].text),
				     &got) < 0)
			fail_msg("refused: %s", requirements[i].text);
		assert_string_equal(got.written, requirements[i].text);
		assert_string_equal(got.name, requirements[i].name);
		assert_string_equal(got.extras, requirements[i].extras);
		assert_string_equal(got.specifiers, requirements[i].specifiers);
		assert_string_equal(got.url ? got.url : "none",
				    requirements[i].url ? requirements[i].url : "none");
		assert_string_equal(got.marker ? got.marker : "none",
				    requirements[i].marker ? requirements[i].marker : "none");
		requirement_done(&got);
	}
	for (size_t i = 0; i < N(no_requirements); i++)
		if (requirement_read(no_requirements[i], strlen(no_requirements[i]), &got) !=
		    -EINVAL)
			fail_msg("taken: '%s'", no_requirements[i]);
	assert_int_equal(requirement_read("a\0b", 3, &got), -EINVAL);
}

/* What may stand before and after the piece that is tried. */
static const char *const around[][2] = {
	{ "a @ https://x.invalid/a-1-py3-none-any.whl#", "--requirement=https://x.invalid/r#" },
	{ "a @ https://x.invalid/", "a-1-py3-none-any.whl" },
	{ "a; os_name == 'a", "--pre'" }, { "a; os_name == \"a", "\"" }, { "a===1", "2" },
	{ "a", ">=1" }, { "a>=1", "" }, { "", "a" }, { "a[b", "]" }, { "a ;", " os_name == 'a'" },
};

static bool
is_taken(const char *before, const char *piece, const char *after)
{
	struct requirement got;
	char text[256];
	int r;

	snprintf(text, sizeof(text), "%s%s%s", before, piece, after);
	r = requirement_read(text, strlen(text), &got);
	if (r == 0)
		requirement_done(&got);
	return r == 0;
}

static void
requirements_are_one_printable_line(void **state)
{
	static const char *const pieces[] = {
		"\n", "\r", "\r\n", "\t", "\v", "\f", "\x1b", "\x1c", "\x01", "\x7f",
		"\xc2\x80", "\xc2\x85", "\xc2\x9f", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xae",
		"\xc3\xa9", "\x85", "\xff", "$", "${HOME}",
	};

	(void)state;
	for (size_t i = 0; i < N(around); i++)
		for (size_t k = 0; k < N(pieces); k++)
			if (is_taken(around[i][0], pieces[k], around[i][1]))
				fail_msg("%zu: taken with piece %zu", i, k);
	for (size_t i = 0; i < N(around); i++)
		if (!is_taken(around[i][0], "", around[i][1]))
			fail_msg("%zu: not taken without", i);
}

static const char *
value(void *arg, const char *variable)
{
	static const char *const values[][2] = {
		{ "python_version", "3.11" }, { "python_full_version", "3.11.2" },
		{ "os_name", "posix" }, { "sys_platform", "linux" },
		{ "platform_release", "6.18.0-generic" },
	};

	(void)arg;
	for (size_t i = 0; i < N(values); i++)
		if (strcmp(values[i][0], variable) == 0)
			return values[i][1];
	return NULL;
}

static const struct { const char *marker; bool holds; } markers[] = {
	{ "python_version >= '3.9'", true }, { "python_version<'3.9'", false },
	{ "python_version == '3.*'", true }, { "'3.11' == python_version", true },
	{ "python_full_version ~= '3.11.0'", true }, { "os.name == \"posix\"", true },
	{ "sys_platform != 'win32' and os_name == 'posix'", true },
	{ "sys_platform == 'win32' or os_name == 'posix'", true },
	{ "sys_platform == 'win32' and os_name == 'x' or os_name == 'posix'", true },
	{ "sys_platform == 'win32' and (os_name == 'x' or os_name == 'posix')", false },
	{ "'lin' in sys_platform", true }, { "sys_platform not in 'linux darwin'", false },
	{ "platform_release >= '6'", true }, { "platform_machine == 'x'", false },
	{ "extra == 'Some_Extra'", true }, { "extra == 'other'", false },
	{ "extra != 'other' and python_version > '3'", true },
};

static void
markers_are_evaluated(void **state)
{
	const struct marker_environment environment = { value, NULL };
	char text[256];

	(void)state;
	for (size_t i = 0; i < N(markers); i++) {
		struct requirement got;

		snprintf(text, sizeof(text), "a; %s", markers[i].marker);
		assert_int_equal(requirement_read(text, strlen(text), &got), 0);
		if (requirement_applies(&got, &environment, "some-extra") != markers[i].holds)
			fail_msg("%s", markers[i].marker);
		requirement_done(&got);
	}
}

static int
add(struct requirements *list, const char *text)
{
	struct requirement requirement;

	assert_int_equal(requirement_read(text, strlen(text), &requirement), 0);
	return requirements_add(list, &requirement);
}

static void
each_name_stands_once(void **state)
{
	static const char *const texts[] = {
		"Foo_Bar>=1", "foo.bar<2", "FOO-BAR[x,a]", "foo-bar>=1,<2", "b", "B", "b[c]==1",
		"b; os_name == 'nt'", "b>1; os_name == 'nt'", "c @ https://x.invalid/c",
		"c[x] @ https://x.invalid/c", "d; os_name == 'nt'", "D ;os_name == 'nt'",
	};
	static const char *const merged[] = {
		"foo-bar[a,x]>=1,<2", "b[c]==1", "b>1; os_name == 'nt'",
		"c[x] @ https://x.invalid/c", "d; os_name == 'nt'",
	};
	struct requirements list = { .n = 0 };

	(void)state;
	for (size_t i = 0; i < N(texts); i++)
		assert_int_equal(add(&list, texts[i]), 0);
	assert_int_equal(list.n, N(merged));
	for (size_t i = 0; i < N(merged); i++) {
		struct requirement again;

		assert_string_equal(list.item[i].written, merged[i]);
		/* and it says what it was made of */
		assert_int_equal(requirement_read(merged[i], strlen(merged[i]), &again), 0);
		assert_string_equal(again.extras, list.item[i].extras);
		assert_string_equal(again.specifiers, list.item[i].specifiers);
		requirement_done(&again);
	}
	requirements_remove(&list, "b");
	requirements_remove(&list, "none");
	assert_int_equal(list.n, 3);
	assert_string_equal(list.item[1].written, "c[x] @ https://x.invalid/c");
	requirements_done(&list);
}

static void
lists_are_bounded(void **state)
{
	struct requirements list = { .n = 0 };
	char text[REQUIREMENT_MAX + 1];

	(void)state;
	for (int i = 0; i < REQUIREMENTS_MAX; i++) {
		snprintf(text, sizeof(text), "p%d", i);
		assert_int_equal(add(&list, text), 0);
	}
	assert_int_equal(add(&list, "one-more"), -E2BIG);
	assert_int_equal(add(&list, "p7"), 0);
	assert_int_equal(list.n, REQUIREMENTS_MAX);
	requirements_done(&list);
	for (int i = 0, r = 0; r == 0; i++) {
		assert_true(i < 1000);
		snprintf(text, sizeof(text), "a!=%d.1000000000", i);
		r = add(&list, text);
		assert_true(r == 0 || r == -E2BIG);
	}
	assert_true(strlen(list.item[0].written) <= REQUIREMENT_MAX);
	requirements_done(&list);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_have_an_order),
		cmocka_unit_test(what_is_no_version_is_refused),
		cmocka_unit_test(specifiers_contain),
		cmocka_unit_test(requirements_are_taken_apart),
		cmocka_unit_test(requirements_are_one_printable_line),
		cmocka_unit_test(markers_are_evaluated),
		cmocka_unit_test(each_name_stands_once),
		cmocka_unit_test(lists_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
