/* SPDX-License-Identifier: Apache-2.0 */
/* The argument files: every rule of paths and contents, and base64 in both directions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/config.h"
#include "tools/script/run_script_files.h"

static struct config *config;

static int
read_text(const char *json, struct run_script_files *files, struct why *why)
{
	json_t *value = json_loads(json, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
	int r;

	assert_non_null(value);
	r = run_script_files_read(value, config, files, why);
	json_decref(value);
	return r;
}

static const struct {
	const char *json, *says;	/* NULL: it is accepted */
} cases[] = {
	{ "[]", NULL },
	{ "[{\"path\":\"a\",\"text\":\"\"}]", NULL },
	{ "[{\"path\":\"a/b\",\"text\":\"\"},{\"path\":\"a/c\",\"text\":\"\"}]", NULL },
	{ "[{\"path\":\"a\",\"text\":\"\"},{\"path\":\"ab\",\"text\":\"\"}]", NULL },
	{ "[{\"path\":\"...\",\"text\":\"\"},{\"path\":\".a\",\"base64\":\"\"}]", NULL },
	{ "[{\"path\":\"..a/a..\",\"base64\":\"AAA=\"}]", NULL },
	{ "{}", "must be an array" },
	{ "null", "must be an array" },
	{ "[[]]", "item 0: it must be an object" },
	{ "[{}]", "string path" },
	{ "[{\"path\":1,\"text\":\"\"}]", "string path" },
	{ "[{\"path\":\"\",\"text\":\"\"}]", "is empty" },
	{ "[{\"path\":\"/a\",\"text\":\"\"}]", "is absolute" },
	{ "[{\"path\":\"..\",\"text\":\"\"}]", ". or .." },
	{ "[{\"path\":\".\",\"text\":\"\"}]", ". or .." },
	{ "[{\"path\":\"a/..\",\"text\":\"\"}]", ". or .." },
	{ "[{\"path\":\"a/../b\",\"text\":\"\"}]", ". or .." },
	{ "[{\"path\":\"a/./b\",\"text\":\"\"}]", ". or .." },
	{ "[{\"path\":\"a//b\",\"text\":\"\"}]", "empty name" },
	{ "[{\"path\":\"a/\",\"text\":\"\"}]", "empty name" },
	{ "[{\"path\":\"a\\u0000\",\"text\":\"\"}]", "NUL" },
	{ "[{\"path\":\"a\",\"text\":\"\"},{\"path\":\"a\",\"text\":\"\"}]", "item 1" },
	{ "[{\"path\":\"a/b\",\"text\":\"\"},{\"path\":\"a\",\"text\":\"\"}]", "item 1" },
	{ "[{\"path\":\"a\",\"text\":\"\"},{\"path\":\"a/b/c\",\"text\":\"\"}]", "item 1" },
	{ "[{\"path\":\"a\"}]", "exactly one" },
	{ "[{\"path\":\"a\",\"text\":\"\",\"base64\":\"\"}]", "exactly one" },
	{ "[{\"path\":\"a\",\"text\":\"\",\"x\":0}]", "there are" },
	{ "[{\"path\":\"a\",\"uri\":\"mcp-python://x-1/a\"}]", NULL },
	{ "[{\"path\":\"a\",\"uri\":\"\",\"text\":\"\"}]", "exactly one" },
	{ "[{\"path\":\"a\",\"uri\":\"a\\u0000\"}]", "NUL" },
	{ "[{\"path\":\"a\",\"uri\":1}]", "uri must be" },
	{ "[{\"path\":\"a\",\"text\":null}]", "text must be" },
	{ "[{\"path\":\"a\",\"base64\":[]}]", "base64 must be" },
	{ "[{\"path\":\"a\",\"base64\":\"A\"}]", "is not base64" },
	{ "[{\"path\":\"a\",\"base64\":\"AA==AAAA\"}]", "is not base64" },
	{ "[{\"path\":\"a\",\"base64\":\"A===\"}]", "is not base64" },
	{ "[{\"path\":\"a\",\"base64\":\"AB==\"}]", "is not base64" },
	{ "[{\"path\":\"a\",\"base64\":\"AAB=\"}]", "is not base64" },
	{ "[{\"path\":\"a\",\"base64\":\"AA-_\"}]", "is not base64" },
	{ "[{\"path\":\"a\",\"base64\":\"AA\\u0000=\"}]", "is not base64" },
};

