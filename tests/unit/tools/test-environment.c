/* SPDX-License-Identifier: Apache-2.0 */
/* What an environment satisfies, and what a call learns of it on the fake engine. */
#include "tools/shared/environment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "policy/config.h"
#include "tests/unit/mcp/bench_stream.h"
#include "tests/unit/tools/fake_engine.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static const char environment_text[] =
	"{\"program\":\"/usr/bin/python3\",\"markers\":{\"python_full_version\":\"3.11.2\",\"python_version\":\"3.11\",\"os_name\":"
	"\"posix\"},\"packages\":{"
	"\"numpy\":{\"name\":\"numpy\",\"version\":\"1.24.2\",\"extras\":[]},"
	"\"odd\":{\"name\":\"odd\",\"version\":\"unknown\",\"extras\":[]},"
	"\"pre\":{\"name\":\"pre\",\"version\":\"2.0rc1\",\"extras\":[]},"
	"\"big\":{\"name\":\"Big\",\"version\":\"3\",\"extras\":[\"numpy>=1; extra == 'good'\","
	"\"numpy>=2; extra == 'bad'\",\"none; extra == 'bad'\",\"none; extra == 'nt' and "
	"os_name == 'nt'\",\"big[good]; extra == 'more'\",\"big[bad]; extra == 'worse'\","
	"\"big[loop]; extra == 'loop'\",\"not a requirement; extra == 'good'\"]}}}";

static const struct { const char *requirement; bool satisfied; } cases[] = {
	{ "numpy", true }, { "NumPy>=1.24,<2", true }, { "numpy>=1.25", false },
	{ "none", false }, { "none; os_name == 'nt'", true }, { "none; os_name == 'posix'", false },
	{ "numpy>9; python_version < '3'", true }, { "numpy @ https://x.invalid/numpy.whl", false },
	{ "odd", true }, { "odd>=0", false }, { "odd===unknown", true }, { "pre>=2.0a1", true },
	{ "pre>=2", false }, { "big", true }, { "big[good]", true }, { "big[Good]>=3", true },
	{ "big[good]>3", false }, { "big[bad]", false }, { "big[good,bad]", false },
	{ "big[nt]", true }, { "big[more]", true }, { "big[worse]", false },
	{ "big[loop]", false }, { "big[unknown]", true },
};

/* The Python of the build, until the first zygote has named its own. */
static void
descriptions_name_its_python(void **state)
{
	(void)state;
	assert_string_equal(environment_version(), PYTHON_VERSION);
	environment_name("numpy", "cpython-3.13-linux-x86_64");
	assert_string_equal(environment_version(), "3.13");
	environment_name("", "");
	assert_string_equal(environment_version(), PYTHON_VERSION);
}

static void
requirements_are_held_against_it(void **state)
{
	json_t *environment = json_loads(environment_text, JSON_REJECT_DUPLICATES, NULL);

	(void)state;
	assert_non_null(environment);
	for (size_t i = 0; i < N(cases); i++) {
		struct requirement requirement;

		assert_int_equal(requirement_read(cases[i].requirement,
						  strlen(cases[i].requirement),
						  &requirement), 0);
		if (environment_satisfies(environment, &requirement) != cases[i].satisfied)
			fail_msg("%s", cases[i].requirement);
		requirement_done(&requirement);
	}
	assert_string_equal(environment_python(environment), "3.11.2");
	assert_true(environment_fits(environment, ">=3.9,<4"));
	assert_true(environment_fits(environment, ""));
	assert_false(environment_fits(environment, ">=3.12"));
	json_decref(environment);
}

static const struct { const char *tool, *arguments, *text; } calls[] = {
	/* The fake's worker answers 42, which is no answer of a program of the service. */
	{ "check_environment", "{}", "could not be examined" },
	{ "validate_script", "{\"script\":\"1\"}", "could not be examined" },
	{ "run_script", "{\"script\":\"1\",\"dependencies\":[\"a\"]}", "could not be examined" },
	{ "run_script", "{\"script\":\"1\",\"dependencies\":[\"-a\"]}",
	  "'-a' is not a requirement" },
	{ "run_script", "{\"script\":\"1\",\"dependencies\":[\"a\"],\"profile\":\"x\"}",
	  "no profile of that name" },
	{ "run_script", "{\"script\":\"# /// script\\n# a = 1\\n# ///\"}", "could not be examined" },
	{ "check_environment", "{\"profile\":\"x\"}", "no profile of that name" },
	{ "check_environment", "{\"x\":1}", "x is not an argument" },
	{ "validate_script", "{}", "script is required" },
};

static void
what_a_worker_says_is_checked(void **state)
{
	struct bench *bench = bench_new();
	char line[512];

	(void)state;
	bench_initialize(bench, "2025-06-18");
	for (size_t i = 0; i < N(calls); i++) {
		const char *answer;

		snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":%zu,\"method\":\"tools/"
			 "call\",\"params\":{\"name\":\"%s\",\"arguments\":%s}}\n", i,
			 calls[i].tool, calls[i].arguments);
		bench_say(bench, line);
		if (bench_unread(bench) == 0)	/* some are answered at once */
			bench_wait(bench, 1);
		answer = bench_next(bench);
		if (!strstr(answer, calls[i].text) ||
		    (!strstr(answer, "\"isError\":true") && i != 1))
			fail_msg("%s: %s", line, answer);
	}
	assert_int_equal(fake_engine_record()->alive, 0);
	bench_free(bench);
}

