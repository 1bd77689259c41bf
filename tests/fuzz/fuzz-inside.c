/* SPDX-License-Identifier: Apache-2.0 */
/* Workers' answers to the service's own questions. The first byte is the tool that asks. Answers
 * follow, a line each; the last one answers all further questions. The target asserts:
 *
 * - The call has one answer, with text, in the form of the tool's output schema.
 * - A script is valid if and only if it has no errors. */
#include "fuzz.h"

#include <stdbool.h>

#include <jansson.h>

#include "base/log.h"
#include "policy/config.h"
#include "tests/unit/mcp/bench_stream.h"
#include "tests/unit/tools/fake_engine.h"
#include "tools/shared/environment.h"

#define ANSWERS_MAX 4
#define CALLS_MAX 200		/* of one bench: it keeps all lines */

#define SCRIPT "# /// script\\n# dependencies = ['numpy']\\n# ///\\nprint(1)"
#define CALL(name, arguments) { name, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\"," \
	"\"params\":{\"name\":\"" name "\",\"arguments\":" arguments "}}" }

static const struct {
	const char *name, *line;
} calls[] = {
	CALL("check_environment", "{}"),
	CALL("validate_script", "{\"script\":\"" SCRIPT "\"}"),
	CALL("run_script", "{\"script\":\"" SCRIPT "\"}"),
	CALL("run_script", "{\"script\":\"2\",\"dependencies\":[\"numpy>=1\",\"a[b]\"]}"),
	CALL("validate_code", "{\"code\":\"print(1)\"}"),
};

static struct bench *bench;
static json_t *tools;			/* the answer of tools/list */

static void
offer_all(struct config *config)
{
	config->mcp.toolsets.item = realloc(config->mcp.toolsets.item, 2 * sizeof(char *));
	config->mcp.toolsets.item[1] = strdup("python-sandbox");
	config->mcp.toolsets.n = 2;
	config->mcp.output_schemas = 1;
}

static void
set_up(void)
{
	json_t *answer;

	log_init(LOG_CRIT);
	if (bench)
		bench_free(bench);
	bench = bench_new_with(NULL, offer_all);
	bench_initialize(bench, "2025-06-18");
	bench_say(bench, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
	answer = bench_next_json(bench);
	json_decref(tools);
	tools = json_incref(json_object_get(json_object_get(answer, "result"), "tools"));
	MUST(json_array_size(tools) > 5);
	json_decref(answer);
}

/* ---- JSON Schema, as far as the tools use it ---- */

static bool fits(const json_t *schema, const json_t *value);

static bool
is_type(const char *type, const json_t *value)
{
	return strcmp(type, "object") == 0 ? json_is_object(value) :
	       strcmp(type, "array") == 0 ? json_is_array(value) :
	       strcmp(type, "string") == 0 ? json_is_string(value) :
	       strcmp(type, "integer") == 0 ? json_is_integer(value) :
	       strcmp(type, "number") == 0 ? json_is_number(value) :
	       strcmp(type, "boolean") == 0 ? json_is_boolean(value) :
	       strcmp(type, "null") == 0 && json_is_null(value);
}

static bool
fits_object(const json_t *schema, const json_t *value)
{
	const json_t *properties = json_object_get(schema, "properties"), *name;
	const char *key;
	json_t *member;
	size_t i;

	json_array_foreach(json_object_get(schema, "required"), i, name)
		if (!json_object_get(value, json_string_value(name)))
			return false;
	json_object_foreach((json_t *)value, key, member) {
		const json_t *property = json_object_get(properties, key);

		if (property ? !fits(property, member)
			     : json_is_false(json_object_get(schema, "additionalProperties")))
			return false;
	}
	return true;
}

static bool
is_any(const json_t *list, const json_t *value, bool of_types)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
		if (of_types ? is_type(json_string_value(one), value) : json_equal(one, value))
			return true;
	return false;
}

static bool
fits(const json_t *schema, const json_t *value)
{
	const json_t *type = json_object_get(schema, "type"), *one;
	const json_t *values = json_object_get(schema, "enum");
	size_t i;

	if (json_is_string(type) ? !is_type(json_string_value(type), value)
				 : type && !is_any(type, value, true))
		return false;
	if (values && !is_any(values, value, false))
		return false;
	json_array_foreach(value, i, one)
		if (!fits(json_object_get(schema, "items"), one))
			return false;
	return !json_is_object(value) || fits_object(schema, value);
}

/* ---- one call ---- */

static void
check_structured(const char *name, const json_t *structured)
{
	const json_t *valid = json_object_get(structured, "valid"), *tool;
	const json_t *errors = json_object_get(structured, "errors");
	size_t i;

	/* validate_code also says "not valid" of code that cannot be compiled, without errors. */
	MUST(!json_is_true(valid) || json_array_size(errors) == 0);
	MUST(!valid || json_is_true(valid) || json_array_size(errors) > 0 ||
	     strcmp(name, "validate_code") == 0);
	json_array_foreach(tools, i, tool)
		if (strcmp(json_string_value(json_object_get(tool, "name")), name) == 0)
			MUST(fits(json_object_get(tool, "outputSchema"), structured));
}

static void
check_answer(const json_t *answer, const char *name)
{
	const json_t *result = json_object_get(answer, "result"), *block;
	const json_t *structured = json_object_get(result, "structuredContent");
	size_t i;

	MUST(json_integer_value(json_object_get(answer, "id")) == 7 && json_is_object(result));
	MUST(json_array_size(json_object_get(result, "content")) > 0);
	json_array_foreach(json_object_get(result, "content"), i, block)
		MUST(json_is_string(json_object_get(block, "text")));
	if (structured)
		check_structured(name, structured);
}

/* The answers, up to NULL. */
static void
read_answers(struct rest rest, char *answers[ANSWERS_MAX + 1])
{
	for (size_t i = 0; i < ANSWERS_MAX && (i == 0 || rest.len > 0); i++) {
		struct rest line = rest_line(&rest);

		answers[i] = strndup((const char *)line.at, line.len);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned int n_calls;
	struct rest rest = { data, size };
	uint8_t which = rest_byte(&rest) % (sizeof(calls) / sizeof(*calls));
	char *answers[ANSWERS_MAX + 1] = { NULL };
	json_t *answer;

	if (n_calls++ % CALLS_MAX == 0)
		set_up();
	read_answers(rest, answers);
	fake_engine_answers((const char *const *)answers);
	bench_say(bench, calls[which].line);
	if (bench_unread(bench) == 0)
		bench_wait(bench, 1);
	answer = bench_next_json(bench);
	check_answer(answer, calls[which].name);
	MUST(bench_unread(bench) == 0 && fake_engine_record()->alive == 0);
	json_decref(answer);
	environment_forget();
	for (size_t i = 0; answers[i]; i++)
		free(answers[i]);
	return 0;
}
