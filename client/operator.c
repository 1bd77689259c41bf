/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python approvals, approve and deny.   Owns: a connection to the operators'
 * socket.
 * The service decides what a user may do, by the uid that the kernel reports.
 * Reads:   texts of tenants, hostile to a terminal. */
#include "client/operator.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/own.h"
#include "base/xalloc.h"
#include "client/admin.h"
#include "client/approval.h"
#include "client/exits.h"
#include "client/say.h"

static const char help[] =
	"Usage: mcp-python approvals [list|watch] [--all] [--json]\n"
	"       mcp-python approvals review\n"
	"       mcp-python approvals show ID\n"
	"       mcp-python approve ID [--reason TEXT] [--for-run]\n"
	"       mcp-python deny ID [--reason TEXT]\n"
	"       mcp-python approvals approve|deny|revoke ID\n"
	"\n"
	"Shows requests for approval, and decides about them. The beginning of an ID is\n"
	"enough if no other begins so. \"review\" shows one request after the other, as they\n"
	"come, and asks what to do with it.\n"
	"\n"
	"  --all                 decided requests too\n"
	"  --watch               the list again after each change\n"
	"  --json                as JSON\n"
	"  --reason TEXT         why: in the audit log, and shown to a caller who is denied\n"
	"  --for-run             of a call of another server's tool: also all further calls of\n"
	"                        that tool until the script ends, with any arguments\n"
	ADMIN_SOCKET_HELP
	"  --help                this text\n";

struct asked {
	const char *what, *id, *reason, *socket;
	bool all, json, for_run;
};

static int
operator_usage(const char *text)
{
	say("%s", text);
	return EX_USAGE;
}

static void
print_answer(const struct asked *asked, const json_t *answer)
{
	const json_t *list = json_object_get(answer, "approvals");
	const json_t *one = json_object_get(answer, "approval");

	if (asked->json) {
		admin_print_json(stdout, list ? list : one ? one : answer);
	} else if (list) {
		approval_print_list(list);
	} else if (one) {
		approval_print_all(one);
	}
	fflush(stdout);
}

/* ---- asking ---- */

static int
operator_read_answer(const struct asked *asked, FILE *stream)
{
	json_t *answer = admin_read(stream);
	int code = 0;

	if (!answer) {
		say("the service does not answer");
		return EX_UNAVAILABLE;
	}
	if (json_is_true(json_object_get(answer, "ok"))) {
		print_answer(asked, answer);
	} else {
		say("%s", admin_text(answer, "error"));
		code = EX_NOPERM;
	}
	json_decref(answer);
	return code;
}

/* Looks for requests whose id begins with word; word may lack the "a-". *n_r: how many there are.
 * Returns the whole id if there is exactly one, otherwise a copy of word; malloc'd. */
static char *
find_id(FILE *stream, const char *word, size_t *n_r)
{
	size_t len = strlen(word), skip = strncmp(word, "a-", 2) == 0 ? 0 : 2;
	const char *found = word;
	const json_t *one;
	json_t *answer;
	size_t i;
	char *id;

	*n_r = 0;
	admin_send(stream, json_pack("{s:s,s:b}", "do", "list", "all", 1));
	answer = admin_read(stream);
	json_array_foreach(json_object_get(answer, "approvals"), i, one) {
		const char *text = admin_text(one, "id");

		if (strlen(text) < skip + len || strncmp(text + skip, word, len) != 0)
			continue;
		found = text;
		*n_r += 1;
	}
	id = strdup(*n_r == 1 ? found : word);
	if (!id)
		xalloc_fail(0);
	json_decref(answer);
	return id;
}

/* Completes asked->id. 0 or an exit code. */
static int
complete_id(FILE *stream, struct asked *asked, char **id_r)
{
	size_t n;

	*id_r = find_id(stream, asked->id, &n);
	asked->id = *id_r;
	if (n < 2)
		return 0;
	say("%s: %zu requests begin so; more of the id is needed", asked->id, n);
	return EX_USAGE;
}

