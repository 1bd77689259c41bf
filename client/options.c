/* Runs in: mcp-python, first.   Owns: nothing.
 * One row per option; the help text below and the manual page doc/man/mcp-python.1 list the same
 * options. */
#include "client/options.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/tokens.h"

#define NAME_RULE                                                                      \
	"letters, digits, \"_\", \"-\", \".\" and \"@\", at most 64, are needed"

enum kind { FLAG, TEXT, SECONDS, COUNT, NAME, SPAN };

#define CONNECT (1u << COMMAND_CONNECT)
#define RUN (1u << COMMAND_RUN)
#define REPL (1u << COMMAND_REPL)
#define TOKEN (1u << COMMAND_TOKEN)

#define DAY_S (24 * 3600L)
#define SPAN_MAX_S (3650 * DAY_S)

static const struct option_row {
	const char *name, *value;	/* value: its name in the help */
	enum kind kind;
	unsigned int commands;
	size_t member;
} rows[] = {
	{ "--socket",  "PATH",    TEXT,    CONNECT | RUN | REPL, offsetof(struct options, socket) },
	{ "--timeout", "SECONDS", SECONDS, RUN | REPL, offsetof(struct options, timeout_seconds) },
	{ "--memory",  "MB",      COUNT,   RUN | REPL, offsetof(struct options, memory_mb) },
	{ "--cpu",     "SECONDS", SECONDS, RUN | REPL, offsetof(struct options, cpu_seconds) },
	{ "--pids",    "N",       COUNT,   RUN | REPL, offsetof(struct options, pids) },
	{ "--profile", "NAME",    TEXT,    RUN | REPL | TOKEN, offsetof(struct options, profile) },
	{ "--session", "HANDLE",  TEXT,    REPL, offsetof(struct options, session) },
	{ "--keep",    NULL,      FLAG,    REPL, offsetof(struct options, keep) },
	{ "--save",    "DIR",     TEXT,    RUN, offsetof(struct options, save) },
	{ "--stdin",   NULL,      FLAG,    RUN, offsetof(struct options, pass_stdin) },
	{ "--json",    NULL,      FLAG,    RUN | TOKEN, offsetof(struct options, json) },
	{ "--file",    "PATH",    TEXT,    TOKEN, offsetof(struct options, token_file) },
	{ "--tenant",  "NAME",    NAME,    TOKEN, offsetof(struct options, tenant) },
	{ "--expires", "TIME",    SPAN,    TOKEN, offsetof(struct options, expires_seconds) },
};

static const struct command_row {
	const char *name;
	enum command command;
} commands[] = {
	{ "connect", COMMAND_CONNECT },
	{ "run",     COMMAND_RUN },
	{ "repl",    COMMAND_REPL },
	{ "token",   COMMAND_TOKEN },
	{ "help",    COMMAND_HELP },
	{ "version", COMMAND_VERSION },
};

#define N(array) (sizeof(array) / sizeof(array)[0])

