/* SPDX-License-Identifier: Apache-2.0 */
/* The operators' socket, for commands: a request is one JSON line, and so is its answer. */
#ifndef CLIENT_ADMIN_H
#define CLIENT_ADMIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/time.h>

#include <jansson.h>

#define ADMIN_SOCKET "/run/mcp-pythond/admin.sock"
#define ADMIN_SOCKET_OWN "mcp-pythond-admin.sock"	/* in $XDG_RUNTIME_DIR */

/* The last lines of the options in a help text. */
#define ADMIN_SOCKET_HELP \
	"  --admin-socket PATH   the operators' socket; otherwise $MCP_PYTHON_ADMIN_SOCKET,\n" \
	"                        $XDG_RUNTIME_DIR/" ADMIN_SOCKET_OWN ", or\n" \
	"                        " ADMIN_SOCKET "\n"

/* The options that a command has in addition to --admin-socket and --help. In the order of the
 * constants: --socket and --json; only --json; none. */
enum admin_takes { ADMIN_TAKES_SOCKET, ADMIN_TAKES_JSON, ADMIN_TAKES_NO_MORE };

struct admin_options {
	const char *socket;		/* --socket; NULL: not given */
	bool json;
	const char *admin_socket;	/* --admin-socket; NULL: not given */
	char **word;			/* the words after the options, followed by NULL */
	int n_words;
};

/* Reads the options of a command. words_max: the most words after them; INT_MAX: any number. 0; 1:
 * the help was shown; -EX_USAGE: the arguments are wrong, and the reason was printed. */
int admin_read_options(int argc, char **argv, enum admin_takes takes, int words_max,
		       const char *help, struct admin_options *options_r);

/* The path of the socket: asked, if it is not NULL; otherwise $MCP_PYTHON_ADMIN_SOCKET; otherwise
 * that of the user's own service, if it exists; otherwise ADMIN_SOCKET. *named_r (named_r may be
 * NULL): the path was given by asked or by the variable. */
const char *admin_path(const char *asked, bool *named_r);

/* Connects. quiet: prints nothing if there is no listener. NULL: the reason was printed. */
FILE *admin_connect(const char *path, bool quiet);

/* Sends a request, which is taken. False: it could not be sent. */
bool admin_send(FILE *stream, json_t *request);

/* Reads one answer; NULL: the connection has ended, or the line was not JSON. */
json_t *admin_read(FILE *stream);

/* Sends a request without arguments, {"do": what}, and reads the answer. NULL: an error; *code_r is
 * the exit code, and text_r the reason. */
json_t *admin_ask_for(FILE *stream, const char *what, int *code_r, char *text_r, size_t size);

/* Connects, sends a request, which is taken, reads the answer, and ends the connection. NULL: the
 * reason was printed, and *code_r is the exit code. */
json_t *admin_ask_once(const char *path, json_t *request, int *code_r);

/* Bounds the waits of admin_read: if nothing arrives for this time, it returns NULL. */
void admin_bound(FILE *stream, const struct timeval *most);

/* A member's text; "" when there is none. */
const char *admin_text(const json_t *object, const char *key);

/* A member's value; 0 when there is none. */
double admin_number(const json_t *object, const char *key);
long admin_count(const json_t *object, const char *key);

/* The name of a tenant for people: the login name of a uid ("ada" for "uid:1000"); another
 * principal unchanged. Valid until the next call. */
const char *admin_name(const char *tenant);

/* The tenant that a user means by "ada", "user:ada" or "1000", written into who_r; another principal
 * unchanged. NULL: there is no such user. */
#define ADMIN_WHO 32
const char *admin_principal(const char *text, char who_r[ADMIN_WHO]);

/* Prints a stranger's text within a line (quote_line), cut when it is very long. */
void admin_print(FILE *to, const char *text);

/* Prints a value as one line of JSON in ASCII. */
void admin_print_json(FILE *to, const json_t *value);

#endif
