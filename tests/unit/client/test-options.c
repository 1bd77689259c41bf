/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: what is taken, and that a mistake is answered with its remedy. */
#include "client/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/why.h"
#include "client/endpoint.h"
#include "tests/unit/client/cmocka_all.h"

#define WORDS_MAX 16

static int
parse(const char *const *words, struct options *o, char *text, size_t size)
{
	const char *argv[WORDS_MAX + 1] = {"mcp-python"};
	int argc = 1, r;
	struct why why;

	for (; words[argc - 1]; argc++)
		argv[argc] = words[argc - 1];
	r = options_parse(argc, argv, o, &why);
	snprintf(text, size, "%s", r < 0 ? why.text : "");
	return r;
}

#define PARSE(...)                                                                     \
	parse((const char *const[]){__VA_ARGS__, NULL}, &o, text, sizeof(text))

static void
repl_goes_on_in_a_session(void **state)
{
	struct options o;
	char text[512];

	(void)state;
	assert_int_equal(PARSE("repl"), 0);
	assert_int_equal(o.command, COMMAND_REPL);
	assert_null(o.session);
	assert_false(o.keep);
	assert_int_equal(PARSE("repl", "--keep", "--session", "r-x", "--timeout=3"), 0);
	assert_string_equal(o.session, "r-x");
	assert_true(o.keep);
	assert_true(o.timeout_seconds == 3);
	assert_true(PARSE("repl", "x.py") < 0);
	assert_non_null(strstr(text, "repl takes no argument \"x.py\""));
	assert_true(PARSE("run", "--keep", "x.py") < 0);
}

static void
connect_takes_a_socket(void **state)
{
	struct options o;
	char text[512];

	(void)state;
	assert_int_equal(PARSE("connect"), 0);
	assert_int_equal(o.command, COMMAND_CONNECT);
	assert_null(o.socket);
	assert_int_equal(PARSE("connect", "--socket", "/a"), 0);
	assert_string_equal(o.socket, "/a");
	assert_int_equal(PARSE("connect", "--socket=/b"), 0);
	assert_string_equal(o.socket, "/b");
}

static void
get_takes_a_uri(void **state)
{
	struct options o;
	char text[256];

	(void)state;
	assert_int_equal(PARSE("get", "--output", "f", "mcp-python://x/a"), 0);
	assert_int_equal(o.command, COMMAND_GET);
	assert_string_equal(o.uri, "mcp-python://x/a");
	assert_string_equal(o.output, "f");
	assert_true(PARSE("get") < 0);
	assert_true(PARSE("get", "a", "b") < 0);
	assert_true(PARSE("get", "--timeout=1", "a") < 0);
}

static void
put_takes_a_file(void **state)
{
	struct options o;
	char text[256];

	(void)state;
	assert_int_equal(PARSE("put", "d/f"), 0);
	assert_int_equal(o.command, COMMAND_PUT);
	assert_string_equal(o.file, "d/f");
	assert_null(o.name);
	assert_int_equal(PARSE("put", "--name", "n", "--socket=/s", "f"), 0);
	assert_string_equal(o.name, "n");
	assert_true(PARSE("put") < 0);
	assert_true(PARSE("put", "a", "b") < 0);
	assert_true(PARSE("put", "--output=f", "a") < 0);
	assert_true(PARSE("get", "--name=f", "a") < 0);
}

static void
run_takes_everything(void **state)
{
	static const char *const words[] = {
		"run",	    "--socket=/s", "--timeout", "2.5",
		"--memory", "64",	   "--cpu=1",	"--pids",
		"9",	    "--profile",   "data",	"--stdin",
		"--json",   "f.py",	   "--",	"-x"};
	struct options o;
	const char *argv[32] = {"mcp-python"};

	(void)state;
	memcpy(argv + 1, words, sizeof(words));
	assert_int_equal(options_parse(1 + (int)N(words), argv, &o, NULL), 0);
	assert_int_equal(o.command, COMMAND_RUN);
	assert_string_equal(o.socket, "/s");
	assert_true(o.timeout_seconds == 2.5);
	assert_int_equal(o.memory_mb, 64);
	assert_true(o.cpu_seconds == 1);
	assert_int_equal(o.pids, 9);
	assert_string_equal(o.profile, "data");
	assert_true(o.pass_stdin);
	assert_true(o.json);
	assert_string_equal(o.file, "f.py");
	assert_int_equal(o.n_args, 1);
	assert_string_equal(o.args[0], "-x");
}

