/* SPDX-License-Identifier: Apache-2.0 */
/* Seals, their key in its file, handles, and the forms that users fill in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/handle.h"
#include "base/why.h"
#include "mcp/question.h"
#include "mcp/seal.h"

#define ID "abcdefghijkmnpqrstuvwxyz23"

static struct seal_binding
bound(const char *principal, const char *method, const char *params)
{
	json_t *value = json_loads(params, 0, NULL);
	struct seal_binding binding;

	assert_non_null(value);
	seal_bind(principal, method, value, &binding);
	json_decref(value);
	return binding;
}

static bool
opens(const struct mcp_seal *seal, const char *text, int64_t now,
      const struct seal_binding *binding)
{
	struct sealed sealed;

	return mcp_seal_open(seal, text, now, binding, &sealed) && strcmp(sealed.id, ID) == 0;
}

static char *
close_until(const struct mcp_seal *seal, int64_t expires, const struct seal_binding *binding)
{
	const struct sealed sealed = { .id = ID, .expires = expires };

	return mcp_seal_close(seal, &sealed, binding);
}

static void
a_seal_holds_until_it_is_too_old(void **state)
{
	struct mcp_seal *seal = mcp_seal_new_random(), *other = mcp_seal_new_random();
	struct seal_binding binding = bound("uid:1", "tools/call", "{\"name\":\"a\"}");
	char *text = close_until(seal, 1000, &binding), later[256];
	char host[HANDLE_HOST_MAX + 1], start[HANDLE_HOST_MAX + 8];

	(void)state;
	handle_own_host(host);
	snprintf(start, sizeof(start), "s1.%s.", host);
	assert_memory_equal(text, start, strlen(start));
	assert_true(opens(seal, text, 999, &binding));
	assert_false(opens(seal, text, 1000, &binding));
	assert_false(opens(other, text, 999, &binding));
	/* a later end, under the same seal */
	snprintf(later, sizeof(later), "%s" ID ".9000%s", start,
		 strchr(strstr(text, ID ".") + sizeof(ID), '.'));
	assert_false(opens(seal, later, 999, &binding));
	snprintf(later, sizeof(later), "s1.x%s", text + strlen("s1."));	/* of another host */
	assert_false(opens(seal, later, 999, &binding));
	for (char *at = text; *at; at++) {
		*at ^= 1;
		assert_false(opens(seal, text, 999, &binding));
		*at ^= 1;
	}
	assert_true(opens(seal, text, 999, &binding));
	assert_false(opens(seal, "", 1, &binding));
	assert_false(opens(seal, ".", 1, &binding));
	assert_false(opens(seal, strrchr(text, '.'), 1, &binding));
	memset(later, 'a', sizeof(later));
	later[sizeof(later) - 1] = '\0';
	later[sizeof(later) - 2] = '.';
	assert_false(opens(seal, later, 1, &binding));
	free(text);
	mcp_seal_free(seal);
	mcp_seal_free(other);
}

static void
a_binding_tells_apart(void **state)
{
	static const char *const params[] = {
		"{\"name\":\"a\"}", "{\"name\":\"b\"}", "{\"uri\":\"a\"}", "{}",
		"{\"name\":\"a\",\"arguments\":{}}", "{\"name\":\"a\",\"arguments\":{\"x\":[1]}}",
		"{\"name\":\"a\",\"arguments\":{\"x\":[\"1\"]}}",
	};
	const size_t n = sizeof(params) / sizeof(*params);
	struct seal_binding one, two;

	(void)state;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			one = bound("uid:1", "m", params[i]);
			two = bound("uid:1", "m", params[j]);
			assert_int_equal(memcmp(&one, &two, sizeof(one)) == 0, i == j);
		}
	one = bound("uid:1", "m", "{\"name\":\"a\",\"arguments\":{\"x\":1,\"y\":2},\"_meta\":{}}");
	two = bound("uid:1", "m", "{\"arguments\":{\"y\":2,\"x\":1},\"name\":\"a\",\"requestState\":\"s\"}");
	assert_memory_equal(&one, &two, sizeof(one));
	two = bound("uid:12", "m", "{}");
	one = bound("uid:1", "2m", "{}");
	assert_memory_not_equal(&one, &two, sizeof(one));
}

