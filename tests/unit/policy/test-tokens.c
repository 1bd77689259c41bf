/* SPDX-License-Identifier: Apache-2.0 */
/* The token file: what is printed is read back, and nothing that deviates is taken. */
#include "policy/tokens.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/why.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define ID "0123456789"
#define CREATED "\"created\":\"2026-11-21T06:00:00Z\""
#define RECORD "\"id\":\"" ID "\",\"name\":\"ci\",\"tenant\":\"ci\",\"sha256\":\"" HASH "\"," CREATED
#define OTHER "\"id\":\"zzzzzzzzzz\",\"name\":\"x\",\"tenant\":\"ci\",\"sha256\":\"" HASH "\"," \
	CREATED
#define FILE_OF(records) "{\"version\":1,\"tokens\":[" records "]}"

static void
what_is_printed_is_read_back(void **state)
{
	struct token token = { .id = "abcdefghjk", .name = "a@b.c", .tenant = "t-1_x",
			       .created = 1795240800, .expires = 1795240801,
			       .revoked = 1795240802 };
	struct tokens tokens = { .n = 0 }, again;
	char *text;

	(void)state;
	for (size_t i = 0; i < TOKEN_HASH; i++)
		token.hash[i] = (unsigned char)(i * 37);
	assert_int_equal(tokens_add(&tokens, &token), 0);
	memcpy(token.id, "zzzzzzzzzz", TOKEN_ID);
	token.expires = token.revoked = 0;
	strcpy(token.profile, "bare");
	assert_int_equal(tokens_add(&tokens, &token), 0);
	text = tokens_print(&tokens);
	assert_int_equal(tokens_parse(text, strlen(text), &again, NULL), 0);
	assert_int_equal(again.n, 2);
	assert_memory_equal(again.token, tokens.token, 2 * sizeof(token));
	assert_ptr_equal(tokens_find(&again, "zzzzzzzzzz_", TOKEN_ID), &again.token[1]);
	assert_null(tokens_find(&again, "zzzzzzzzzz", TOKEN_ID - 1));
	assert_null(tokens_find(&again, "yyyyyyyyyy", TOKEN_ID));
	free(text);
	tokens_done(&tokens);
	tokens_done(&again);
}

static void
no_more_than_there_may_be(void **state)
{
	struct token token = { .name = "a", .tenant = "a", .created = 1 };
	struct tokens tokens = { .n = 0 }, again;
	char *text;

	(void)state;
	for (unsigned int i = 0; i < TOKENS_MAX; i++) {
		snprintf(token.id, sizeof(token.id), "%010u", i);
		assert_int_equal(tokens_add(&tokens, &token), 0);
	}
	assert_int_equal(tokens_add(&tokens, &token), -E2BIG);
	text = tokens_print(&tokens);
	/* a written file can be read again */
	assert_true(strlen(text) <= TOKENS_BYTES_MAX);
	assert_int_equal(tokens_parse(text, strlen(text), &again, NULL), 0);
	assert_int_equal(again.n, TOKENS_MAX);
	free(text);
	tokens_done(&tokens);
	tokens_done(&again);
}

static const struct file_case {
	const char *text;
	size_t n;	/* records; SIZE_MAX: refused */
} file_cases[] = {
	{ FILE_OF(""), 0 },
	{ FILE_OF("{" RECORD "}"), 1 },
	{ FILE_OF("{" RECORD ",\"expires\":\"2028-02-29T23:59:59Z\"}"), 1 },
	{ FILE_OF("{" RECORD ",\"revoked\":\"2026-11-21T06:00:01Z\"}"), 1 },
	{ FILE_OF("{" RECORD ",\"profile\":\"bare\"}"), 1 },
	{ FILE_OF("{" RECORD ",\"profile\":\"bare\"},{" OTHER ",\"profile\":\"bare\"}"), 2 },
	{ FILE_OF("{" RECORD ",\"profile\":\"bare\"},{" OTHER "}"), SIZE_MAX },
	{ FILE_OF("{" RECORD "},{" OTHER ",\"profile\":\"bare\"}"), SIZE_MAX },
	{ FILE_OF("{" RECORD "},{" OTHER ",\"profile\":\"bare\",\"revoked\":"
		  "\"2026-11-21T06:00:00Z\"}"), 2 },
	{ FILE_OF("{" RECORD ",\"profile\":\"\"}"), SIZE_MAX },
	{ FILE_OF("{" RECORD ",\"profile\":\"a b\"}"), SIZE_MAX },
	{ "", SIZE_MAX },
	{ "[]", SIZE_MAX },
	{ "{}", SIZE_MAX },
	{ "{\"version\":2,\"tokens\":[]}", SIZE_MAX },
	{ "{\"version\":\"1\",\"tokens\":[]}", SIZE_MAX },
	{ "{\"version\":1,\"tokens\":{}}", SIZE_MAX },
	{ "{\"version\":1,\"tokens\":[],\"more\":1}", SIZE_MAX },
	{ "{\"version\":1,\"tokens\":[],\"tokens\":[]}", SIZE_MAX },
	{ FILE_OF("") "x", SIZE_MAX },
	{ FILE_OF("1"), SIZE_MAX },
	{ FILE_OF("{}"), SIZE_MAX },
	{ FILE_OF("{" RECORD "},{" RECORD "}"), SIZE_MAX },
	{ FILE_OF("{" RECORD ",\"admin\":\"yes\"}"), SIZE_MAX },
	{ FILE_OF("{" RECORD ",\"expires\":null}"), SIZE_MAX },
	{ FILE_OF("{" RECORD ",\"expires\":\"\"}"), SIZE_MAX },
	{ FILE_OF("{" RECORD ",\"expires\":1795240800}"), SIZE_MAX },
	{ FILE_OF("{" RECORD ",\"expires\":\"2027-02-29T00:00:00Z\"}"), SIZE_MAX },
	{ FILE_OF("{" RECORD ",\"expires\":\"2027-02-28T00:00:00+\"}"), SIZE_MAX },
	{ FILE_OF("{" RECORD ",\"expires\":\"2027-02-28T24:00:00Z\"}"), SIZE_MAX },
	{ FILE_OF("{" RECORD ",\"expires\":\"2027-02-28T00:00:00Z \"}"), SIZE_MAX },
	{ FILE_OF("{" RECORD ",\"revoked\":false}"), SIZE_MAX },
	{ FILE_OF("{\"id\":\"012345678\",\"name\":\"ci\",\"tenant\":\"ci\",\"sha256\":\"" HASH
		  "\"," CREATED "}"), SIZE_MAX },
	{ FILE_OF("{\"id\":\"" ID "\",\"name\":\"c\\u0000i\",\"tenant\":\"ci\",\"sha256\":\"" HASH
		  "\"," CREATED "}"), SIZE_MAX },
	{ FILE_OF("{\"id\":\"" ID "\",\"name\":\"ci\",\"tenant\":\"a b\",\"sha256\":\"" HASH
		  "\"," CREATED "}"), SIZE_MAX },
	{ FILE_OF("{\"id\":\"" ID "\",\"name\":\"ci\",\"tenant\":\"\",\"sha256\":\"" HASH
		  "\"," CREATED "}"), SIZE_MAX },
	{ FILE_OF("{\"id\":\"" ID "\",\"name\":\"ci\",\"tenant\":\"ci\",\"sha256\":\"00\","
		  CREATED "}"), SIZE_MAX },
	{ FILE_OF("{\"id\":\"" ID "\",\"name\":\"ci\",\"tenant\":\"ci\",\"sha256\":\"" HASH
		  "\"}"), SIZE_MAX },
};

