/* SPDX-License-Identifier: Apache-2.0 */
/* Which tools of other servers may be called: lists before hints, the strictest list first, and
 * servers that a tenant does not have. */
#include "policy/tools.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "policy/config.h"

/* NULL: it is wrong. */
static struct config *
read_text(const char *text)
{
	char path[] = "test-tools-XXXXXX", *said = NULL;
	struct config *config = config_new();
	int fd = mkstemp(path);
	size_t len;
	FILE *errors = open_memstream(&said, &len);

	assert_true(fd >= 0 && errors != NULL);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	if (config_read(config, path, errors) < 0 || config_check(config, path, errors) < 0) {
		config_free(config);
		config = NULL;
	}
	fclose(errors);
	free(said);
	unlink(path);
	return config;
}

static void
the_strictest_list_counts(void **state)
{
	struct config *config = read_text(
		"[tool-calls]\nservers = a b\nallow = a.* b.get_?\napprove = a.set_* *.move\n"
		"deny = a.set_all b.x.*\n");

	(void)state;
	assert_non_null(config);
	assert_int_equal(tools_verdict(config, "a", "anything", false), POLICY_ALLOW);
	assert_int_equal(tools_verdict(config, "a", "set_one", true), POLICY_APPROVE);
	assert_int_equal(tools_verdict(config, "a", "set_all", true), POLICY_DENY);
	assert_int_equal(tools_verdict(config, "b", "get_1", false), POLICY_ALLOW);
	assert_int_equal(tools_verdict(config, "b", "get_12", false), POLICY_APPROVE);
	assert_int_equal(tools_verdict(config, "b", "get_12", true), POLICY_ALLOW);
	assert_int_equal(tools_verdict(config, "b", "move", true), POLICY_APPROVE);
	/* The dot of a tool's name is none between a server and a tool. */
	assert_int_equal(tools_verdict(config, "b", "x.y", true), POLICY_DENY);
	/* No pattern names a server by the beginning of its name. */
	assert_int_equal(tools_verdict(config, "aa", "anything", true), POLICY_DENY);
	assert_false(tools_allows_server(config, "c"));
	assert_int_equal(tools_verdict(config, "c", "move", true), POLICY_DENY);
	config_free(config);
}

static void
presets_say_the_rest(void **state)
{
	static const struct {
		const char *text;
		enum policy_verdict read_only, others;
	} rows[] = {
		{ "", POLICY_ALLOW, POLICY_APPROVE },
		{ "[policy]\npreset = strict\n", POLICY_APPROVE, POLICY_APPROVE },
		{ "[policy]\npreset = open\n", POLICY_ALLOW, POLICY_ALLOW },
		{ "[policy]\npreset = open\n[tool-calls]\nothers = deny\nread_only = approve\n",
		  POLICY_APPROVE, POLICY_DENY },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct config *config = read_text(rows[i].text);

		assert_non_null(config);
		assert_int_equal(tools_verdict(config, "a", "t", true), rows[i].read_only);
		assert_int_equal(tools_verdict(config, "a", "t", false), rows[i].others);
		config_free(config);
	}
}

static void
sections_are_checked(void **state)
{
	static const char *const wrong[] = {
		"[tools a]\n", "[tools a]\ncommand = relative\n", "[tools A]\ncommand = /bin/cat\n",
		"[tools search]\ncommand = /bin/cat\n", "[tools client]\ncommand = /bin/cat\n", "[tools 1a]\ncommand = /bin/cat\n",
		"[tools ]\ncommand = /bin/cat\n", "[tool-calls]\nallow = a\n",
		"[tool-calls]\nallow = a.\n", "[tool-calls]\nallow = a.[b]\n",
		"[tool-calls]\nservers = A\n", "[tools a]\ncommand = /bin/cat\nother = 1\n",
		"[tools a]\ncommand = /bin/cat\n[tenant uid:1]\ntools.command = /bin/cat\n",
	};
	struct config *config;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		config = read_text(wrong[i]);
		if (config != NULL)
			fail_msg("taken: %s", wrong[i]);
	}
	config = read_text("[tools a]\ncommand = /bin/cat -a,b\n more\n[tools b]\ncommand = /bin/b\n");
	assert_non_null(config);
	assert_int_equal(config->n_tools, 2);
	assert_string_equal(config->tools[0].name, "a");
	assert_int_equal(config->tools[0].command.n, 3);
	assert_string_equal(config->tools[0].command.item[1], "-a,b");
	config_free(config);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_strictest_list_counts),
		cmocka_unit_test(presets_say_the_rest),
		cmocka_unit_test(sections_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