static void
calls_are_given_up(void **state)
{
	static const char *const gone[] = {
		"{\"name\":\"check_environment\"}", "{\"name\":\"validate_script\",\"arguments\":"
		"{\"script\":\"1\"}}", "{\"name\":\"run_script\",\"arguments\":{\"script\":\"1\","
		"\"dependencies\":[\"a\"]}}",
	};
	char line[512];

	(void)state;
	for (size_t i = 0; i < N(gone); i++) {
		struct bench *bench = bench_new();

		bench_initialize(bench, "2025-06-18");
		snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\","
			 "\"params\":%s}\n", gone[i]);
		bench_say(bench, line);
		assert_int_equal(fake_engine_record()->started, 1);
		bench_say(bench, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
				 "\"params\":{\"requestId\":7}}\n");
		bench_turn(bench);
		assert_int_equal(fake_engine_record()->cancelled, 1);
		assert_int_equal(bench_unread(bench), 0);
		bench_free(bench);
	}
}

/* ---- which interpreter ---- */

/* Three versions; the second profile has the interpreter of the first. */
static void
three_interpreters(struct config *config)
{
	char path[] = "/tmp/test-environment-XXXXXX";
	FILE *file = fdopen(mkstemp(path), "w");

	assert_non_null(file);
	fputs("[profile again]\n[profile newer]\ninterpreter = newer\n"
	      "[profile newest]\ninterpreter = newest\n", file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(config_read(config, path, stderr), 0);
	unlink(path);
}

static const struct fake_python pythons[] = {
	{ "basic", "3.11.2" }, { "again", "3.11.2" }, { "newer", "3.12.4" },
	{ "newest", "3.13.0" }, { NULL, NULL },
};

/* block: its requires-python, NULL: it has no metadata. profile: where it runs, NULL: nowhere. */
static const struct { const char *block, *arguments, *profile; } choices[] = {
	{ NULL, "", "basic" },
	{ ">=3.11", "", "basic" }, { ">=3.12", "", "newer" }, { ">3.12", "", "newer" },
	{ "==3.12.*", "", "newer" }, { ">=3.13", "", "newest" }, { "<3.12", "", "basic" },
	{ "!=3.11.*,!=3.12.*", "", "newest" }, { ">=3.14", "", NULL }, { "<3", "", NULL },
	{ NULL, ",\"python_version\":\"3.11\"", "basic" },
	{ NULL, ",\"python_version\":\"3.12\"", "newer" },
	{ NULL, ",\"python_version\":\"3.12.4\"", "newer" },
	{ NULL, ",\"python_version\":\"3.12.5\"", NULL },
	{ NULL, ",\"python_version\":\"3.13\"", "newest" },
	{ NULL, ",\"python_version\":\"newest\"", "newest" },
	{ NULL, ",\"python_version\":\"oldest\"", NULL },
	/* All that is said of it counts. */
	{ ">=3.12", ",\"python_version\":\"3.13\"", "newest" },
	{ ">=3.13", ",\"python_version\":\"3.12\"", NULL },
	{ ">=3.13", ",\"python_version\":\"newer\"", NULL },
	{ ">=3.12", ",\"python_version\":\"newer\"", "newer" },
	/* Nor does another profile do than the one that is asked for. */
	{ ">=3.11", ",\"profile\":\"newest\"", "newest" },
	{ ">=3.11", ",\"profile\":\"again\"", "again" },
	{ ">=3.12", ",\"profile\":\"basic\"", NULL },
	{ NULL, ",\"profile\":\"newer\",\"python_version\":\"3.11\"", NULL },
};

static const char *
ran_in(void)
{
	const char *profile = fake_engine_record()->last_profile;

	return strcmp(profile, "(none)") == 0 ? "basic" : profile;
}

static void
the_first_python_that_fits_is_taken(void **state)
{
	struct bench *bench = bench_new_with(NULL, three_interpreters);

	(void)state;
	fake_engine_pythons(pythons);
	bench_initialize(bench, "2025-06-18");
	for (size_t i = 0; i < N(choices); i++) {
		const char *block = choices[i].block, *profile = choices[i].profile, *answer;
		char line[512];

		snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":%zu,\"method\":\"tools/"
			 "call\",\"params\":{\"name\":\"run_script\",\"arguments\":{\"script\":\""
			 "%s%s%s1\"%s}}}\n", i, block ? "# /// script\\n# requires-python = '" : "",
			 block ? block : "", block ? "'\\n# ///\\n" : "", choices[i].arguments);
		bench_say(bench, line);
		if (bench_unread(bench) == 0)
			bench_wait(bench, 1);
		answer = bench_next(bench);
		if (!strstr(answer, profile ? "\"status\":\"ok\""
					    : "\"status\":\"python_unavailable\""))
			fail_msg("%s: %s", line, answer);
		if (profile && strcmp(ran_in(), profile) != 0)
			fail_msg("%s: in %s", line, ran_in());
	}
	fake_engine_pythons(NULL);
	bench_free(bench);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptions_name_its_python),
		cmocka_unit_test(requirements_are_held_against_it),
		cmocka_unit_test(what_a_worker_says_is_checked),
		cmocka_unit_test(calls_are_given_up),
		cmocka_unit_test(the_first_python_that_fits_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