static void
say_done(const struct asked *asked)
{
	static const char *const done[][2] = {
		{ "approve", "approved" }, { "deny", "denied" }, { "revoke", "revoked" },
	};

	for (size_t i = 0; i < sizeof(done) / sizeof(done[0]); i++)
		if (!asked->json && strcmp(asked->what, done[i][0]) == 0)
			printf("%s %s\n", done[i][1], asked->id);
}

static int
operator_ask(struct asked *asked)
{
	FILE *stream = admin_connect(admin_path(asked->socket, NULL), false);
	own_mem char *id = NULL;
	json_t *request;
	int code;

	if (!stream)
		return EX_UNAVAILABLE;
	code = asked->id ? complete_id(stream, asked, &id) : 0;
	if (code) {
		fclose(stream);
		return code;
	}
	request = json_pack("{s:s,s:b}", "do", asked->what, "all", asked->all);
	if (asked->id)
		json_object_set_new(request, "id", json_string(asked->id));
	if (asked->reason)
		json_object_set_new(request, "reason", json_string(asked->reason));
	if (asked->for_run)
		json_object_set_new(request, "for_run", json_true());
	admin_send(stream, request);
	do
		code = operator_read_answer(asked, stream);
	while (code == 0 && strcmp(asked->what, "watch") == 0 && !ferror(stdout));
	fclose(stream);
	if (code == 0)
		say_done(asked);
	return code;
}

/* ---- arguments ---- */

static int
operator_read_words(int argc, char **argv, struct asked *asked)
{
	static const char *const actions[] = { "list", "watch", "review", "show", "approve", "deny",
					       "revoke" };
	const char *command = argv[0];
	int at = optind;

	if (strcmp(command, "approvals") != 0) {
		asked->what = command;
	} else if (at < argc) {
		for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
			if (strcmp(argv[at], actions[i]) == 0)
				asked->what = actions[i];
		if (strcmp(argv[at++], asked->what) != 0)
			return operator_usage("approvals: list, watch, review, show, approve, deny or revoke");
	}
	if (strcmp(asked->what, "list") != 0 && strcmp(asked->what, "watch") != 0 &&
	    strcmp(asked->what, "review") != 0) {
		if (at == argc)
			return operator_usage("which request? \"mcp-python approvals\" lists them");
		asked->id = argv[at++];
	}
	return at < argc ? operator_usage("there is an extra word") : 0;
}

static int
approvals_command(int argc, char **argv)
{
	static const struct option options[] = {
		{ "all", no_argument, NULL, 'a' },
		{ "watch", no_argument, NULL, 'w' },
		{ "json", no_argument, NULL, 'j' },
		{ "reason", required_argument, NULL, 'r' },
		{ "for-run", no_argument, NULL, 'f' },
		{ "admin-socket", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct asked asked = { .what = "list" };
	int option, code;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'a':
			asked.all = true;
			break;
		case 'w':
			asked.what = "watch";
			break;
		case 'j':
			asked.json = true;
			break;
		case 'r':
			asked.reason = optarg;
			break;
		case 'f':
			asked.for_run = true;
			break;
		case 's':
			asked.socket = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			return EX_USAGE;
		}
	}
	code = operator_read_words(argc, argv, &asked);
	if (code == 0 && asked.for_run && strcmp(asked.what, "approve") != 0)
		code = operator_usage("--for-run goes with approve");
	if (code)
		return code;
	return strcmp(asked.what, "review") == 0 ? approval_review(admin_path(asked.socket, NULL))
						 : operator_ask(&asked);
}

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "approvals", approvals_command }, { "approve", approvals_command },
	{ "deny", approvals_command }, { "audit", audit_command },
	{ "status", status_command }, { "metrics", metrics_command },
	{ "packages", packages_command }, { "top", top_command },
	{ "ps", ps_command }, { "stop", stop_command },
	{ "suspend", suspend_command }, { "resume", suspend_command },
	{ "check-host", check_host_command },
	{ "gateway", program_command }, { "interpreter", program_command },
	{ "kernel", program_command }, { "tools", tools_command },
	{ "usage", program_command }, { "web", program_command },
};

operator_run *
operator_command(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, name) == 0)
			return commands[i].run;
	return NULL;
}