/* The launcher, and any other process that is forked while the key exists. */
static void
a_forked_process_has_no_key(void **state)
{
	struct mcp_seal *seal = mcp_seal_new_random();
	struct seal_binding binding = bound("uid:1", "tools/call", "{\"name\":\"a\"}");
	char *text = close_until(seal, 1000, &binding);
	pid_t child = fork();
	int status;

	(void)state;
	if (child == 0)
		_exit(opens(seal, text, 1, &binding) ? 1 : 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(opens(seal, text, 1, &binding));
	free(text);
	mcp_seal_free(seal);
}

static void
the_key_file_outlives_the_process(void **state)
{
	char directory[] = "/tmp/test-seal.XXXXXX", path[64];
	struct seal_binding binding = bound("uid:1", "m", "{}");
	const struct sealed sealed = { .id = ID, .expires = 1000, .nothing_done = true };
	struct sealed opened;
	struct why why = { .field = "" };
	struct mcp_seal *seal;
	struct stat st;
	char *text;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/key", directory);
	assert_int_equal(mcp_seal_new(path, &seal, &why), 0);
	text = mcp_seal_close(seal, &sealed, &binding);
	assert_true(mcp_seal_open(seal, text, 1, &binding, &opened));
	assert_true(opened.is_ours && opened.nothing_done);
	mcp_seal_free(seal);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, SEAL_KEY_BYTES);
	assert_int_equal(mcp_seal_new(path, &seal, &why), 0);
	assert_true(mcp_seal_open(seal, text, 1, &binding, &opened));
	assert_true(!opened.is_ours && opened.nothing_done);
	assert_string_equal(opened.id, ID);
	free(text);
	text = close_until(seal, 1000, &binding);
	assert_true(mcp_seal_open(seal, text, 1, &binding, &opened));
	assert_true(opened.is_ours && !opened.nothing_done);
	mcp_seal_free(seal);
	free(text);

	assert_int_equal(chmod(path, 0640), 0);
	assert_true(mcp_seal_new(path, &seal, &why) < 0);
	assert_non_null(strstr(why.text, "only its owner"));
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(truncate(path, 31), 0);
	assert_true(mcp_seal_new(path, &seal, &why) < 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/dev/zero", path), 0);
	assert_true(mcp_seal_new(path, &seal, &why) < 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(directory), 0);
	assert_true(mcp_seal_new(path, &seal, &why) < 0);	/* no such directory */
}

static void
new_ids_are_new(void **state)
{
	char one[ID_CHARACTERS + 1], two[ID_CHARACTERS + 1];

	(void)state;
	id_new(one);
	id_new(two);
	assert_string_not_equal(one, two);
	assert_int_equal(strspn(one, "abcdefghijkmnpqrstuvwxyz23456789"), ID_CHARACTERS);
	/* More than random bytes are got at once, and the lengths are mixed. */
	for (int i = 0; i < 100; i++) {
		id_new_short(one);
		id_new_short(two);
		assert_int_equal(strlen(one), ID_SHORT);
		assert_true(id_is_valid(one, ID_SHORT));
		assert_string_not_equal(one, two);
		id_new(two);
		assert_int_equal(strlen(two), ID_CHARACTERS);
	}
	assert_false(id_is_valid("abcdefghi", ID_SHORT));
	assert_false(id_is_valid("abcdefghil", ID_SHORT));
}

#define FORM(field) "{\"type\":\"object\",\"properties\":{\"f\":" field "},\"required\":[\"f\"]}"

static void
forms_take_what_fits(void **state)
{
	static const struct {
		const char *schema, *content;	/* content NULL: absent */
		bool fits;
	} forms[] = {
		{ FORM("{\"type\":\"string\"}"), "{\"f\":\"\"}", true },
		{ FORM("{\"type\":\"string\"}"), "{\"f\":1}", false },
		{ FORM("{\"type\":\"string\"}"), "{}", false },
		{ FORM("{\"type\":\"string\"}"), "[]", false },
		{ FORM("{\"type\":\"string\"}"), NULL, false },
		{ "{\"type\":\"object\",\"properties\":{}}", NULL, true },
		{ FORM("{\"type\":\"string\",\"minLength\":2}"), "{\"f\":\"\xc3\xa9\"}", false },
		{ FORM("{\"type\":\"string\",\"maxLength\":1}"), "{\"f\":\"\xc3\xa9\"}", true },
		{ FORM("{\"type\":\"integer\"}"), "{\"f\":2.0}", true },
		{ FORM("{\"type\":\"integer\"}"), "{\"f\":2.5}", false },
		{ FORM("{\"type\":\"number\",\"minimum\":1.5}"), "{\"f\":1}", false },
		{ FORM("{\"type\":\"number\",\"maximum\":1.5}"), "{\"f\":1.5}", true },
		{ FORM("{\"type\":\"boolean\"}"), "{\"f\":false}", true },
		{ FORM("{\"type\":\"boolean\"}"), "{\"f\":\"true\"}", false },
		{ FORM("{\"type\":\"string\",\"enum\":[\"a\",\"b\"]}"), "{\"f\":\"b\"}", true },
		{ FORM("{\"type\":\"string\",\"enum\":[\"a\",\"b\"]}"), "{\"f\":\"c\"}", false },
		{ FORM("{\"type\":\"string\",\"oneOf\":[{\"const\":\"a\",\"title\":\"A\"}]}"),
		  "{\"f\":\"a\"}", true },
		{ FORM("{\"type\":\"string\",\"oneOf\":[{\"const\":\"a\",\"title\":\"A\"}]}"),
		  "{\"f\":\"A\"}", false },
		{ FORM("{\"type\":\"array\",\"items\":{\"enum\":[\"a\"]},\"minItems\":1}"),
		  "{\"f\":[\"a\"],\"more\":1}", true },
		{ FORM("{\"type\":\"array\",\"items\":{\"enum\":[\"a\"]},\"minItems\":1}"),
		  "{\"f\":[]}", false },
		{ FORM("{\"type\":\"array\",\"items\":{\"anyOf\":[{\"const\":\"a\"}]}}"),
		  "{\"f\":[\"a\",\"b\"]}", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		json_t *content = forms[i].content ? json_loads(forms[i].content, 0, NULL) : NULL;

		if (mcp_form_fits(forms[i].schema, content) != forms[i].fits)
			fail_msg("%s: %s", forms[i].schema, forms[i].content);
		json_decref(content);
	}
}

static void
handles_may_end_with_the_host(void **state)
{
	static const struct { const char *name, *want; } cases[] = {
		{ "alpha", "alpha" },
		{ "alpha.example.org", "alpha" },
		{ "node-7", "node-7" },
		{ "a b/c\r\n\"d", "abcd" },
		{ "", "host" },
		{ ".", "host" },
		{ "0123456789012345678901234567890123456789012345678901234567890123456789",
		  "012345678901234567890123456789012345678901234567890123456789012" },
	};
	char host[HANDLE_HOST_MAX + 1], a[HANDLE_MAX + 1], b[HANDLE_MAX + 1], name[256];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		handle_host(cases[i].name, host);
		assert_string_equal(host, cases[i].want);
	}
	handle_new('r', a);
	handle_new('r', b);
	assert_string_not_equal(a, b);
	assert_memory_equal(a, "r-", 2);
	assert_int_equal(strlen(a), 2 + ID_SHORT);
	handle_name_host(true);
	handle_new('r', a);
	handle_name_host(false);
	assert_int_equal(gethostname(name, sizeof(name)), 0);
	handle_host(name, host);
	assert_int_equal(a[2 + ID_SHORT], '-');
	assert_string_equal(a + 2 + ID_SHORT + 1, host);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_seal_holds_until_it_is_too_old),
		cmocka_unit_test(a_binding_tells_apart),
		cmocka_unit_test(a_forked_process_has_no_key),
		cmocka_unit_test(the_key_file_outlives_the_process),
		cmocka_unit_test(new_ids_are_new),
		cmocka_unit_test(handles_may_end_with_the_host),
		cmocka_unit_test(forms_take_what_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
