/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets in what peers send back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mask.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static const char *const secrets[] = { "tok/en\"a\\b", "", "hunter22", "hunter22-longer" };

static const struct {
	const char *from, *to;
} texts[] = {
	{ "nothing", "nothing" },
	{ "hunter22", "********" },
	{ "hunter22-longerhunter22!", "***********************!" },
	{ "hunter2hunter22-longe", "hunter2**************" },	/* its beginning, at the end */
	{ "hunter2hunter22-longe.", "hunter2********-longe." },
	{ "hunter22-longerhunter2", "***************hunter2" },
	{ "<tok/en\"a\\b>", "<**********>" },
	{ "{\"a\": \"tok/en\\\"a\\\\b\"}", "{\"a\": \"************\"}" },
	{ "tok\\/en\\\"a\\\\b", "*************" },
	{ "tok\\u002Fen\\u0022a\\u005cb.", "*************************." },
	{ "\\u0074ok\\/en\\u0022a\\\\b.", "**********************." },
	{ "tok/en\\\"a\\b", "tok/en\\\"a\\b" },	/* in no string of JSON */
	{ "\\hunter22\\.", "\\********\\." },
	{ "tok\\u00", "tok\\u00" },
	{ "tok\\u002", "********" },
};

static void
all_forms_are_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(texts); i++) {
		char text[128];
		size_t len = strlen(texts[i].from);

		memcpy(text, texts[i].from, len + 1);
		assert_int_equal(mask_secrets(text, len, secrets, N(secrets), true), len);
		assert_string_equal(text, texts[i].to);
	}
}

/* However it is cut into pieces, the same comes out. */
static void
pieces_are_put_together(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(texts); i++) {
		size_t len = strlen(texts[i].from);

		for (size_t piece = 1; piece <= len; piece++) {
			char text[128];
			size_t done = 0, end = 0;

			memset(text, 0, sizeof(text));
			while (end < len) {
				size_t n = len - end < piece ? len - end : piece;

				memcpy(text + end, texts[i].from + end, n);
				end += n;
				done += mask_secrets(text + done, end - done, secrets, N(secrets),
						     end == len);
				assert_true(done <= end);
				assert_true(end - done < MASK_LONGEST(strlen(secrets[3])));
			}
			assert_int_equal(done, len);
			assert_string_equal(text, texts[i].to);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_forms_are_found),
		cmocka_unit_test(pieces_are_put_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
