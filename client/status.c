/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python status and metrics.   Owns: one request and its answer.
 * The operators' socket answers. Without it a user's own status comes from the MCP socket, by
 * the tool check_environment. */
#include "client/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "client/admin.h"
#include "client/call.h"
#include "client/endpoint.h"
#include "client/exits.h"
#include "client/reply.h"
#include "client/say.h"
#include "client/table.h"

#define WIDTH 4096	/* columns: lines are not cut */
#define ROWS 4096

static const char status_help[] =
	"Usage: mcp-python status [--json] [--admin-socket PATH]\n"
	"\n"
	"Shows the state of the service: workers, tenants, sessions, approvals, audit log.\n"
	"A user who is not in [admin] operators sees only their own data.\n"
	"\n"
	"  --json                as JSON\n"
	ADMIN_SOCKET_HELP
	"  --socket PATH         where MCP is served, for when there is none\n"
	"  --help                this text\n";

static const char metrics_help[] =
	"Usage: mcp-python metrics [--admin-socket PATH]\n"
	"\n"
	"Prints the service's metrics as OpenMetrics text. For operators.\n"
	"\n"
	"  --admin-socket PATH   as for status\n"
	"  --help                this text\n";

/* ---- showing ---- */

static const char *
bytes(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) ? figure_bytes((uint64_t)json_integer_value(value)) : "-";
}

/* The text of a member that an answer may lack. */
static const char *
known(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) ? figure_count(json_integer_value(value)) : "-";
}

static const char *
seconds(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? figure_time(json_number_value(value)) : "-";
}

static void
print_named(const char *name, const char *text)
{
	printf("%-13s", name);
	admin_print(stdout, text);
	putchar('\n');
}

/* Only what is away is printed. */
static void
print_helpers(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);

		if (strcmp(admin_text(one, "state"), "away") == 0)
			printf("helper       %s: AWAY: %s\n", admin_text(one, "helper"),
			       admin_text(one, "trouble"));
	}
}

static void
print_alarms(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);

		printf("ALARM        %s: %s %ld in ten minutes, usually %ld; %s ago\n",
		       admin_text(one, "tenant"), admin_text(one, "pattern"),
		       admin_count(one, "count"), admin_count(one, "usual"),
		       figure_time((double)admin_count(one, "seconds_ago")));
	}
}

static void
print_governance(const json_t *answer)
{
	const json_t *audit = json_object_get(answer, "audit");
	const json_t *reload = json_object_get(answer, "reload");
	const json_t *egress = json_object_get(answer, "egress");

	printf("approvals    %ld pending\n", admin_count(json_object_get(answer, "approvals"), "pending"));
	printf("audit log    %s, %ld records, %ld lost, %ld left out; %ld MiB, most %ld MiB, "
	       "free %ld MiB\n",
	       json_is_true(json_object_get(audit, "failing")) ? "FAILING" : "ok",
	       admin_count(audit, "written"), admin_count(audit, "lost"), admin_count(audit, "left_out"),
	       admin_count(audit, "bytes") >> 20, admin_count(audit, "most_bytes") >> 20,
	       admin_count(audit, "free_bytes") >> 20);
	printf("egress       %s, %ld executions may go out\n",
	       !json_is_true(json_object_get(egress, "installed")) ? "not installed"
	       : strcmp(admin_text(egress, "state"), "down") == 0 ? "not in use"
								  : admin_text(egress, "state"),
	       admin_count(egress, "executions"));
	if (*admin_text(egress, "trouble"))
		print_named("", admin_text(egress, "trouble"));
	if (!*admin_text(reload, "last")) {
		print_named("reload", "none since the start");
		return;
	}
	printf("reload       %s at %s\n",
	       json_is_true(json_object_get(reload, "done")) ? "done" : "FAILED",
	       admin_text(reload, "last"));
	if (*admin_text(reload, "text"))
		print_named("", admin_text(reload, "text"));
}