const char *
options_help(enum command about)
{
	switch (about) {
	case COMMAND_CONNECT:
		return "Usage: mcp-python connect [--socket PATH]\n"
		       "\n"
		       "Carries MCP between standard input and output and the service: "
		       "the command\n"
		       "that an MCP client starts. Ends when the service closes the "
		       "connection.\n"
		       "\n"
		       "  --socket PATH   where the service listens; otherwise "
		       "$MCP_PYTHON_SOCKET,\n"
		       "                  $XDG_RUNTIME_DIR/mcp-pythond.sock or\n"
		       "                  /run/mcp-pythond/mcp.sock, the first one "
		       "that answers\n"
		       "  --help          this text\n";
	case COMMAND_RUN:
		return "Usage: mcp-python run [OPTIONS] FILE [-- ARGS...]\n"
		       "\n"
		       "Runs a Python file (\"-\": from standard input) in a jail of "
		       "its own, shows its\n"
		       "output as it comes and ends with its exit code. On a terminal "
		       "its input() asks\n"
		       "you, where the service lets it, behind \"script>\"; give no "
		       "passwords.\n"
		       "\n"
		       "  --timeout SECONDS   wall clock; 124 is the exit code when it "
		       "runs out\n"
		       "  --cpu SECONDS       processor time of all its processes; "
		       "152\n"
		       "  --memory MB         memory of all its processes, files "
		       "included; 137\n"
		       "  --pids N            processes and threads at once\n"
		       "  --profile NAME      one that the service's configuration "
		       "has\n"
		       "  --save DIR          write pictures that were shown and files "
		       "that were left\n"
		       "                      there; overwrites nothing\n"
		       "  --stdin             give this command's standard input to "
		       "the script\n"
		       "  --json              print the whole answer as JSON instead "
		       "of the output\n"
		       "  --socket PATH       where the service listens, as in "
		       "\"connect --help\"\n"
		       "  --help              this text\n"
		       "\n"
		       "Other exit codes: 153 too much output or disk used, 64 wrong "
		       "usage or refused\n"
		       "by the service, 65 not UTF-8, 66 no such file, 69 no service, "
		       "70 the jail\n"
		       "failed, 75 try again later, 76 not understood, 77 denied.\n";
	case COMMAND_REPL:
		return "Usage: mcp-python repl [OPTIONS]\n"
		       "\n"
		       "Python, a cell at a time, in a jail that keeps its state: from the "
		       "terminal with\n"
		       "editing and history, or from a pipe. Ctrl-C cancels the cell that "
		       "runs, Ctrl-D\n"
		       "ends. After a time-out, a crash or a limit the state is as before "
		       "the cell.\n"
		       "input() asks as in \"run\".\n"
		       "\n"
		       "  --session HANDLE    go on in this session, and leave it there at "
		       "the end\n"
		       "  --keep              leave a new one there, too, and say its "
		       "handle\n"
		       "  --timeout SECONDS   wall clock of each cell\n"
		       "  --cpu SECONDS       processor time of each cell\n"
		       "  --memory MB         memory of the whole session\n"
		       "  --pids N            processes and threads at once\n"
		       "  --profile NAME      one that the service's configuration "
		       "has\n"
		       "  --socket PATH       where the service listens, as in "
		       "\"connect --help\"\n"
		       "  --help              this text\n"
		       "\n"
		       "Exit code: that of sys.exit(); from a pipe 1 when a cell failed; 130 "
		       "after Ctrl-C\n"
		       "there; otherwise as \"run --help\" says.\n";
	case COMMAND_TOKEN:
		return "Usage: mcp-python token add NAME [--tenant NAME] [--expires TIME]\n"
		       "                            [--profile NAME]\n"
		       "       mcp-python token list [--json]\n"
		       "       mcp-python token revoke ID\n"
		       "\n"
		       "Keeps the tokens that HTTP clients of the service show. A new token is "
		       "printed\n"
		       "once and stored nowhere; its ID is what stands between its first two "
		       "\"_\".\n"
		       "The service follows the file within a second or two.\n"
		       "\n"
		       "  --tenant NAME    who shares it shares limits and sessions; otherwise "
		       "the\n"
		       "                   token's own name\n"
		       "  --expires TIME   from now: 12h, 30d or 8w; otherwise never\n"
		       "  --profile NAME   the only one in which its scripts may run; "
		       "the same for all\n"
		       "                   tokens of a tenant\n"
		       "  --json           list as JSON\n"
		       "  --file PATH      the file, token_file in the service's "
		       "configuration;\n"
		       "                   otherwise " SYSCONFDIR "/mcp-pythond/tokens\n"
		       "  --help           this text\n";
	case COMMAND_HELP:
	case COMMAND_VERSION:
		break;
	}
	return "Usage: mcp-python COMMAND [OPTIONS]\n"
	       "\n"
	       "Runs Python in the jails of mcp-pythond.\n"
	       "\n"
	       "  approvals      what waits for an approval; approve ID, deny ID\n"
	       "  audit          check or show the audit log\n"
	       "  check-host     what this machine can enforce, and what to change\n"
	       "  connect        carry MCP between standard input and output and the "
	       "service\n"
	       "  run FILE       run a Python file and show its output\n"
	       "  repl           type Python in a session that keeps its state\n"
	       "  status         what the service does now; metrics: as OpenMetrics text\n"
	       "  token          add, list and revoke tokens for HTTP clients\n"
	       "  top            what tenants use, again and again\n"
	       "\n"
	       "  --version      the version of this program\n"
	       "  --help         this text; \"mcp-python COMMAND --help\" tells more\n";
}

