/* SPDX-License-Identifier: Apache-2.0 */
/* What token endpoints answer. */
#include "upstream/token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define NOW 1000
#define GOOD "\"access_token\": \"abcdefgh\", \"token_type\": \"bEaReR\""

/* renew_ms: 0: it is refused. */
static const struct {
	const char *json;
	uint64_t renew_ms;
} answers[] = {
	{ "{" GOOD "}", UINT64_MAX },
	{ "{" GOOD ", \"expires_in\": null}", UINT64_MAX },
	{ "{" GOOD ", \"expires_in\": 3600, \"x\": [1]}", NOW + 3540000 },
	{ "{" GOOD ", \"expires_in\": 60}", NOW + 30000 },
	{ "{" GOOD ", \"expires_in\": 1}", NOW + 500 },
	{ "{" GOOD ", \"expires_in\": 2.5}", NOW + 1250 },
	{ "{" GOOD ", \"expires_in\": 1e300}", NOW + UINT64_C(315360000000) - 60000 },
	{ "{" GOOD ", \"expires_in\": 0}", 0 },
	{ "{" GOOD ", \"expires_in\": -5}", 0 },
	{ "{" GOOD ", \"expires_in\": \"60\"}", 0 },
	{ "{" GOOD ", \"token_type\": \"bearer\"}", 0 },
	{ "{\"access_token\": \"abcdefgh\"}", 0 },
	{ "{\"access_token\": \"abcdefgh\", \"token_type\": \"mac\"}", 0 },
	{ "{\"access_token\": \"abcdefg\", \"token_type\": \"bearer\"}", 0 },
	{ "{\"access_token\": \"abcd efgh\", \"token_type\": \"bearer\"}", 0 },
	{ "{\"access_token\": \"abcdefgh\\u0000\", \"token_type\": \"bearer\"}", 0 },
	{ "{\"access_token\": \"abcdefgh\\r\\nX: y\", \"token_type\": \"bearer\"}", 0 },
	{ "{\"access_token\": \"abcdefgh\\u00e4\", \"token_type\": \"bearer\"}", 0 },
	{ "{\"access_token\": 12345678, \"token_type\": \"bearer\"}", 0 },
	{ "[]", 0 }, { "", 0 }, { "{", 0 }, { "null", 0 }, { "<html>", 0 },
};

static void
answers_are_taken_or_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(answers); i++) {
		struct token token;
		const char *json = answers[i].json;
		const char *wrong = token_read(json, strlen(json), NOW, &token);

		if ((wrong == NULL) != (answers[i].renew_ms != 0) ||
		    (!wrong && token.renew_ms != answers[i].renew_ms))
			fail_msg("%s: %s", answers[i].json, wrong ? wrong : "taken");
		assert_true((token.text == NULL) == (wrong != NULL));
		if (!wrong) {
			assert_string_equal(token.text, "abcdefgh");
			assert_true(token_is_fresh(&token, NOW));
			assert_false(token_is_fresh(&token, answers[i].renew_ms));
		}
		token_wipe(&token);
		assert_false(token_is_fresh(&token, NOW));
	}
}

static void
errors_are_said_in_short(void **state)
{
	static const char *const cases[][2] = {
		{ "{\"error\": \"invalid_client\"}", "invalid_client" },
		{ "{\"error\": \"0123456789abcdefghij\\n\"}", "0123456789abcde" },
		{ "{\"error\": {}}", "" }, { "no", "" }, { "", "" },
	};
	char text[16];

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		token_error(cases[i][0], strlen(cases[i][0]), text, sizeof(text));
		assert_string_equal(text, cases[i][1]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_taken_or_refused),
		cmocka_unit_test(errors_are_said_in_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
