/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of packages: what is read of one, and what an environment's name is made of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/xalloc.h"
#include "tools/sets/set.h"

#define HASH "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define INDEX "https://index.example/simple"
#define SECOND "https://second.example/simple"
#define WHEEL "https://index.example/files/numpy-1.0-py3-none-any.whl"

/* One package with something more or else in it: JSON's members. */
static json_t *
read_with(const char *more)
{
	json_t *origins = json_pack("[sss]", INDEX, SECOND, WHEEL), *packages, *other, *set;

	packages = json_pack("[{s:s,s:s,s:s,s:s,s:i}]", "name", "numpy", "version", "1.0",
			     "hash", HASH, "index", INDEX, "size", 10);
	other = json_loads(more, 0, NULL);
	assert_non_null(other);
	json_object_update(json_array_get(packages, 0), other);
	set = set_read(packages, origins);
	json_decref(other);
	json_decref(packages);
	json_decref(origins);
	return set;
}

static void
what_is_no_package_is_refused(void **state)
{
	static const char *const wrong[] = {
		"{\"name\":\"NumPy\"}", "{\"name\":\"\"}", "{\"name\":1}", "{\"version\":\"x\"}",
		"{\"hash\":\"sha256:00\"}", "{\"hash\":null}", "{\"size\":-1}",
		"{\"index\":\"https://other.example\"}", "{\"built\":false}",
		"{\"built\":\"true\"}", "{\"built\":1}", "{\"built\":null}",
	};
	json_t *set;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		set = read_with(wrong[i]);
		if (set)
			fail_msg("%s", wrong[i]);
	}
	set = read_with("{\"file\":\"x\"}");
	assert_non_null(set);
	assert_null(json_object_get(json_array_get(set, 0), "file"));
	json_decref(set);
}

static void
what_was_built_has_another_name(void **state)
{
	json_t *wheel = read_with("{}"), *built = read_with("{\"built\":true}");
	char name[2][SET_NAME + 1], again[SET_NAME + 1];
	struct package package;

	(void)state;
	set_name("cpython", wheel, name[0]);
	set_name("cpython", built, name[1]);
	assert_string_not_equal(name[0], name[1]);
	set_name("cpython", built, again);
	assert_string_equal(name[1], again);
	set_name("pypy", built, again);
	assert_string_not_equal(name[1], again);
	set_packages(wheel, &package);
	assert_false(package.built);
	set_packages(built, &package);
	assert_true(package.built);
	json_decref(wheel);
	json_decref(built);
}

/* The very same file: who asks an index does not get what others got by a URL. */
static void
what_comes_from_elsewhere_has_another_name(void **state)
{
	static const char *const from[] = { INDEX, SECOND, WHEEL };
	char name[3][SET_NAME + 1], more[200];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		json_t *set;

		snprintf(more, sizeof(more), "{\"index\":\"%s\"}", from[i]);
		set = read_with(more);
		assert_non_null(set);
		set_name("cpython", set, name[i]);
		json_decref(set);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(name[i], name[k]);
	}
}

static void
hashes_are_sha256(void **state)
{
	(void)state;
	assert_true(set_is_hash(HASH));
	assert_false(set_is_hash(""));
	assert_false(set_is_hash(HASH "0"));
	assert_false(set_is_hash("sha512:0123456789abcdef0123456789abcdef0123456789abcdef0123456"
				 "789abcdef"));
	assert_false(set_is_hash("sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456"
				 "789abcdef"));
}

static json_t *
set_of(const char *text)
{
	return xalloc_check(json_loads(text, 0, NULL));
}

static void
a_set_keeps_what_it_has_as_it_is(void **state)
{
	static const struct {
		const char *other;
		bool kept;
	} cases[] = {
		{ "[]", true },
		{ "[{\"name\":\"a\",\"version\":\"1\"}]", true },
		{ "[{\"name\":\"b\",\"version\":\"2\"},{\"name\":\"a\",\"version\":\"1\"}]", true },
		{ "[{\"name\":\"a\",\"version\":\"2\"}]", false },
		{ "[{\"name\":\"a\",\"version\":\"1\",\"built\":true}]", false },
		{ "[{\"name\":\"c\",\"version\":\"1\"}]", false },
		{ "[{\"name\":\"a\",\"version\":\"1\"},{\"name\":\"c\",\"version\":\"1\"}]", false },
	};
	json_t *set = set_of("[{\"name\":\"a\",\"version\":\"1\"},"
			     "{\"name\":\"b\",\"version\":\"2\"}]");

	(void)state;
	assert_true(set_keeps(set, NULL));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		json_t *other = set_of(cases[i].other);

		if (set_keeps(set, other) != cases[i].kept)
			fail_msg("%s", cases[i].other);
		json_decref(other);
	}
	json_decref(set);
}

static void
a_package_is_asked_for_exactly(void **state)
{
	json_t *set = set_of("[{\"name\":\"a\",\"version\":\"1.0\",\"index\":\"" INDEX "\"},"
			     "{\"name\":\"numpy\",\"version\":\"1.0\",\"index\":\"" WHEEL "\"}]");
	json_t *one = set_exactly(json_array_get(set, 0)), *other;

	(void)state;
	other = set_exactly(set_find(set, "numpy"));
	assert_string_equal(json_string_value(one), "a==1.0");
	assert_string_equal(json_string_value(other), "numpy @ " WHEEL);
	assert_null(set_find(set, "b"));
	json_decref(one);
	json_decref(other);
	json_decref(set);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_package_is_refused),
		cmocka_unit_test(what_was_built_has_another_name),
		cmocka_unit_test(what_comes_from_elsewhere_has_another_name),
		cmocka_unit_test(hashes_are_sha256),
		cmocka_unit_test(a_set_keeps_what_it_has_as_it_is),
		cmocka_unit_test(a_package_is_asked_for_exactly),
	};

	return cmocka_run_group_tests_name("set", tests, NULL, NULL);
}
