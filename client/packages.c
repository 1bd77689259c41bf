/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python packages.   Owns: a connection to the operators' socket.
 * Reads:   names of packages and tenants; the table quotes them. */
#include "client/commands.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "base/xalloc.h"
#include "client/admin.h"
#include "client/exits.h"
#include "client/say.h"
#include "client/table.h"

#define SHOWN 12	/* bytes of a set's name */
#define WIDTH 4096
#define ROWS 4096

static const char help[] =
	"Usage: mcp-python packages [list] [--json]\n"
	"       mcp-python packages remove SET [WHO]\n"
	"\n"
	"Lists the sets of packages that are installed, with their sizes and with who has\n"
	"them, or removes one: the beginning of its name is enough if no other begins so.\n"
	"You see and remove your own; operators see all, and remove it for all or for WHO, a\n"
	"user's name or a tenant such as token:ci. A set that nobody has goes from the disk,\n"
	"unless it is in use. Approvals stay: see \"mcp-python approvals revoke\".\n"
	"\n"
	"  --json                as JSON\n"
	ADMIN_SOCKET_HELP
	"  --help                this text\n";

/* The texts with commas between them; malloc'd. key: of the member with the text; NULL: each is a
 * text itself. */
static char *
joined(const json_t *list, const char *key)
{
	char *text = NULL;
	const json_t *one;
	size_t i, len;
	FILE *out = xalloc_check(open_memstream(&text, &len));

	json_array_foreach(list, i, one) {
		const char *word = key ? admin_text(one, key) : json_string_value(one);

		fprintf(out, "%s%s", i ? ", " : "", key && *word ? admin_name(word) : *word ? word : "?");
	}
	fclose(out);
	return text;
}

static void
print_sets(const json_t *answer)
{
	static const char *const titles[] = { "SET", ">SIZE", "USED", "WHO", "PACKAGES", NULL };
	const json_t *list = json_object_get(answer, "sets"), *one;
	struct table *table;
	size_t i;

	if (json_array_size(list) == 0) {
		puts("No set of packages is installed.");
		return;
	}
	table = table_new(titles);
	json_array_foreach(list, i, one) {
		char *who = joined(json_object_get(one, "tenants"), "tenant");
		char *packages = joined(json_object_get(one, "packages"), NULL);
		time_t used = (time_t)admin_number(one, "used");
		char day[16] = "";
		struct tm tm;

		if (localtime_r(&used, &tm))
			strftime(day, sizeof(day), "%Y-%m-%d", &tm);
		table_add(table, "%.*s", SHOWN, admin_text(one, "set"));
		table_add(table, "%s", figure_bytes((uint64_t)admin_number(one, "bytes")));
		table_add(table, "%s", day);
		table_add(table, "%s", who);
		table_add(table, "%s", packages);
		free(who);
		free(packages);
	}
	table_print(table, stdout, ROWS, WIDTH, "", "");
	table_free(table);
	if ((size_t)admin_count(answer, "total") > json_array_size(list))
		printf("%zu of %ld sets are shown.\n", json_array_size(list), admin_count(answer, "total"));
}

static int
packages_usage(const char *text)
{
	say("packages: %s", text);
	return EX_USAGE;
}

int
packages_command(int argc, char **argv)
{
	struct admin_options options;
	char who[ADMIN_WHO];
	const char *tenant = NULL;
	json_t *answer, *request;
	bool removes;
	int code, r = admin_read_options(argc, argv, ADMIN_TAKES_JSON, 3, help, &options);

	if (r != 0)
		return r > 0 ? 0 : -r;
	removes = options.n_words > 0 && strcmp(options.word[0], "remove") == 0;
	if (!removes && (options.n_words > 1 ||
			 (options.n_words == 1 && strcmp(options.word[0], "list") != 0)))
		return packages_usage("list or remove SET");
	if (removes && options.n_words == 1)
		return packages_usage("which set? \"mcp-python packages\" lists them");
	if (options.n_words == 3 && !(tenant = admin_principal(options.word[2], who)))
		return packages_usage("there is no such user");
	request = removes ? json_pack("{s:s,s:s,s:s*}", "do", "remove-packages", "set",
				      options.word[1], "tenant", tenant)
			  : json_pack("{s:s}", "do", "packages");
	answer = admin_ask_once(admin_path(options.admin_socket, NULL), request, &code);
	if (!answer)
		return code;
	if (options.json)
		admin_print_json(stdout, removes ? answer : json_object_get(answer, "sets"));
	else if (!removes)
		print_sets(answer);
	else
		say("removed %.*s%s", SHOWN, admin_text(answer, "removed"),
		    json_is_true(json_object_get(answer, "is_left")) ?
		    "; it stays on the disk, because it is in use or others have it" : "");
	json_decref(answer);
	return 0;
}
