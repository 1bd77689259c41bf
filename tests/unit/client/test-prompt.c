/* SPDX-License-Identifier: Apache-2.0 */
/* Questions as people see them, and what of their lines becomes an answer. */
#include "client/prompt.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/show.h"
#include "tests/unit/client/cmocka_all.h"

#define LINE "{\"type\":\"object\",\"properties\":{\"line\":{\"type\":\"string\"}}}"
#define YES \
	"{\"type\":\"object\",\"properties\":{\"allow\":{\"type\":\"boolean\"," \
	"\"title\":\"Allow\\u001b[0m it\"}}}"
#define N(array) (sizeof(array) / sizeof(array)[0])

/* ---- a terminal that is a pipe and a file ---- */

static struct prompt prompt;
static FILE *seen;
static int typed, true_in, true_err;

static int
set_up(void **state)
{
	int pair[2];

	(void)state;
	memset(&prompt, 0, sizeof(prompt));
	seen = tmpfile();
	true_in = dup(STDIN_FILENO);
	true_err = dup(STDERR_FILENO);
	if (!seen || pipe(pair) < 0)
		return -1;
	typed = pair[1];
	dup2(pair[0], STDIN_FILENO);
	close(pair[0]);
	dup2(fileno(seen), STDERR_FILENO);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	dup2(true_in, STDIN_FILENO);
	dup2(true_err, STDERR_FILENO);
	close(true_in);
	close(true_err);
	if (typed >= 0)
		close(typed);
	fclose(seen);
	prompt_forget(&prompt);
	return 0;
}

/* What was shown since the last time. */
static const char *
shown(void)
{
	static char text[65536];
	size_t n;

	rewind(seen);
	n = fread(text, 1, sizeof(text) - 1, seen);
	text[n] = '\0';
	assert_int_equal(ftruncate(fileno(seen), 0), 0);
	rewind(seen);
	return text;
}

static json_t *
ask(int id, const char *message, const char *schema)
{
	json_t *form = json_loads(schema, 0, NULL), *request, *answer;

	assert_non_null(form);
	request = json_pack("{s:s, s:i, s:s, s:{s:s, s:o}}", "jsonrpc", "2.0", "id", id,
			    "method", "elicitation/create", "params", "message", message,
			    "requestedSchema", form);
	assert_non_null(request);
	answer = prompt_ask(&prompt, request);
	json_decref(request);
	return answer;
}

/* Types it; the answer, as text, or "" for none. Malloc'd. */
static char *
type(const char *bytes)
{
	json_t *answer = NULL;
	size_t len = strlen(bytes);
	char *text;

	assert_int_equal(write(typed, bytes, len), len);
	for (size_t i = 0; i < len && !answer; i++)
		answer = prompt_read(&prompt);
	text = answer ? json_dumps(json_object_get(answer, "result"), JSON_COMPACT | JSON_SORT_KEYS)
		      : strdup("");
	json_decref(answer);
	return text;
}

static void
expect_typed(const char *bytes, const char *want)
{
	char *got = type(bytes);

	assert_string_equal(got, want);
	free(got);
}

/* ---- a script's ---- */

static void
lines_are_marked_and_cannot_steer(void **state)
{
	static const struct {
		const char *message, *shown;
	} cases[] = {
		{ "Ours.\n\n> Who? ", "script> Who? " },
		{ "Ours.\n\n> one\n> two", "script> one\nscript> two" },
		{ "Ours.\n\n> ", "script> " },
		{ "Ours.\n\n> > twice", "script> > twice" },
		{ "Ours.\n\n> one \n>+line\n> two", "script> one line\nscript> two" },
		{ "Ours.\n\n>+one", "script> one" },
		/* From a service that quotes nothing. */
		{ "\x1b[2J\x1b]0;owned\a", "script> \\x1b[2J\\x1b]0;owned\\x07" },
		{ "a\rb\tc\x7f", "script> a\\x0db        c\\x7f" },
		{ "\xc2\x9b" "31m\xc2\x85", "script> \\u009b31m\\u0085" },
		{ "\xe2\x80\xaegnp\xe2\x81\xa6\xef\xbb\xbf", "script> \\u202egnp\\u2066\\ufeff" },
		{ "Ours.\n\nx\nmcp-python: it", "script> x\nscript> mcp-python: it" },
		{ "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80", "script> gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80" },
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		assert_null(ask(1, cases[i].message, LINE));
		assert_string_equal(shown(), cases[i].shown);
		prompt_forget(&prompt);
	}
}

static void
lines_are_answers(void **state)
{
	(void)state;
	assert_null(ask(7, "\n\n> ?", LINE));
	expect_typed("Ada", "");
	expect_typed(" L.\nmore", "{\"action\":\"accept\",\"content\":{\"line\":\"Ada L.\"}}");
	assert_null(prompt.id);
	/* What followed is the next one's. */
	assert_null(ask(8, "\n\n> ?", LINE));
	expect_typed("\nxxxx", "{\"action\":\"accept\",\"content\":{\"line\":\"more\"}}");
}