static void
run_takes_files_and_packages(void **state)
{
	struct options o;
	char text[512];

	(void)state;
	assert_int_equal(PARSE("run", "--file", "a", "--file=b/c", "--with", "rich", "--dir", ".",
			       "--save=o", "--force", "--no-stdin", "--private", "x.py"), 0);
	assert_int_equal(o.files.n, 2);
	assert_string_equal(o.files.at[1], "b/c");
	assert_int_equal(o.dirs.n, 1);
	assert_int_equal(o.with.n, 1);
	assert_string_equal(o.with.at[0], "rich");
	assert_true(o.force && o.leave_stdin && o.private);
	assert_true(PARSE("run", "--force", "x.py") < 0);
	assert_non_null(strstr(text, "--force is for --save"));
	assert_int_equal(PARSE("run", "--dir", "d", "--rw", "--force", "x.py"), 0);
	assert_true(o.rw && o.force);
	assert_true(PARSE("run", "--rw", "x.py") < 0);
	assert_non_null(strstr(text, "--rw is for exactly one --dir"));
	assert_true(PARSE("run", "--rw", "--dir=a", "--dir=b", "x.py") < 0);
	assert_true(PARSE("run", "--rw", "--dir=a", "--file=b", "x.py") < 0);
	assert_true(PARSE("run", "--stdin", "--no-stdin", "x.py") < 0);
	assert_true(PARSE("run", "--private", "--socket=/s", "x.py") < 0);
	assert_non_null(strstr(text, "exclude each other"));
	assert_true(PARSE("repl", "--private", "--keep") < 0);
	assert_true(PARSE("repl", "--private", "--session=r-x") < 0);
	assert_non_null(strstr(text, "excludes --session and --keep"));
	assert_int_equal(PARSE("repl", "--file=a", "--with=b", "--private"), 0);
}

static void
the_scripts_arguments_are_left_alone(void **state)
{
	struct options o;
	char text[512];

	(void)state;
	assert_int_equal(PARSE("run", "-"), 0);
	assert_string_equal(o.file, "-");
	assert_int_equal(o.n_args, 0);
	assert_int_equal(PARSE("run", "f", "--", "--", "--help", ""), 0);
	assert_int_equal(o.n_args, 3);
	assert_string_equal(o.args[0], "--");
	assert_string_equal(o.args[2], "");
	assert_int_equal(PARSE("run", "f", "a", "-b"), 0);
	assert_int_equal(o.n_args, 2);
	assert_int_equal(PARSE("run", "--", "-f.py", "--", "x"), 0);
	assert_string_equal(o.file, "-f.py");
	assert_int_equal(o.n_args, 1);
}

static void
help_is_about_what_was_asked(void **state)
{
	struct options o;
	char text[512];

	(void)state;
	assert_int_equal(PARSE("--help"), 0);
	assert_int_equal(o.command, COMMAND_HELP);
	assert_int_equal(o.help_about, COMMAND_HELP);
	assert_int_equal(PARSE("run", "--help"), 0);
	assert_int_equal(o.help_about, COMMAND_RUN);
	assert_int_equal(PARSE("help", "connect"), 0);
	assert_int_equal(o.command, COMMAND_HELP);
	assert_int_equal(o.help_about, COMMAND_CONNECT);
	assert_int_equal(PARSE("--version"), 0);
	assert_int_equal(o.command, COMMAND_VERSION);
	assert_non_null(strstr(options_help(COMMAND_RUN), "--timeout"));
	assert_non_null(strstr(options_help(COMMAND_CONNECT), ENDPOINT_SYSTEM));
	assert_non_null(strstr(options_help(COMMAND_HELP), "run FILE"));
}

