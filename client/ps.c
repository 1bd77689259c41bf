/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python ps and stop.   Owns: a connection to the operators' socket.
 * Reads:   first lines of tenants' scripts, hostile to a terminal; the table quotes them. */
#include "client/operator.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
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

static size_t
screen_width(void)
{
	struct winsize size = { .ws_col = 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return WIDTH;
	return size.ws_col;
}

static double
number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
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
		table_add(table, "%s", figure_time(number(one, "age_seconds")));
		table_add(table, "%s", figure_time(number(one, "cpu_seconds")));
		table_add(table, "%s", figure_bytes((uint64_t)number(one, "memory_bytes")));
		table_add(table, "%s", admin_text(one, "first_line"));
	}
	table_print(table, stdout, ROWS, screen_width(), "", "");
	table_free(table);
}

struct asked {
	const char *socket, *id;
	bool json;
};

/* 0; 1: the help was shown; -EX_USAGE. */
static int
read_options(int argc, char **argv, const char *help, bool takes_id, struct asked *asked_r)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "admin-socket", required_argument, NULL, 'a' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	*asked_r = (struct asked){ .json = false };
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'j':
			asked_r->json = true;
			break;
		case 'a':
			asked_r->socket = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return 1;
		default:
			return -EX_USAGE;
		}
	}
	if (takes_id && optind == argc) {
		say("stop: which one? \"mcp-python ps\" lists executions, \"mcp-python status\" sessions");
		return -EX_USAGE;
	}
	if (takes_id)
		asked_r->id = argv[optind++];
	if (optind == argc)
		return 0;
	say("%s: there is an extra word", argv[0]);
	return -EX_USAGE;
}

/* Asks, and shows the answer, or why there is none. The request is taken. An exit code. */
static int
ask(const struct asked *asked, json_t *request)
{
	FILE *stream = admin_connect(admin_path(asked->socket, NULL), false);
	char text[256];
	json_t *answer;
	int code;

	if (!stream) {
		json_decref(request);
		return EX_UNAVAILABLE;
	}
	answer = admin_ask(stream, request, &code, text, sizeof(text));
	if (!answer)
		say("%s", text);
	else if (asked->json)
		admin_print_json(stdout, asked->id ? answer : json_object_get(answer, "executions"));
	else if (!asked->id)
		print_executions(json_object_get(answer, "executions"));
	else if (*admin_text(answer, "closed"))
		say("closed session %s...", admin_text(answer, "closed"));
	else
		say("stopped %s", admin_text(answer, "stopped"));
	json_decref(answer);
	fclose(stream);
	return code ? code : fflush(stdout) == 0 ? 0 : EX_IOERR;
}

int
ps_command(int argc, char **argv)
{
	struct asked asked;
	int r = read_options(argc, argv, ps_help, false, &asked);

	return r != 0 ? (r > 0 ? 0 : -r) : ask(&asked, json_pack("{s:s}", "do", "executions"));
}

int
stop_command(int argc, char **argv)
{
	struct asked asked;
	int r = read_options(argc, argv, stop_help, true, &asked);

	return r != 0 ? (r > 0 ? 0 : -r)
		      : ask(&asked, json_pack("{s:s,s:s}", "do", "stop", "id", asked.id));
}
