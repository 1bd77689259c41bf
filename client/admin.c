/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python's operators' commands.   Owns: a connection to the operators' socket.
 * Reads:   answers of the service, in which tenants' texts are hostile to a terminal. */
#include "client/admin.h"

#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/quote.h"
#include "client/exits.h"
#include "client/say.h"
#include "policy/shown.h"

#define LINE_MAX_BYTES 1024	/* of one text on a terminal */

int
admin_read_options(int argc, char **argv, enum admin_takes takes, int words_max, const char *help,
		   struct admin_options *options_r)
{
	static const struct option options[] = {
		[ADMIN_TAKES_SOCKET] = { "socket", required_argument, NULL, 's' },
		[ADMIN_TAKES_JSON] = { "json", no_argument, NULL, 'j' },
		[ADMIN_TAKES_NO_MORE] = { "admin-socket", required_argument, NULL, 'a' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	*options_r = (struct admin_options){ .json = false };
	while ((option = getopt_long(argc, argv, "", options + takes, NULL)) != -1) {
		switch (option) {
		case 's':
			options_r->socket = optarg;
			break;
		case 'j':
			options_r->json = true;
			break;
		case 'a':
			options_r->admin_socket = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return 1;
		default:
			return -EX_USAGE;
		}
	}
	options_r->word = argv + optind;
	options_r->n_words = argc - optind;
	if (options_r->n_words <= words_max)
		return 0;
	say("%s: there is an extra word", argv[0]);
	return -EX_USAGE;
}

/* The socket of the user's own service; NULL: there is none. */
static const char *
own_path(void)
{
	static char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int n = runtime && *runtime == '/'
		? snprintf(path, sizeof(path), "%s/" ADMIN_SOCKET_OWN, runtime) : -1;

	return n > 0 && n < (int)sizeof(path) && access(path, F_OK) == 0 ? path : NULL;
}

const char *
admin_path(const char *asked, bool *named_r)
{
	const char *path = asked ? asked : getenv("MCP_PYTHON_ADMIN_SOCKET");

	if (named_r)
		*named_r = path;
	if (!path)
		path = own_path();
	return path ? path : ADMIN_SOCKET;
}

FILE *
admin_connect(const char *path, bool quiet)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	FILE *stream;

	if (fd < 0 || strlen(path) >= sizeof(address.sun_path)) {
		say("%s: %s", path, fd < 0 ? strerror(errno) : "too long for the path of a socket");
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	strcpy(address.sun_path, path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		if (!quiet)
			say("%s: %s; %s", path, strerror(errno), errno == EACCES
			    ? "only operators may connect there"
			    : "mcp-pythond-admin.socket makes it, or the service for its [admin] "
			      "socket");
		close(fd);
		return NULL;
	}
	stream = fdopen(fd, "r");
	if (!stream) {
		say("%s: %s", path, strerror(errno));
		close(fd);
	}
	return stream;
}

bool
admin_send(FILE *stream, json_t *request)
{
	char *text = json_dumps(request, JSON_COMPACT);
	bool sent = text && dprintf(fileno(stream), "%s\n", text) > 0;

	json_decref(request);
	free(text);
	return sent;
}

json_t *
admin_read(FILE *stream)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t len = getline(&line, &size, stream);
	json_t *answer = len > 0 ? json_loadb(line, (size_t)len, 0, NULL) : NULL;

	free(line);
	return answer;
}

static json_t *
admin_ask(FILE *stream, json_t *request, int *code_r, char *text_r, size_t size)
{
	json_t *answer = admin_send(stream, request) ? admin_read(stream) : NULL;
	const char *error = admin_text(answer, "error");

	*code_r = 0;
	if (json_is_true(json_object_get(answer, "ok")))
		return answer;
	*code_r = *error ? EX_NOPERM : EX_UNAVAILABLE;
	/* A socket that serves MCP answers, too, but in another way. */
	snprintf(text_r, size, "%s", *error ? error
				     : answer ? "this is not the operators' socket of mcp-pythond"
					      : "the service does not answer");
	json_decref(answer);
	return NULL;
}

json_t *
admin_ask_for(FILE *stream, const char *what, int *code_r, char *text_r, size_t size)
{
	return admin_ask(stream, json_pack("{s:s}", "do", what), code_r, text_r, size);
}

json_t *
admin_ask_once(const char *path, json_t *request, int *code_r)
{
	FILE *stream = admin_connect(path, false);
	char text[1024];
	json_t *answer;

	if (!stream) {
		json_decref(request);
		*code_r = EX_UNAVAILABLE;
		return NULL;
	}
	answer = admin_ask(stream, request, code_r, text, sizeof(text));
	fclose(stream);
	if (!answer)
		say("%s", text);
	return answer;
}

void
admin_bound(FILE *stream, const struct timeval *most)
{
	setsockopt(fileno(stream), SOL_SOCKET, SO_RCVTIMEO, most, sizeof(*most));
}

const char *
admin_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

double
admin_number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

long
admin_count(const json_t *object, const char *key)
{
	return (long)json_integer_value(json_object_get(object, key));
}

const char *
admin_name(const char *tenant)
{
	const struct passwd *user = NULL;
	char *end;

	if (strncmp(tenant, "uid:", 4) == 0) {
		unsigned long uid = strtoul(tenant + 4, &end, 10);

		user = *end ? NULL : getpwuid((uid_t)uid);
	}
	return user ? user->pw_name : tenant;
}

const char *
admin_principal(const char *text, char who_r[ADMIN_WHO])
{
	const char *name = strncmp(text, "user:", 5) == 0 ? text + 5 : text;
	const struct passwd *user;

	if (strchr(name, ':'))
		return text;
	if (*name && strspn(name, "0123456789") == strlen(name)) {
		snprintf(who_r, ADMIN_WHO, "uid:%.20s", name);
		return who_r;
	}
	user = getpwnam(name);
	if (user)
		snprintf(who_r, ADMIN_WHO, "uid:%u", (unsigned int)user->pw_uid);
	return user ? who_r : NULL;
}

void
admin_print(FILE *to, const char *text)
{
	char line[LINE_MAX_BYTES];

	quote_line(line, sizeof(line), text, strlen(text));
	fputs(line, to);
}

void
admin_print_json(FILE *to, const json_t *value)
{
	char *text = shown_json(value, JSON_COMPACT);

	fprintf(to, "%s\n", text);
	free(text);
}