static const struct mistake_case {
	const char *words[5];
	const char *said;
} mistakes[] = {
	{ { "conect" },                       "did you mean \"connect\"" },
	{ { "rnu" },                          "did you mean \"run\"" },
	{ { "con" },                          "did you mean \"connect\"" },
	{ { "a.py" },                         "mcp-python run a.py" },
	{ { "status.py" },                    "mcp-python run status.py" },
	{ { "frobnicate" },                   "mcp-python --help" },
	{ { "aprove" },                       "did you mean \"approve\"?" },
	{ { "help", "frobnicate" },           "no command \"frobnicate\"" },
	{ { "run" },                          "needs a file" },
	{ { "run", "--" },                    "needs a file" },
	{ { "run", "--tiemout", "3", "f" },   "did you mean \"--timeout\"" },
	{ { "run", "--xyzzy", "f" },          "no option \"--xyzzy\"" },
	{ { "connect", "--timeout", "3" },    "no option \"--timeout\"" },
	{ { "connect", "x" },                 "no argument \"x\"" },
	{ { "run", "--timeout" },             "--timeout needs a value: SECONDS" },
	{ { "run", "--timeout=", "f" },       "--timeout needs a value" },
	{ { "run", "--timeout", "0", "f" },   "above 0" },
	{ { "run", "--timeout", "-1", "f" },  "above 0" },
	{ { "run", "--timeout", "inf", "f" }, "above 0" },
	{ { "run", "--timeout", "1s", "f" },  "above 0" },
	{ { "run", "--timeout", ".", "f" },   "above 0" },
	{ { "run", "--timeout", "0x9", "f" }, "above 0" },
	{ { "run", "--memory", "1.5", "f" },  "whole number" },
	{ { "run", "--pids", "9999999999", "f" }, "whole number" },
	{ { "run", "--json=1", "f" },         "takes no value" },
	{ { "run", "f", "--json" },           "stands after the file" },
	{ { "run", "--ti" },                  "needs a value: SECONDS" },
	{ { "run", "-x", "f" },               "no option \"-x\"" },
	{ { "run", "--p", "3", "f" },         "no option \"--p\"" },
	{ { "connect", "--sokcet=/a" },       "did you mean \"--socket\"" },
	{ { "run", "--stdin", "-" },          "cannot be both" },
};

static void
mistakes_name_their_remedy(void **state)
{
	const struct options before = {.file = "untouched"};

	(void)state;
	for (size_t i = 0; i < N(mistakes); i++) {
		struct options o = before;
		const char *words[WORDS_MAX + 1] = {0};
		char text[512];

		memcpy(words, mistakes[i].words, sizeof(mistakes[i].words));
		if (parse(words, &o, text, sizeof(text)) >= 0 ||
		    !strstr(text, mistakes[i].said))
			fail_msg("%s %s: \"%s\"", words[0], words[1] ? words[1] : "",
				 text);
		assert_memory_equal(&o, &before, sizeof(o));
	}
}

static void
no_command_is_a_mistake(void **state)
{
	struct options o;
	const char *argv[] = {"mcp-python", NULL};

	(void)state;
	assert_true(options_parse(1, argv, &o, NULL) < 0);
	assert_true(options_parse(0, argv + 1, &o, NULL) < 0);
}

