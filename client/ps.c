/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python ps, stop, suspend and resume.   Owns: a connection to the operators' socket.
 * Reads:   first lines of tenants' scripts, hostile to a terminal; the table quotes them. */
#include "client/commands.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <jansson.h>

#include "client/admin.h"
#include "client/exits.h"
#include "client/say.h"
#include "client/table.h"

#define WIDTH 4096	/* columns where there is no terminal: lines are not cut */
#define ROWS 4096

static const char ps_help[] =
	"Usage: mcp-python ps [--json] [--admin-socket PATH]\n"
	"\n"
	"Lists the executions that run or wait, with the first line of each. For operators.\n"
	"\n"
	"  --json                as JSON\n"
	ADMIN_SOCKET_HELP
	"  --help                this text\n";

static const char stop_help[] =
	"Usage: mcp-python stop ID [--admin-socket PATH]\n"
	"\n"
	"Stops an execution (\"mcp-python ps\" lists them), or closes a session (\"mcp-python\n"
	"status\"). The beginning of an ID is enough if no other begins so. For operators.\n"
	"\n"
	ADMIN_SOCKET_HELP
	"  --help                this text\n";

static const char suspend_help[] =
	"Usage: mcp-python suspend [WHO] [--json] [--admin-socket PATH]\n"
	"       mcp-python resume WHO\n"
	"\n"
	"Stops all that a user runs, and refuses what they start, until \"resume\" or until the\n"
	"service starts again; a rule of the configuration lasts longer. Idle sessions stay.\n"
	"WHO is a user's name, or a tenant such as uid:1000 or token:ci. Without WHO: lists\n"
	"who is suspended. For operators.\n"
	"\n"
	"  --json                as JSON\n"
	ADMIN_SOCKET_HELP
	"  --help                this text\n";

static size_t
screen_width(void)
{
	struct winsize size = { .ws_col = 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return WIDTH;
	return size.ws_col;
}

static void
print_executions(const json_t *list)
{
	static const char *const titles[] = { "EXECUTION", "WHO", "KIND", "PROFILE", "STATE", ">AGE",
					      ">CPU", ">MEMORY", "FIRST LINE", NULL };
	struct table *table;
	const json_t *one;
	size_t i;

	if (json_array_size(list) == 0) {
		puts("Nothing runs or waits.");
		return;
	}
	table = table_new(titles);
	json_array_foreach(list, i, one) {
		table_add(table, "%s", admin_text(one, "id"));
		table_add(table, "%s", admin_name(admin_text(one, "tenant")));
		table_add(table, "%s", admin_text(one, "kind"));
		table_add(table, "%s", admin_text(one, "profile"));
		table_add(table, "%s", admin_text(one, "state"));
		table_add(table, "%s", figure_time(admin_number(one, "age_seconds")));
		table_add(table, "%s", figure_time(admin_number(one, "cpu_seconds")));
		table_add(table, "%s", figure_bytes((uint64_t)admin_number(one, "memory_bytes")));
		table_add(table, "%s", admin_text(one, "first_line"));
	}
	table_print(table, stdout, ROWS, screen_width(), "", "");
	table_free(table);
}

int
ps_command(int argc, char **argv)
{
	struct admin_options options;
	const json_t *list;
	json_t *answer;
	int code, r = admin_read_options(argc, argv, ADMIN_TAKES_JSON, 0, ps_help, &options);

	if (r != 0)
		return r > 0 ? 0 : -r;
	answer = admin_ask_once(admin_path(options.admin_socket, NULL),
				json_pack("{s:s}", "do", "executions"), &code);
	if (!answer)
		return code;
	list = json_object_get(answer, "executions");
	if (options.json)
		admin_print_json(stdout, list);
	else
		print_executions(list);
	json_decref(answer);
	return 0;
}

int
stop_command(int argc, char **argv)
{
	struct admin_options options;
	json_t *answer;
	int code, r = admin_read_options(argc, argv, ADMIN_TAKES_JSON, 1, stop_help, &options);

	if (r != 0)
		return r > 0 ? 0 : -r;
	if (options.n_words == 0) {
		say("stop: which one? \"mcp-python ps\" lists executions, \"mcp-python status\" sessions");
		return EX_USAGE;
	}
	answer = admin_ask_once(admin_path(options.admin_socket, NULL),
				json_pack("{s:s,s:s}", "do", "stop", "id", options.word[0]), &code);
	if (!answer)
		return code;
	if (options.json)
		admin_print_json(stdout, answer);
	else if (*admin_text(answer, "closed"))
		say("closed session %s...", admin_text(answer, "closed"));
	else
		say("stopped %s", admin_text(answer, "stopped"));
	json_decref(answer);
	return 0;
}

static void
print_suspended(const json_t *list)
{
	const json_t *one;
	size_t i;

	if (json_array_size(list) == 0)
		puts("No tenant is suspended.");
	json_array_foreach(list, i, one) {
		admin_print(stdout, admin_name(json_string_value(one)));
		putchar('\n');
	}
}

int
suspend_command(int argc, char **argv)
{
	struct admin_options options;
	char who[ADMIN_WHO];
	const char *tenant = NULL;
	json_t *answer;
	int code, r = admin_read_options(argc, argv, ADMIN_TAKES_JSON, 1, suspend_help, &options);

	if (r != 0)
		return r > 0 ? 0 : -r;
	if (options.n_words > 0 && !(tenant = admin_principal(options.word[0], who))) {
		say("%s: there is no user %s", argv[0], options.word[0]);
		return EX_USAGE;
	}
	if (!tenant && strcmp(argv[0], "resume") == 0) {
		say("resume: whom? \"mcp-python suspend\" lists who is suspended");
		return EX_USAGE;
	}
	answer = admin_ask_once(admin_path(options.admin_socket, NULL),
				json_pack("{s:s,s:s*}", "do", tenant ? argv[0] : "suspended",
					  "tenant", tenant), &code);
	if (!answer)
		return code;
	if (options.json)
		admin_print_json(stdout, answer);
	else if (!tenant)
		print_suspended(json_object_get(answer, "suspended"));
	else if (strcmp(argv[0], "resume") == 0)
		say("%s may run scripts again", admin_name(tenant));
	else
		say("%s is suspended; %ld stopped", admin_name(tenant), admin_count(answer, "stopped"));
	json_decref(answer);
	return 0;
}