static void
print_summary(const json_t *answer, const char *path)
{
	const json_t *service = json_object_get(answer, "service");
	const json_t *clients = json_object_get(answer, "clients");
	const json_t *executions = json_object_get(answer, "executions");
	const json_t *jobs = json_object_get(answer, "jobs");

	if (service)
		printf("%s %s, up %s\n", admin_text(service, "name"),
		       admin_text(service, "version"),
		       figure_time(admin_number(service, "uptime_seconds")));
	if (path)
		print_named("socket", path);
	print_named("enforcement", admin_text(json_object_get(answer, "enforcement"), "summary"));
	if (!executions)
		return;
	printf("clients      %ld connected, %ld over HTTP with %ld sessions\n",
	       admin_count(clients, "connections"), admin_count(clients, "http_connections"),
	       admin_count(clients, "http_sessions"));
	printf("executions   %ld running, %ld queued; %ld ended, %ld by a limit, %ld refused\n",
	       admin_count(executions, "running"), admin_count(executions, "queued"),
	       admin_count(executions, "ended"), admin_count(executions, "limits_hit"),
	       admin_count(executions, "refused"));
	printf("jobs         %ld running, %ld kept for their answer\n", admin_count(jobs, "running"),
	       admin_count(jobs, "kept"));
	print_helpers(json_object_get(answer, "helpers"));
	print_alarms(json_object_get(answer, "alarms"));
	print_governance(answer);
}

/* Prints a line for each member of the list that has a "trouble". name: the key under which a
 * member has its name. */
static void
print_troubles(const json_t *list, const char *name)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);

		if (*admin_text(one, "trouble")) {
			printf("%s: ", admin_text(one, name));
			admin_print(stdout, admin_text(one, "trouble"));
			putchar('\n');
		}
	}
}

static void
print_unlearned(const json_t *profile, const char *reason)
{
	printf("%s: not learned: ", admin_text(profile, "profile"));
	admin_print(stdout, reason);
	putchar('\n');
}

/* Prints what the learned zygote of each profile has imported. */
static void
print_learned(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i), *names = json_object_get(one, "learned");
		const json_t *others = json_object_get(one, "unlearned");
		long hits = admin_count(one, "learned_hits"), misses = admin_count(one, "learned_misses");

		if (hits + misses == 0)
			continue;
		printf("%s: learned", admin_text(one, "profile"));
		for (size_t k = 0; k < json_array_size(names); k++)
			printf(" %s", json_string_value(json_array_get(names, k)));
		printf("%s; %ld imports found it so, %ld did not\n",
		       json_array_size(names) > 0 ? "" : " nothing yet", hits, misses);
		for (size_t k = 0; k < json_array_size(others); k++)
			print_unlearned(one, json_string_value(json_array_get(others, k)));
	}
}

static void
print_profiles(const json_t *list)
{
	static const char *const titles[] = { "PROFILE", "ZYGOTE", ">WARM", ">STARTING", ">BUSY",
					      ">SESSIONS", ">SPENT", ">WAITING", NULL };
	struct table *table = table_new(titles);

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);

		table_add(table, "%s", admin_text(one, "profile"));
		table_add(table, "%s", admin_text(one, "zygote"));
		table_add(table, "%ld", admin_count(one, "warm"));
		table_add(table, "%ld", admin_count(one, "starting"));
		table_add(table, "%ld", admin_count(one, "busy"));
		table_add(table, "%ld", admin_count(one, "sessions"));
		table_add(table, "%ld", admin_count(one, "spent") + admin_count(one, "ending"));
		table_add(table, "%ld", admin_count(one, "waiting"));
	}
	putchar('\n');
	table_print(table, stdout, ROWS, WIDTH, "", "");
	table_free(table);
	print_troubles(list, "profile");
	print_learned(list);
}

/* Prints what is imported in advance for a tenant. */
static void
print_recipes(const json_t *tenant)
{
	const json_t *list = json_object_get(tenant, "ready");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i), *modules = json_object_get(one, "modules");

		printf("packages of %s:", admin_name(admin_text(tenant, "tenant")));
		for (size_t k = 0; k < json_array_size(modules); k++) {
			putchar(' ');
			admin_print(stdout, json_string_value(json_array_get(modules, k)));
		}
		printf("%s: %s, made ready %ld times\n",
		       json_is_true(json_object_get(one, "session")) ? " (session)" : "",
		       admin_text(one, "state"), admin_count(one, "made"));
	}
}