static void
token_takes_its_actions(void **state)
{
	struct options o;
	char text[512];

	(void)state;
	assert_int_equal(PARSE("token", "add", "ci", "--tenant", "team", "--expires=30d",
			       "--file", "/t"), 0);
	assert_int_equal(o.command, COMMAND_TOKEN);
	assert_int_equal(o.token_action, TOKEN_ADD);
	assert_string_equal(o.token_name, "ci");
	assert_string_equal(o.tenant, "team");
	assert_string_equal(o.token_file, "/t");
	assert_int_equal(o.expires_seconds, 30 * 24 * 3600);
	/* options may also stand before the name */
	assert_int_equal(PARSE("token", "add", "--expires", "1h", "ci"), 0);
	assert_string_equal(o.token_name, "ci");
	assert_null(o.tenant);
	assert_int_equal(o.expires_seconds, 3600);
	assert_int_equal(PARSE("token", "list", "--json"), 0);
	assert_int_equal(o.token_action, TOKEN_LIST);
	assert_true(o.json);
	assert_int_equal(PARSE("token", "revoke", "0123456789"), 0);
	assert_int_equal(o.token_action, TOKEN_REVOKE);
	assert_int_equal(PARSE("token", "--help"), 0);
	assert_int_equal(o.command, COMMAND_HELP);
	assert_int_equal(o.help_about, COMMAND_TOKEN);
	assert_int_equal(PARSE("token", "add", "ci", "-h"), 0);
	assert_int_equal(o.help_about, COMMAND_TOKEN);
	assert_int_equal(PARSE("token", "add", "--help"), 0);
	assert_int_equal(o.help_about, COMMAND_TOKEN);
}

static const struct {
	const char *words[6], *text;
} token_mistakes[] = {
	{{"token"}, "token needs one of: add NAME, list, revoke ID"},
	{{"token", "remove", "x"}, "token needs one of: add NAME, list, revoke ID"},
	{{"token", "add"}, "token add needs a NAME for it"},
	{{"token", "revoke"}, "token revoke needs an ID; see mcp-python token list"},
	{{"token", "add", "a", "b"}, "token add: \"b\" is one word too many"},
	{{"token", "list", "a"}, "token list: \"a\" is one word too many"},
	{{"token", "add", "a/b"}, "a token's NAME: letters, digits, \"_\", \"-\", \".\" and \"@\", "
				  "at most 64, are needed"},
	{{"token", "add", "a", "--tenant", ".."},
	 "--tenant ..: letters, digits, \"_\", \"-\", \".\" and \"@\", at most 64, are needed"},
	{{"token", "add", "a", "--expires", "30"},
	 "--expires 30: a time such as 12h, 30d or 8w is needed, ten years at most"},
	{{"token", "add", "a", "--expires", "0d"},
	 "--expires 0d: a time such as 12h, 30d or 8w is needed, ten years at most"},
	{{"token", "add", "a", "--expires", "3651d"},
	 "--expires 3651d: a time such as 12h, 30d or 8w is needed, ten years at most"},
	{{"token", "add", "a", "--expires", "-1d"},
	 "--expires -1d: a time such as 12h, 30d or 8w is needed, ten years at most"},
	{{"token", "add", "a", "--expires", "1dd"},
	 "--expires 1dd: a time such as 12h, 30d or 8w is needed, ten years at most"},
	{{"token", "add", "a", "--", "b"}, "token add: \"b\" is one word too many"},
	{{"token", "add", "a", "--json"}, "--json is for token list"},
	{{"token", "revoke", "a", "--tenant=b"}, "--tenant, --expires and --profile are for token add"},
	{{"token", "list", "--timeout=1"}, "there is no option \"--timeout=1\" here; see "
					   "mcp-python token --help"},
	{{"run", "--tenant=a", "f"}, "there is no option \"--tenant=a\" here; see mcp-python run "
				     "--help"},
};

static void
token_mistakes_are_told(void **state)
{
	struct options o;
	char text[512];

	(void)state;
	for (size_t i = 0; i < N(token_mistakes); i++) {
		assert_int_equal(parse(token_mistakes[i].words, &o, text, sizeof(text)), -EINVAL);
		assert_string_equal(text, token_mistakes[i].text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connect_takes_a_socket),
		cmocka_unit_test(repl_goes_on_in_a_session),
		cmocka_unit_test(get_takes_a_uri),
		cmocka_unit_test(put_takes_a_file),
		cmocka_unit_test(run_takes_everything),
		cmocka_unit_test(run_takes_files_and_packages),
		cmocka_unit_test(the_scripts_arguments_are_left_alone),
		cmocka_unit_test(help_is_about_what_was_asked),
		cmocka_unit_test(mistakes_name_their_remedy),
		cmocka_unit_test(no_command_is_a_mistake),
		cmocka_unit_test(token_takes_its_actions),
		cmocka_unit_test(token_mistakes_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
