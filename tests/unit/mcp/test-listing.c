/* SPDX-License-Identifier: Apache-2.0 */
/* What tools/list shows of a schema. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mcp/tool_list.h"

#define BODY(code, n, rest) "{\"type\":\"object\",\"properties\":{" code n "}" rest "}"

static const struct {
	const char *schema, *common, *all;
} row[] = {
	/* Nothing is marked: it says all that there is. */
	{ BODY("\"a\":{\"type\":\"string\",\"minLength\":1,\"pattern\":\"^a\"}", "",
	       ",\"additionalProperties\":false"),
	  BODY("\"a\":{\"type\":\"string\"}", "", ",\"additionalProperties\":false"),
	  BODY("\"a\":{\"type\":\"string\",\"minLength\":1,\"pattern\":\"^a\"}", "",
	       ",\"additionalProperties\":false") },
	/* What is marked goes, and so does the statement that there is no more. */
	{ BODY("\"a\":{\"minimum\":0.1,\"maxItems\":3},", "\"b\":{\"x-unlisted\":true,\"maximum\":2}",
	       ",\"required\":[\"a\"],\"additionalProperties\":false"),
	  BODY("\"a\":{\"minimum\":0.1}", "", ",\"required\":[\"a\"]"),
	  BODY("\"a\":{\"minimum\":0.1,\"maxItems\":3},", "\"b\":{\"maximum\":2}",
	       ",\"required\":[\"a\"],\"additionalProperties\":false") },
	{ BODY("\"a\":{\"x-unlisted\":true},", "\"b\":{\"x-unlisted\":true}", ""),
	  BODY("", "", ""), BODY("\"a\":{},", "\"b\":{}", "") },
	/* A property may have any name. */
	{ BODY("\"x-unlisted\":{\"enum\":[\"x-unlisted\"]}", "", ""),
	  BODY("\"x-unlisted\":{\"enum\":[\"x-unlisted\"]}", "", ""),
	  BODY("\"x-unlisted\":{\"enum\":[\"x-unlisted\"]}", "", "") },
	{ "{\"type\":\"object\"}", "{\"type\":\"object\"}", "{\"type\":\"object\"}" },
};

static void
a_list_shows_what_a_model_chooses(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		char *common = listing_of(row[i].schema, false);
		char *all = listing_of(row[i].schema, true);

		assert_string_equal(common, row[i].common);
		assert_string_equal(all, row[i].all);
		free(common);
		free(all);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_shows_what_a_model_chooses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