/* Prints how often workers were ready for calls with sets of packages. */
static void
print_ready(const json_t *ready, const json_t *tenants)
{
	long hits = admin_count(ready, "hits"), misses = admin_count(ready, "misses");
	long refused = admin_count(ready, "refused");

	if (hits + misses + refused > 0)
		printf("packages: %ld workers are ready; %ld calls had one, %ld did not; %ld could "
		       "not be made\n", admin_count(ready, "workers"), hits, misses, refused);
	for (size_t i = 0; i < json_array_size(tenants); i++)
		print_recipes(json_array_get(tenants, i));
}

static void
print_tool_servers(const json_t *list)
{
	static const char *const titles[] = { "TOOL SERVER", "STATE", "REVISION", ">TOOLS",
					      ">LEFT OUT", NULL };
	struct table *table;

	if (json_array_size(list) == 0)
		return;
	table = table_new(titles);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);

		table_add(table, "%s", admin_text(one, "server"));
		table_add(table, "%s", admin_text(one, "state"));
		table_add(table, "%s", admin_text(one, "revision"));
		table_add(table, "%ld", admin_count(one, "tools"));
		table_add(table, "%ld", admin_count(one, "left_out"));
	}
	putchar('\n');
	table_print(table, stdout, ROWS, WIDTH, "", "");
	table_free(table);
	print_troubles(list, "server");
}

static void
status_print_tenants(const json_t *list)
{
	static const char *const titles[] = { "TENANT", ">RUNNING", ">QUEUED", ">SESSIONS", ">JOBS",
					      ">WORKERS", ">CPU", ">MEMORY", ">EXECUTIONS",
					      ">LIMITS", NULL };
	struct table *table = table_new(titles);

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);

		table_add(table, "%s", admin_name(admin_text(one, "tenant")));
		table_add(table, "%ld/%ld", admin_count(one, "running"), admin_count(one, "running_most"));
		table_add(table, "%ld/%ld", admin_count(one, "queued"), admin_count(one, "queued_most"));
		table_add(table, "%ld", admin_count(one, "sessions"));
		table_add(table, "%s", known(one, "jobs"));
		table_add(table, "%s", known(one, "workers"));
		table_add(table, "%s", seconds(one, "cpu_seconds"));
		table_add(table, "%s", bytes(one, "memory_bytes"));
		table_add(table, "%s", known(one, "executions"));
		table_add(table, "%s", known(one, "limits_hit"));
	}
	putchar('\n');
	table_print(table, stdout, ROWS, WIDTH, "", "");
	table_free(table);
}

static void
print_sessions(const json_t *list)
{
	static const char *const titles[] = { "SESSION", "TENANT", "PROFILE", "STATE", ">CELLS",
					      ">AGE", ">IDLE", ">MEMORY", ">OF", NULL };
	struct table *table;

	if (json_array_size(list) == 0)
		return;
	table = table_new(titles);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);

		table_add(table, "%s", admin_text(one, "session"));
		table_add(table, "%s", admin_name(admin_text(one, "tenant")));
		table_add(table, "%s", admin_text(one, "profile"));
		table_add(table, "%s%s", admin_text(one, "state"),
			  json_is_true(json_object_get(one, "kept")) ? ", kept" : "");
		table_add(table, "%ld", admin_count(one, "cells"));
		table_add(table, "%s", seconds(one, "age_seconds"));
		table_add(table, "%s", seconds(one, "idle_seconds"));
		table_add(table, "%s", bytes(one, "memory_bytes"));
		table_add(table, "%s", bytes(one, "memory_limit_bytes"));
	}
	putchar('\n');
	table_print(table, stdout, ROWS, WIDTH, "", "");
	table_free(table);
}

/* path: the operators' socket that answered, by which a user's own service and the system's are
 * told apart; NULL: none. */
static int
status_show(const struct admin_options *options, const json_t *answer, const char *path)
{
	if (options->json) {
		admin_print_json(stdout, answer);
	} else {
		print_summary(answer, path);
		if (json_object_get(answer, "profiles"))
			print_profiles(json_object_get(answer, "profiles"));
		print_ready(json_object_get(answer, "ready"),
			    json_object_get(answer, "tenants"));
		print_tool_servers(json_object_get(answer, "tool_servers"));
		status_print_tenants(json_object_get(answer, "tenants"));
		print_sessions(json_object_get(answer, "sessions"));
	}
	return 0;
}

