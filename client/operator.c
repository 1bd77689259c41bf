/* Runs in: mcp-python approvals, approve and deny.   Owns: a connection to the operators'
 * socket. Whether somebody may is decided there, by who the kernel says they are.
 * Reads:   what tenants wrote, hostile to a terminal. */
#include "client/operator.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <jansson.h>

#include "client/exits.h"
#include "client/say.h"

#define ADMIN_SOCKET "/run/mcp-pythond/admin.sock"

static const char help[] =
	"Usage: mcp-python approvals [list|watch] [--all] [--json]\n"
	"       mcp-python approvals show ID\n"
	"       mcp-python approve ID\n"
	"       mcp-python deny ID [--reason TEXT]\n"
	"       mcp-python approvals approve|deny|revoke ID\n"
	"\n"
	"Shows what waits for an approval, and decides about it.\n"
	"\n"
	"  --all                 those too that are decided\n"
	"  --watch               the list again after each change\n"
	"  --json                as JSON\n"
	"  --reason TEXT         told to whoever asked\n"
	"  --admin-socket PATH   the service's [admin] socket; otherwise\n"
	"                        $MCP_PYTHON_ADMIN_SOCKET or " ADMIN_SOCKET "\n"
	"  --help                this text\n";

struct asked {
	const char *what, *id, *reason, *socket;
	bool all, json;
};

bool
operator_is_command(const char *name)
{
	return strcmp(name, "approvals") == 0 || strcmp(name, "approve") == 0 ||
	       strcmp(name, "deny") == 0 || strcmp(name, "audit") == 0;
}

static int
usage(const char *text)
{
	say("%s", text);
	return EX_USAGE;
}

static FILE *
connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	FILE *stream;

	if (!path)
		path = getenv("MCP_PYTHON_ADMIN_SOCKET");
	if (!path)
		path = ADMIN_SOCKET;
	if (fd < 0 || strlen(path) >= sizeof(address.sun_path)) {
		say("%s: cannot be connected to", path);
		return NULL;
	}
	strcpy(address.sun_path, path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		say("%s: %s; the service listens there if its [admin] socket says so", path,
		    strerror(errno));
		close(fd);
		return NULL;
	}
	stream = fdopen(fd, "r+");
	if (!stream)
		close(fd);
	return stream;
}

/* ---- showing ---- */

/* A tenant's text: nothing in it may speak to the terminal. */
static void
print_text(const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '\n' || c == '\t' || (c >= ' ' && c != 0x7f && c < 0x80))
			putchar(c);
		else
			printf("\\x%02x", c);
	}
}

static const char *
text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static void
print_one(const json_t *approval)
{
	const json_t *items = json_object_get(approval, "items");
	size_t n = json_array_size(items);

	printf("%s  %-8s  ", text_of(approval, "id"), text_of(approval, "state"));
	print_text(text_of(approval, "tenant"));
	printf("  ");
	print_text(n ? json_string_value(json_array_get(items, 0)) : "");
	if (n > 1)
		printf(" and %zu more", n - 1);
	putchar('\n');
}

static void
print_list(const json_t *list)
{
	if (json_array_size(list) == 0)
		puts("Nothing waits for an approval.");
	for (size_t i = 0; i < json_array_size(list); i++)
		print_one(json_array_get(list, i));
}

static void
print_all(const json_t *approval)
{
	const json_t *shown = json_object_get(approval, "shown");
	const char *script = json_string_value(json_object_get(shown, "script"));
	char *text = json_dumps(shown, JSON_INDENT(2) | JSON_SORT_KEYS);
	const json_t *items = json_object_get(approval, "items");

	print_one(approval);
	if (*text_of(approval, "reason")) {
		printf("reason: ");
		print_text(text_of(approval, "reason"));
		putchar('\n');
	}
	for (size_t i = 0; i < json_array_size(items); i++) {
		printf("item: ");
		print_text(json_string_value(json_array_get(items, i)));
		putchar('\n');
	}
	if (script && json_object_size(shown) == 1)
		print_text(script);
	else if (text)
		print_text(text);
	putchar('\n');
	free(text);
}

static void
print_answer(const struct asked *asked, const json_t *answer)
{
	const json_t *list = json_object_get(answer, "approvals");
	const json_t *one = json_object_get(answer, "approval");

	if (asked->json) {
		json_dumpf(list ? list : one ? one : answer, stdout, JSON_COMPACT);
		putchar('\n');
	} else if (list) {
		print_list(list);
	} else if (one) {
		print_all(one);
	}
	fflush(stdout);
}

/* ---- asking ---- */

static int
read_answer(const struct asked *asked, FILE *stream)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t len = getline(&line, &size, stream);
	json_t *answer = len > 0 ? json_loadb(line, (size_t)len, 0, NULL) : NULL;
	int code = 0;

	free(line);
	if (!answer) {
		say("the service does not answer");
		return EX_UNAVAILABLE;
	}
	if (json_is_true(json_object_get(answer, "ok"))) {
		print_answer(asked, answer);
	} else {
		say("%s", text_of(answer, "error"));
		code = EX_NOPERM;
	}
	json_decref(answer);
	return code;
}

static int
ask(const struct asked *asked)
{
	FILE *stream = connect_to(asked->socket);
	json_t *request;
	int code;

	if (!stream)
		return EX_UNAVAILABLE;
	request = json_pack("{s:s,s:b}", "do", asked->what, "all", asked->all);
	if (asked->id)
		json_object_set_new(request, "id", json_string(asked->id));
	if (asked->reason)
		json_object_set_new(request, "reason", json_string(asked->reason));
	json_dumpf(request, stream, JSON_COMPACT);
	json_decref(request);
	fputc('\n', stream);
	fflush(stream);
	do
		code = read_answer(asked, stream);
	while (code == 0 && strcmp(asked->what, "watch") == 0);
	fclose(stream);
	return code;
}

/* ---- arguments ---- */

static int
read_words(int argc, char **argv, struct asked *asked)
{
	static const char *const actions[] = { "list", "watch", "show", "approve", "deny", "revoke" };
	const char *command = argv[0];
	int at = optind;

	if (strcmp(command, "approvals") != 0) {
		asked->what = command;
	} else if (at < argc) {
		for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
			if (strcmp(argv[at], actions[i]) == 0)
				asked->what = actions[i];
		if (strcmp(argv[at++], asked->what) != 0)
			return usage("approvals: list, watch, show, approve, deny or revoke");
	}
	if (strcmp(asked->what, "list") != 0 && strcmp(asked->what, "watch") != 0) {
		if (at == argc)
			return usage("which request? \"mcp-python approvals\" lists them");
		asked->id = argv[at++];
	}
	return at < argc ? usage("there is a word too many") : 0;
}

int
operator_command(int argc, char **argv)
{
	static const struct option options[] = {
		{ "all", no_argument, NULL, 'a' },
		{ "watch", no_argument, NULL, 'w' },
		{ "json", no_argument, NULL, 'j' },
		{ "reason", required_argument, NULL, 'r' },
		{ "admin-socket", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct asked asked = { .what = "list" };
	int option, code;

	if (strcmp(argv[0], "audit") == 0)
		return audit_command(argc, argv);
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
	code = read_words(argc, argv, &asked);
	return code ? code : ask(&asked);
}