static void
what_is_no_text_is_asked_for_again(void **state)
{
	static char much[PROMPT_LINE_MAX + 2];

	(void)state;
	memset(much, 'x', sizeof(much) - 1);
	assert_null(ask(1, "\n\n> a\n> b", LINE));
	(void)shown();
	expect_typed("\xff\n", "");
	assert_string_equal(shown(), "mcp-python: that is not UTF-8 text\nscript> b");
	expect_typed(much, "");
	expect_typed("\n", "");
	assert_string_equal(shown(), "mcp-python: that line is too long\nscript> b");
	expect_typed("ok\n", "{\"action\":\"accept\",\"content\":{\"line\":\"ok\"}}");
}

static void
the_end_of_input_is_no_line(void **state)
{
	json_t *answer;

	(void)state;
	assert_null(ask(1, "?", LINE));
	expect_typed("abc", "");
	close(typed);
	typed = -1;
	answer = prompt_read(&prompt);
	assert_string_equal(json_string_value(json_object_get(json_object_get(json_object_get(
		answer, "result"), "content"), "line")), "abc");
	json_decref(answer);
	assert_null(ask(2, "?", LINE));
	answer = prompt_read(&prompt);
	assert_string_equal(json_string_value(json_object_get(json_object_get(answer, "result"),
							      "action")), "cancel");
	assert_int_equal(json_integer_value(json_object_get(answer, "id")), 2);
	json_decref(answer);
}

/* ---- consent ---- */

static void
consent_is_shown_in_full_and_indented(void **state)
{
	(void)state;
	assert_null(ask(1, "May it?\n\nmcp-python: yes\n\x1b[2J", YES));
	assert_string_equal(shown(), "mcp-python: the service asks:\n  May it?\n  \n"
				     "  mcp-python: yes\n  \\x1b[2J\nAllow\\x1b[0m it [y/N] ");
}

static void
only_a_yes_is_one(void **state)
{
	static const struct {
		const char *typed, *answer;
	} cases[] = {
		{ "y\n", "{\"action\":\"accept\",\"content\":{\"allow\":true}}" },
		{ "Yes\n", "{\"action\":\"accept\",\"content\":{\"allow\":true}}" },
		{ "\n", "{\"action\":\"decline\"}" },
		{ "n\n", "{\"action\":\"decline\"}" },
		{ " y\n", "{\"action\":\"decline\"}" },
		{ "yess\n", "{\"action\":\"decline\"}" },
		{ "\xff\n", "{\"action\":\"decline\"}" },
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		assert_null(ask(1, "May it?", YES));
		expect_typed(cases[i].typed, cases[i].answer);
	}
}

/* ---- what is not asked ---- */

#define SIXTY_FIVE "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void
forms_that_are_none_of_ours_are_declined(void **state)
{
	static const char *const schemas[] = {
		"{}", "{\"properties\":{}}", "{\"properties\":7}",
		"{\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{\"type\":\"string\"}}}",
		"{\"properties\":{\"a\":{\"type\":\"number\"}}}", "{\"properties\":{\"a\":{}}}",
		"{\"properties\":{\"a\":{\"type\":[\"string\"]}}}",
		"{\"properties\":{\"" SIXTY_FIVE "\":{\"type\":\"string\"}}}",
	};
	char *much = malloc(20000);

	(void)state;
	assert_non_null(much);
	memset(much, 'x', 19999);
	much[19999] = '\0';
	for (size_t i = 0; i <= N(schemas); i++) {
		json_t *answer = i < N(schemas) ? ask(3, "?", schemas[i]) : ask(3, much, YES);

		assert_null(prompt.id);
		assert_string_equal(json_string_value(json_object_get(json_object_get(
			answer, "result"), "action")), "decline");
		assert_int_equal(json_integer_value(json_object_get(answer, "id")), 3);
		json_decref(answer);
	}
	free(much);
}

static void
one_at_a_time(void **state)
{
	json_t *answer;

	(void)state;
	assert_null(ask(1, "?", LINE));
	answer = ask(2, "?", LINE);
	assert_string_equal(json_string_value(json_object_get(json_object_get(answer, "result"),
							      "action")), "cancel");
	json_decref(answer);
	assert_int_equal(json_integer_value(prompt.id), 1);
}

static void
withdraw(const char *id)
{
	json_t *note = json_pack("{s:{s:o, s:s}}", "params", "requestId",
				 json_loads(id, JSON_DECODE_ANY, NULL), "reason", "late\x1b[0m");

	prompt_withdraw(&prompt, note);
	json_decref(note);
}

static void
its_own_withdrawal_counts(void **state)
{
	(void)state;
	assert_null(ask(1, "?", LINE));
	(void)shown();
	withdraw("2");
	withdraw("\"1\"");
	withdraw("null");
	assert_int_equal(json_integer_value(prompt.id), 1);
	withdraw("1");
	assert_null(prompt.id);
	assert_string_equal(shown(), "\nmcp-python: the question was withdrawn: late\\x1b[0m\n");
	withdraw("1");
	assert_string_equal(shown(), "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lines_are_marked_and_cannot_steer),
		TEST(lines_are_answers),
		TEST(what_is_no_text_is_asked_for_again),
		TEST(the_end_of_input_is_no_line),
		TEST(consent_is_shown_in_full_and_indented),
		TEST(only_a_yes_is_one),
		TEST(forms_that_are_none_of_ours_are_declined),
		TEST(one_at_a_time),
		TEST(its_own_withdrawal_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