static void
files_are_held_to_their_form(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(file_cases); i++) {
		const struct file_case *c = &file_cases[i];
		struct tokens tokens = { .n = 77 };
		struct why why = { .text = "" };
		int r = tokens_parse(c->text, strlen(c->text), &tokens, &why);

		if ((r == 0) != (c->n != SIZE_MAX) || (r == 0 && tokens.n != c->n))
			fail_msg("%s: %d %s", c->text, r, why.text);
		if (r == 0) {
			tokens_done(&tokens);
			continue;
		}
		assert_int_equal(r, -EINVAL);
		assert_true(*why.text);
		assert_int_equal(tokens.n, 77);
	}
}

static void
every_prefix_is_refused(void **state)
{
	static const char text[] = FILE_OF("{" RECORD "}");
	struct tokens tokens;

	(void)state;
	for (size_t len = 0; len < sizeof(text) - 1; len++)
		assert_int_equal(tokens_parse(text, len, &tokens, NULL), -EINVAL);
}

static void
tokens_have_their_form(void **state)
{
	unsigned char id_bytes[TOKEN_ID] = { 0, 31, 32, 255 }, secret[TOKEN_HASH];
	char id[TOKEN_ID + 1], text[TOKEN_TEXT + 2], wrong[TOKEN_TEXT + 2];
	const char *found;

	(void)state;
	memset(secret, 0xff, sizeof(secret));
	token_make(id_bytes, secret, id, text);
	assert_string_equal(id, "0z0z000000");
	assert_string_equal(text,
			    "mcp_0z0z000000___________________________________________8");
	assert_true(token_is_text(text, &found));
	assert_memory_equal(found, id, TOKEN_ID);
	memset(secret, 0, sizeof(secret));
	token_make(id_bytes, secret, id, text);
	assert_true(token_is_text(text, &found));
	/* no character of it may be another kind */
	for (size_t i = 0; i < TOKEN_TEXT; i++) {
		strcpy(wrong, text);
		wrong[i] = '.';
		assert_false(token_is_text(wrong, &found));
		wrong[i] = '\0';
		assert_false(token_is_text(wrong, &found));
	}
	strcpy(wrong, text);
	strcat(wrong, "A");
	assert_false(token_is_text(wrong, &found));
}

static void
names_are_plain(void **state)
{
	char name[TOKEN_NAME_MAX + 2];

	(void)state;
	memset(name, 'a', sizeof(name));
	name[TOKEN_NAME_MAX] = '\0';
	assert_true(token_is_name(name));
	name[TOKEN_NAME_MAX] = 'a';
	name[TOKEN_NAME_MAX + 1] = '\0';
	assert_false(token_is_name(name));
	assert_true(token_is_name("bob@example.org"));
	assert_false(token_is_name(""));
	assert_false(token_is_name("-x"));
	assert_false(token_is_name("a/b"));
	assert_false(token_is_name("a\nb"));
	assert_false(token_is_name("\xc3\xa9"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_printed_is_read_back),
		cmocka_unit_test(no_more_than_there_may_be),
		cmocka_unit_test(files_are_held_to_their_form),
		cmocka_unit_test(every_prefix_is_refused),
		cmocka_unit_test(tokens_have_their_form),
		cmocka_unit_test(names_are_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