/* The number of single-letter changes between two short words. */
static size_t
distance(const char *a, const char *b)
{
	size_t row[64], la = strlen(a), lb = strlen(b);

	if (la >= N(row) || lb >= N(row))
		return N(row);
	for (size_t j = 0; j <= lb; j++)
		row[j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[lb];
}

/* A word was probably meant if it differs little, or has the same beginning. */
static bool
resembles(const char *typed, const char *known)
{
	size_t len = strlen(typed);

	if (len >= 2 && strncmp(typed, known, len) == 0)
		return true;
	return distance(typed, known) <= (strlen(known) + 3) / 3;
}

static int
unknown_command(const char *typed, char *text_r, size_t size)
{
	size_t len = strlen(typed);

	for (size_t i = 0; i < N(commands); i++)
		if (resembles(typed, commands[i].name)) {
			snprintf(text_r, size,
				 "there is no command \"%s\"; did you mean \"%s\"?",
				 typed, commands[i].name);
			return -EINVAL;
		}
	if (len > 3 && strcmp(typed + len - 3, ".py") == 0)
		snprintf(text_r, size,
			 "there is no command \"%s\"; did you mean \"mcp-python run "
			 "%s\"?",
			 typed, typed);
	else
		snprintf(text_r, size,
			 "there is no command \"%s\"; see mcp-python --help", typed);
	return -EINVAL;
}

static int
unknown_option(const char *typed, unsigned int command, char *text_r, size_t size)
{
	for (size_t i = 0; i < N(rows); i++)
		if (rows[i].commands & command && resembles(typed, rows[i].name)) {
			snprintf(text_r, size,
				 "there is no option \"%s\"; did you mean \"%s\"?",
				 typed, rows[i].name);
			return -EINVAL;
		}
	snprintf(text_r, size,
		 "there is no option \"%s\" here; see mcp-python %s --help", typed,
		 command == RUN ? "run" : command == REPL ? "repl"
		 : command == TOKEN ? "token" : "connect");
	return -EINVAL;
}

static int
set_number(const struct option_row *row, const char *value, void *member)
{
	char *end;
	double number;

	/* Digits only: strtod() also takes hexadecimal, "inf" and leading blanks. */
	if (strspn(value, row->kind == SECONDS ? "0123456789." : "0123456789") !=
	    strlen(value))
		return -EINVAL;
	errno = 0;
	number = strtod(value, &end);
	if (errno || end == value || *end || !(number > 0) || number > INT_MAX)
		return -EINVAL;
	if (row->kind == SECONDS)
		*(double *)member = number;
	else
		*(unsigned int *)member = (unsigned int)number;
	return 0;
}

/* 12h, 30d, 8w. */
static int
set_span(const char *value, long *seconds_r)
{
	static const struct {
		char letter;
		long seconds;
	} units[] = {{'h', 3600}, {'d', DAY_S}, {'w', 7 * DAY_S}};
	size_t digits = strspn(value, "0123456789");
	long number = digits && digits < 6 ? strtol(value, NULL, 10) : 0;

	for (size_t i = 0; i < N(units); i++)
		if (value[digits] == units[i].letter && !value[digits + 1] && number > 0 &&
		    number <= SPAN_MAX_S / units[i].seconds) {
			*seconds_r = number * units[i].seconds;
			return 0;
		}
	return -EINVAL;
}

/* Takes the option at argv[*at], and moves *at behind it and its value. */
static int
take_option(int argc, const char *const *argv, int *at, struct options *o, char *text_r,
	    size_t size)
{
	const char *word = argv[*at], *equals = strchr(word, '=');
	size_t name_len = equals ? (size_t)(equals - word) : strlen(word);
	unsigned int command = 1u << o->command;
	const char *value = equals ? equals + 1 : NULL;
	const struct option_row *row = NULL;
	char *member;

	for (size_t i = 0; i < N(rows); i++)
		if (strlen(rows[i].name) == name_len &&
		    memcmp(rows[i].name, word, name_len) == 0 &&
		    rows[i].commands & command)
			row = &rows[i];
	if (!row)
		return unknown_option(word, command, text_r, size);
	member = (char *)o + row->member;
	(*at)++;
	if (row->kind == FLAG) {
		if (value) {
			snprintf(text_r, size, "%s takes no value", row->name);
			return -EINVAL;
		}
		*(bool *)member = true;
		return 0;
	}
	if (!value && *at < argc)
		value = argv[(*at)++];
	if (!value || !*value) {
		snprintf(text_r, size, "%s needs a value: %s", row->name, row->value);
		return -EINVAL;
	}
	if (row->kind == NAME && !token_is_name(value)) {
		snprintf(text_r, size, "%s %s: " NAME_RULE, row->name, value);
		return -EINVAL;
	}
	if (row->kind == TEXT || row->kind == NAME) {
		*(const char **)member = value;
		return 0;
	}
	if (row->kind == SPAN) {
		if (set_span(value, (long *)member) == 0)
			return 0;
		snprintf(text_r, size, "%s %s: a time such as 12h, 30d or 8w is needed, ten "
			 "years at most", row->name, value);
		return -EINVAL;
	}
	if (set_number(row, value, member) < 0) {
		snprintf(text_r, size, "%s %s: a %s above 0 is needed", row->name,
			 value,
			 row->kind == COUNT ? "whole number" : "number of seconds");
		return -EINVAL;
	}
	return 0;
}

static bool
is_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int
find_command(const char *word, struct options *o, char *text_r, size_t size)
{
	if (is_help(word))
		o->command = COMMAND_HELP;
	else if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
		o->command = COMMAND_VERSION;
	else {
		size_t i = 0;

		while (i < N(commands) && strcmp(word, commands[i].name) != 0)
			i++;
		if (i == N(commands))
			return unknown_command(word, text_r, size);
		o->command = commands[i].command;
	}
	return 0;
}

static int
check_token(const struct options *o, char *text_r, size_t size)
{
	const char *wrong = NULL;

	if (o->token_action != TOKEN_LIST && !o->token_name)
		wrong = o->token_action == TOKEN_ADD ? "token add needs a NAME for it"
						     : "token revoke needs an ID; see "
						       "mcp-python token list";
	else if (o->token_action == TOKEN_ADD && !token_is_name(o->token_name))
		wrong = "a token's NAME: " NAME_RULE;
	else if (o->profile && !token_is_name(o->profile))
		wrong = "--profile: " NAME_RULE;
	else if (o->token_action != TOKEN_ADD &&
		 (o->tenant || o->expires_seconds || o->profile))
		wrong = "--tenant, --expires and --profile are for token add";
	else if (o->token_action != TOKEN_LIST && o->json)
		wrong = "--json is for token list";
	if (!wrong)
		return 0;
	snprintf(text_r, size, "%s", wrong);
	return -EINVAL;
}

/* Parses everything after the name of connect, run or repl. */
static int
parse_rest(int argc, const char *const *argv, struct options *o, char *text_r,
	   size_t size)
{
	int at = 2, r;

	while (at < argc && argv[at][0] == '-' && argv[at][1]) {
		if (strcmp(argv[at], "--") == 0)
			break;
		if (is_help(argv[at])) {
			o->help_about = o->command;
			o->command = COMMAND_HELP;
			return 0;
		}
		if ((r = take_option(argc, argv, &at, o, text_r, size)) < 0)
			return r;
	}
	if (o->command != COMMAND_RUN) {
		if (at == argc)
			return 0;
		snprintf(text_r, size, "%s takes no argument \"%s\"",
			 o->command == COMMAND_REPL ? "repl" : "connect", argv[at]);
		return -EINVAL;
	}
	/* "run -- FILE" is for a file whose name begins with a dash. */
	if (at < argc && strcmp(argv[at], "--") == 0)
		at++;
	if (at == argc) {
		snprintf(text_r, size,
			 "run needs a file: mcp-python run FILE [-- ARGS...]");
		return -EINVAL;
	}
	o->file = argv[at++];
	if (at < argc && strcmp(argv[at], "--") == 0) {
		at++;
	} else if (at < argc && argv[at][0] == '-') {
		snprintf(text_r, size,
			 "%s stands after the file: options go before it, the script's "
			 "own "
			 "arguments after \"--\"",
			 argv[at]);
		return -EINVAL;
	}
	o->args = argv + at;
	o->n_args = (size_t)(argc - at);
	if (o->pass_stdin && strcmp(o->file, "-") == 0) {
		snprintf(text_r, size,
			 "standard input cannot be both the script and its input");
		return -EINVAL;
	}
	return 0;
}

/* token ACTION, then options and at most one word, in any order. */
static int
parse_token(int argc, const char *const *argv, struct options *o, char *text_r, size_t size)
{
	static const char *const actions[] = {
		[TOKEN_ADD] = "add", [TOKEN_LIST] = "list", [TOKEN_REVOKE] = "revoke"};
	size_t action = 0;
	int at = 3, r;

	for (int i = 2; i < argc; i++)
		if (is_help(argv[i])) {
			o->help_about = o->command;
			o->command = COMMAND_HELP;
			return 0;
		}
	while (argc > 2 && action < N(actions) && strcmp(argv[2], actions[action]) != 0)
		action++;
	if (argc == 2 || action == N(actions)) {
		snprintf(text_r, size, "token needs one of: add NAME, list, revoke ID");
		return -EINVAL;
	}
	o->token_action = (enum token_action)action;
	while (at < argc) {
		if (argv[at][0] == '-') {
			r = take_option(argc, argv, &at, o, text_r, size);
			if (r < 0)
				return r;
		} else if (o->token_name || action == TOKEN_LIST) {
			snprintf(text_r, size, "token %s: \"%s\" is one word too many",
				 actions[action], argv[at]);
			return -EINVAL;
		} else {
			o->token_name = argv[at++];
		}
	}
	return check_token(o, text_r, size);
}

int
options_parse(int argc, const char *const *argv, struct options *options_r,
	      char *text_r, size_t size)
{
	struct options o = {.help_about = COMMAND_HELP};
	int r;

	if (argc < 2) {
		snprintf(text_r, size, "a command is needed: connect, run FILE, repl, or token");
		return -EINVAL;
	}
	r = find_command(argv[1], &o, text_r, size);
	if (r < 0)
		return r;
	if (o.command == COMMAND_HELP && argc > 2) {
		struct options about = {0};

		r = find_command(argv[2], &about, text_r, size);
		o.help_about = about.command;
	} else if (o.command == COMMAND_CONNECT || o.command == COMMAND_RUN ||
		   o.command == COMMAND_REPL)
		r = parse_rest(argc, argv, &o, text_r, size);
	else if (o.command == COMMAND_TOKEN)
		r = parse_token(argc, argv, &o, text_r, size);
	if (r < 0)
		return r;
	*options_r = o;
	return 0;
}