static void
rules_hold(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run_script_files files;
		struct why why = { .field = "" };
		int r = read_text(cases[i].json, &files, &why);

		if (!cases[i].says) {
			if (r < 0)
				fail_msg("%s: %s", cases[i].json, why.text);
			run_script_files_done(&files);
			continue;
		}
		assert_true(r < 0);
		assert_null(files.item);
		assert_int_equal(files.n, 0);
		assert_string_equal(why.field, "files");
		if (!strstr(why.text, cases[i].says))
			fail_msg("%s: %s", cases[i].json, why.text);
	}
}

static void
base64_is_decoded(void **state)
{
	static const struct {
		const char *text, *bytes;
		size_t len;
	} rows[] = {	/* RFC 4648, 10 */
		{ "", "", 0 },	       { "Zg==", "f", 1 },	 { "Zm8=", "fo", 2 },
		{ "Zm9v", "foo", 3 },  { "Zm9vYg==", "foob", 4 }, { "Zm9vYmFy", "foobar", 6 },
		{ "AP/+", "\0\xff\xfe", 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *json = json_pack("[{s:s,s:s}]", "path", "a", "base64", rows[i].text);
		struct run_script_files files;
		struct why why;

		assert_int_equal(run_script_files_read(json, config, &files, &why), 0);
		assert_int_equal(files.item[0].len, rows[i].len);
		assert_memory_equal(files.item[0].data, rows[i].bytes, rows[i].len);
		run_script_files_done(&files);
		json_decref(json);
	}
}

/* n items of len bytes each. */
static int
read_sized(size_t n, size_t len)
{
	char *text = malloc(len);
	json_t *json = json_array();
	struct run_script_files files;
	struct why why;
	int r;

	memset(text, 'x', len);
	for (size_t i = 0; i < n; i++) {
		char path[32];

		snprintf(path, sizeof(path), "f%zu", i);
		json_array_append_new(json, json_pack("{s:s,s:s#}", "path", path, "text",
						      text, (int)len));
	}
	r = run_script_files_read(json, config, &files, &why);
	run_script_files_done(&files);
	json_decref(json);
	free(text);
	return r;
}

static void
sizes_are_bounded(void **state)
{
	(void)state;
	assert_int_equal(read_sized(1, config->results.input_bytes), 0);
	assert_true(read_sized(1, config->results.input_bytes + 1) < 0);
	assert_int_equal(read_sized(2, config->results.inputs_bytes / 2), 0);
	assert_true(read_sized(3, config->results.inputs_bytes / 3 + 1) < 0);
	assert_int_equal(read_sized(config->results.inputs, 1), 0);
	assert_true(read_sized(config->results.inputs + 1, 1) < 0);
}

static int
read_path(size_t len, size_t name_max)
{
	char *path = malloc(len + 1);
	json_t *json;
	struct run_script_files files;
	struct why why;
	int r;

	for (size_t i = 0; i < len; i++)
		path[i] = i % (name_max + 1) == name_max ? '/' : 'n';
	path[len] = '\0';
	json = json_pack("[{s:s,s:s}]", "path", path, "text", "");
	r = run_script_files_read(json, config, &files, &why);
	run_script_files_done(&files);
	json_decref(json);
	free(path);
	return r;
}

static void
paths_are_bounded(void **state)
{
	(void)state;
	assert_int_equal(read_path(FILES_NAME_MAX, 999), 0);
	assert_true(read_path(FILES_NAME_MAX + 1, 999) < 0);
	assert_int_equal(read_path(FILES_PATH_MAX, 100), 0);
	assert_true(read_path(FILES_PATH_MAX + 1, 100) < 0);
}

static int
set_up(void **state)
{
	(void)state;
	config = config_new();
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	config_free(config);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_hold),
		cmocka_unit_test(base64_is_decoded),
		cmocka_unit_test(sizes_are_bounded),
		cmocka_unit_test(paths_are_bounded),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
