/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python tools.   Owns: a connection to the operators' socket.
 * Reads:   texts of other MCP servers, hostile to a terminal. */
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/quote.h"
#include "base/xalloc.h"
#include "client/admin.h"
#include "client/commands.h"
#include "client/exits.h"
#include "client/say.h"
#include "policy/shown.h"

static const char help[] =
	"Usage: mcp-python tools [list|describe|call] [--json] [--admin-socket PATH]\n"
	"       mcp-python tools describe SERVER.TOOL\n"
	"       mcp-python tools call SERVER.TOOL [NAME=VALUE ...]\n"
	"\n"
	"Tools of other MCP servers, which scripts call by \"import tools\": lists them,\n"
	"shows what a server says of one, and calls one. A VALUE that is JSON counts as\n"
	"that, any other as text. Only operators may; each call is in the audit log.\n"
	"\n"
	"  --json                as JSON\n"
	ADMIN_SOCKET_HELP
	"  --help                this text\n";

static int
tools_command_usage(const char *text)
{
	say("%s", text);
	return EX_USAGE;
}

/* ---- showing ---- */

static void
tools_command_print_list(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);

		printf("%s.%s%s  ", admin_text(one, "server"), admin_text(one, "tool"),
		       json_is_true(json_object_get(one, "read_only")) ? "" : " (may change things)");
		admin_print(stdout, admin_text(one, "description"));
		putchar('\n');
	}
	if (json_array_size(list) == 0)
		puts("No other server has tools for scripts.");
}

/* The server's words, each line with a mark. */
static void
print_words(const char *text, size_t len)
{
	static const struct quote_block block = { SHOWN_MARK, QUOTE_COLUMNS, SIZE_MAX, SIZE_MAX };

	quote_block(stdout, &block, text, len);
	putchar('\n');
}

static void
print_value(const json_t *value)
{
	char *text = json_dumps(value, JSON_INDENT(2) | JSON_ENCODE_ANY);

	if (!text)
		xalloc_fail(0);
	print_words(text, strlen(text));
	free(text);
}

static void
print_result(const json_t *result)
{
	const json_t *content = json_object_get(result, "content");
	const json_t *value = json_object_get(result, "structuredContent");

	for (size_t i = 0; !value && i < json_array_size(content); i++) {
		const json_t *block = json_array_get(content, i);
		const json_t *text = json_object_get(block, "text");

		if (text)
			print_words(json_string_value(text), json_string_length(text));
		else
			print_value(block);
	}
	if (value)
		print_value(value);
}

static int
tools_command_show(bool as_json, const json_t *answer)
{
	const json_t *list = json_object_get(answer, "tools");
	const json_t *about = json_object_get(answer, "about");
	const json_t *result = json_object_get(answer, "result");
	bool failed = strcmp(admin_text(answer, "status"), "error") == 0;

	if (as_json)
		admin_print_json(stdout, list ? list : about ? about : result);
	else if (list)
		tools_command_print_list(list);
	else if (about)
		print_value(about);
	else
		print_result(result);
	if (failed)
		say("the tool reports an error");
	return failed;
}

/* ---- arguments ---- */

static int
tools_command_read_name(const char *word, json_t *request)
{
	const char *dot = strchr(word, '.');

	if (!dot || !dot[1])
		return tools_command_usage("which tool? SERVER.TOOL, as \"mcp-python tools\" lists them");
	json_object_set_new(request, "server", json_stringn(word, (size_t)(dot - word)));
	json_object_set_new(request, "tool", json_string(dot + 1));
	return 0;
}

static int
tools_command_read_arguments(int n, char **word, json_t *request)
{
	json_t *arguments = json_object();

	for (int i = 0; i < n; i++) {
		char *end = strchr(word[i], '=');
		json_t *value = end ? json_loads(end + 1, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)
				    : NULL;

		if (!value && end)
			value = json_string(end + 1);
		if (end)
			*end = '\0';
		if (!value || json_object_set_new(arguments, word[i], value) < 0) {
			json_decref(arguments);
			return tools_command_usage("arguments are NAME=VALUE, in UTF-8");
		}
	}
	json_object_set_new(request, "arguments", arguments);
	return 0;
}

static int
tools_command_read_words(const struct admin_options *options, json_t **request_r)
{
	static const char *const actions[][2] = {
		{ "list", "tools" }, { "describe", "describe-tool" }, { "call", "call-tool" },
	};
	int n = options->n_words, code = 0;
	const char *word = n > 0 ? options->word[0] : "list", *request = NULL;

	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (strcmp(word, actions[i][0]) == 0)
			request = actions[i][1];
	if (!request)
		return tools_command_usage("tools: list, describe or call");
	*request_r = json_pack("{s:s}", "do", request);
	if (strcmp(word, "list") == 0)
		return n > 1 ? tools_command_usage("there is an extra word") : 0;
	code = tools_command_read_name(n > 1 ? options->word[1] : "", *request_r);
	if (code == 0 && strcmp(word, "call") == 0)
		return tools_command_read_arguments(n - 2, options->word + 2, *request_r);
	return code ? code : n > 2 ? tools_command_usage("there is an extra word") : 0;
}

int
tools_command(int argc, char **argv)
{
	struct admin_options options;
	json_t *request = NULL, *answer;
	int code, r = admin_read_options(argc, argv, ADMIN_TAKES_JSON, INT_MAX, help, &options);

	if (r != 0)
		return r > 0 ? 0 : -r;
	code = tools_command_read_words(&options, &request);
	if (code) {
		json_decref(request);
		return code;
	}
	answer = admin_ask_once(admin_path(options.admin_socket, NULL), request, &code);
	if (answer)
		code = tools_command_show(options.json, answer);
	json_decref(answer);
	return code;
}