/* ---- the user's own status, without the operators' socket ---- */

/* Converts the answer of check_environment into the form of the operators' socket. */
static json_t *
status_make_answer(const json_t *environment)
{
	const json_t *yours = json_object_get(environment, "yours");
	const json_t *theirs = json_object_get(environment, "repl_sessions");
	json_t *sessions = json_array(), *tenant;
	char self[32];

	snprintf(self, sizeof(self), "uid:%u", (unsigned int)getuid());
	for (size_t i = 0; i < json_array_size(theirs); i++) {
		json_t *one = json_copy(json_array_get(theirs, i));
		double mb = admin_number(one, "memory_mb");

		json_object_set_new(one, "tenant", json_string(self));
		json_object_set_new(one, "memory_limit_bytes",
				    json_integer((json_int_t)(mb * 1024 * 1024)));
		json_array_append_new(sessions, one);
	}
	tenant = json_pack("{s:s,s:O*,s:O*,s:O*,s:O*,s:i}", "tenant", self, "running",
			   json_object_get(yours, "running"), "running_most",
			   json_object_get(yours, "running_most"), "queued",
			   json_object_get(yours, "queued"), "queued_most",
			   json_object_get(yours, "queued_most"), "sessions",
			   (int)json_array_size(theirs));
	return json_pack("{s:b,s:s,s:O*,s:[o],s:o}", "ok", 1, "scope", "self", "enforcement",
			 json_object_get(environment, "enforcement"), "tenants", tenant,
			 "sessions", sessions);
}

static int
ask_as_client(const struct admin_options *options)
{
	struct call_channel channel = { .fd = endpoint_connect(options->socket),
					.takes_structured = true };
	struct reply reply;
	json_t *answer;
	int code, r;

	if (channel.fd < 0)
		return EX_UNAVAILABLE;
	call_send(&channel, call_message(&channel, 1, "check_environment", json_object(), false));
	r = call_wait(&channel, 1, NULL, NULL, &reply);
	if (r < 0) {
		code = call_failed(r);
	} else if (reply.kind != REPLY_STRUCTURED ||
		   !json_object_get(reply.outcome, "enforcement")) {
		say("the service has no tool check_environment for you, and no operators' socket");
		code = EX_NOPERM;
		reply_free(&reply);
	} else {
		answer = status_make_answer(reply.outcome);
		code = status_show(options, answer, NULL);
		json_decref(answer);
		reply_free(&reply);
	}
	close(channel.fd);
	call_channel_done(&channel);
	return code;
}

/* ---- commands ---- */

int
status_command(int argc, char **argv)
{
	struct admin_options options;
	json_t *answer;
	const char *path;
	char text[256];
	FILE *stream;
	bool named;
	int code, r = admin_read_options(argc, argv, ADMIN_TAKES_SOCKET, 0, status_help, &options);

	if (r != 0)
		return r > 0 ? 0 : -r;
	path = admin_path(options.admin_socket, &named);
	stream = options.socket && !named ? NULL : admin_connect(path, !named);
	if (!stream)
		return named ? EX_UNAVAILABLE : ask_as_client(&options);
	answer = admin_ask_for(stream, "status", &code, text, sizeof(text));
	if (answer)
		code = status_show(&options, answer, path);
	else
		say("%s", text);
	json_decref(answer);
	fclose(stream);
	return code;
}

int
metrics_command(int argc, char **argv)
{
	struct admin_options options;
	json_t *answer;
	int code, r = admin_read_options(argc, argv, ADMIN_TAKES_NO_MORE, 0, metrics_help,
					 &options);

	if (r != 0)
		return r > 0 ? 0 : -r;
	answer = admin_ask_once(admin_path(options.admin_socket, NULL),
				json_pack("{s:s}", "do", "metrics"), &code);
	if (!answer)
		return code;
	fputs(admin_text(answer, "metrics"), stdout);
	json_decref(answer);
	return 0;
}
