/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python, first.   Owns: nothing.
 * One row per option; the help text below and the manual page doc/man/mcp-python.1 list the same
 * options. */
#include "client/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/why.h"
#include "policy/tokens.h"

#define NAME_RULE \
	"letters, digits, \"_\", \"-\", \".\" and \"@\", at most 64, are needed"

enum kind { FLAG, TEXT, WORDS, SECONDS, COUNT, NAME, SPAN };

#define CONNECT (1u << COMMAND_CONNECT)
#define RUN (1u << COMMAND_RUN)
#define REPL (1u << COMMAND_REPL)
#define GET (1u << COMMAND_GET)
#define PUT (1u << COMMAND_PUT)
#define TOKEN (1u << COMMAND_TOKEN)

#define DAY_S (24 * 3600L)
#define SPAN_MAX_S (3650 * DAY_S)

static const struct option_row {
	const char *name, *value;	/* value: its name in the help */
	enum kind kind;
	unsigned int commands;
	size_t member;
} rows[] = {
	{ "socket",  "PATH",    TEXT,    CONNECT | RUN | REPL | GET | PUT, offsetof(struct options, socket) },
	{ "private", NULL,      FLAG,    RUN | REPL, offsetof(struct options, private) },
	{ "timeout", "SECONDS", SECONDS, RUN | REPL, offsetof(struct options, timeout_seconds) },
	{ "memory",  "MB",      COUNT,   RUN | REPL, offsetof(struct options, memory_mb) },
	{ "cpu",     "SECONDS", SECONDS, RUN | REPL, offsetof(struct options, cpu_seconds) },
	{ "pids",    "N",       COUNT,   RUN | REPL, offsetof(struct options, pids) },
	{ "profile", "NAME",    TEXT,    RUN | REPL | TOKEN, offsetof(struct options, profile) },
	{ "volume",  "NAME",    TEXT,    RUN | REPL, offsetof(struct options, volume) },
	{ "folder",  "DIR[:rw]", TEXT,   RUN | REPL, offsetof(struct options, folder) },
	{ "session", "HANDLE",  TEXT,    REPL, offsetof(struct options, session) },
	{ "keep",    NULL,      FLAG,    REPL, offsetof(struct options, keep) },
	{ "file",    "PATH",    WORDS,   RUN | REPL, offsetof(struct options, files) },
	{ "dir",     "DIR",     WORDS,   RUN | REPL, offsetof(struct options, dirs) },
	{ "with",    "PACKAGE", WORDS,   RUN | REPL, offsetof(struct options, with) },
	{ "save",    "DIR",     TEXT,    RUN, offsetof(struct options, save) },
	{ "force",   NULL,      FLAG,    RUN, offsetof(struct options, force) },
	{ "wait",    NULL,      FLAG,    RUN, offsetof(struct options, wait) },
	{ "rw",      NULL,      FLAG,    RUN, offsetof(struct options, rw) },
	{ "no-stdin", NULL,     FLAG,    RUN, offsetof(struct options, leave_stdin) },
	{ "stdin",   NULL,      FLAG,    RUN, offsetof(struct options, pass_stdin) },
	{ "json",    NULL,      FLAG,    RUN | TOKEN, offsetof(struct options, json) },
	{ "file",    "PATH",    TEXT,    TOKEN, offsetof(struct options, token_file) },
	{ "output",  "FILE",    TEXT,    GET, offsetof(struct options, output) },
	{ "name",    "NAME",    TEXT,    PUT, offsetof(struct options, name) },
	{ "tenant",  "NAME",    NAME,    TOKEN, offsetof(struct options, tenant) },
	{ "expires", "TIME",    SPAN,    TOKEN, offsetof(struct options, expires_seconds) },
};

static const char *const commands[] = {
	[COMMAND_HELP] = "help",
	[COMMAND_VERSION] = "version",
	[COMMAND_CONNECT] = "connect",
	[COMMAND_RUN] = "run",
	[COMMAND_REPL] = "repl",
	[COMMAND_GET] = "get",
	[COMMAND_PUT] = "put",
	[COMMAND_TOKEN] = "token",
};

#define N(array) (sizeof(array) / sizeof(array)[0])

static const char overview_help[] =
	"Usage: mcp-python COMMAND [OPTIONS]\n"
	"\n"
	"Runs Python in the jails of mcp-pythond.\n"
	"\n"
	"  approvals      what waits for an approval; approve ID, deny ID\n"
	"  audit          check or show the audit log\n"
	"  check-host     what this machine can enforce, and what to change\n"
	"  connect        carry MCP between standard input and output and the service\n"
	"  gateway        serve clients that do not speak MCP, such as Jupyter's\n"
	"  get URI        a file that a script left, of any size\n"
	"  interpreter    further Pythons: add, list, remove, default\n"
	"  kernel         a kernel for JupyterLab, VS Code, nbconvert and others\n"
	"  packages       what is installed, and who has it; remove SET\n"
	"  put FILE       store a file of any size for scripts\n"
	"  run FILE       run a Python file and show its output\n"
	"  repl           type Python in a session that keeps its state\n"
	"  ps             what runs and waits; stop ID stops one, or closes a session\n"
	"  suspend WHO    stop all that a user runs, and refuse more; resume WHO\n"
	"  status         what the service does now; metrics: as OpenMetrics text\n"
	"  token          add, list and revoke tokens for HTTP clients\n"
	"  tools          tools of other servers: list, describe, call\n"
	"  top            what tenants use, again and again\n"
	"  usage          what users have used, from the audit log\n"
	"  web            a console in the browser: runs, approvals, usage, audit log\n"
	"\n"
	"  --version      the version of this program\n"
	"  --help         this text; \"mcp-python COMMAND --help\" tells more\n";

static const char connect_help[] =
	"Usage: mcp-python connect [--socket PATH]\n"
	"\n"
	"Carries MCP between standard input and output and the service: the command\n"
	"that an MCP client starts. Ends when the service closes the connection.\n"
	"\n"
	"  --socket PATH   where the service listens; otherwise $MCP_PYTHON_SOCKET,\n"
	"                  $XDG_RUNTIME_DIR/mcp-pythond.sock or\n"
	"                  /run/mcp-pythond/mcp.sock, the first one that answers\n"
	"  --help          this text\n";

static const char run_help[] =
	"Usage: mcp-python run [OPTIONS] FILE [-- ARGS...]\n"
	"\n"
	"Runs a Python file (\"-\": from standard input) in a jail of its own, shows its\n"
	"output as it comes and ends with its exit code. On a terminal its input() asks\n"
	"you, where the service lets it, behind \"script>\"; give no passwords.\n"
	"\n"
	"  --file PATH         put this file into the script's directory; may be repeated\n"
	"  --dir DIR           the same for all files below a directory, except hidden ones\n"
	"  --rw                write files of that directory that the script changed, and new\n"
	"                      ones, back into it\n"
	"  --with PACKAGE      a package that the script needs, such as \"rich>=13\"; may be\n"
	"                      repeated\n"
	"  --timeout SECONDS   wall clock; 124 is the exit code when it runs out\n"
	"  --cpu SECONDS       processor time of all its processes; 152\n"
	"  --memory MB         memory of all its processes, files included; 137\n"
	"  --pids N            processes and threads at once\n"
	"  --profile NAME      one that the service's configuration has\n"
	"  --volume NAME       a directory that stays, at /volume/data, if the service has\n"
	"                      volumes\n"
	"  --folder DIR[:rw]   a directory of yours, at /folder: read-only, or with :rw to\n"
	"                      write, too; with --private, which this implies\n"
	"  --save DIR          write pictures that were shown and files that were left\n"
	"                      there\n"
	"  --force             let --save and --rw replace any file of the same name\n"
	"  --no-stdin          the script gets no standard input; otherwise it gets a pipe\n"
	"                      or a file, which is read to its end first\n"
	"  --wait              if an operator has to approve it, wait for the decision\n"
	"  --json              print the whole answer as JSON instead of the output\n"
	"  --socket PATH       where the service listens, as in \"connect --help\"\n"
	"  --private           start a supervisor for this command alone; this also happens\n"
	"                      when no service runs\n"
	"  --help              this text\n"
	"\n"
	"Other exit codes: 153 too much output or disk used, 64 wrong usage or refused\n"
	"by the service, 65 not UTF-8, 66 no such file, 69 no service, 70 the jail\n"
	"failed, 75 try again later, 76 not understood, 77 denied.\n";

static const char repl_help[] =
	"Usage: mcp-python repl [OPTIONS]\n"
	"\n"
	"Python, a cell at a time, in a jail that keeps its state: from the terminal with\n"
	"editing, completion and history, or from a pipe. Ctrl-C cancels the cell that\n"
	"runs; exit() or Ctrl-D leaves; %help lists commands. After a time-out, a crash or\n"
	"a limit the state is as before the cell.\n"
	"input() asks as in \"run\".\n"
	"\n"
	"  --session HANDLE    go on in this session, and leave it there at the end\n"
	"  --keep              leave a new one there, too, and say its handle\n"
	"  --file PATH, --dir DIR, --with PACKAGE, --volume NAME, --folder DIR[:rw]\n"
	"                      what a new session starts with, as in \"run --help\"\n"
	"  --timeout SECONDS   wall clock of each cell\n"
	"  --cpu SECONDS       processor time of each cell\n"
	"  --memory MB         memory of the whole session\n"
	"  --pids N            processes and threads at once\n"
	"  --profile NAME      one that the service's configuration has\n"
	"  --socket PATH, --private\n"
	"                      as in \"run --help\"\n"
	"  --help              this text\n"
	"\n"
	"Exit code: that of sys.exit(); from a pipe 1 when a cell failed; 130 after Ctrl-C\n"
	"there; otherwise as \"run --help\" says.\n";

static const char get_help[] =
	"Usage: mcp-python get [--output FILE] URI\n"
	"\n"
	"Writes a file that a script left to standard output. URI is in the script's\n"
	"answer; only the user who ran the script can read the file, for a day.\n"
	"\n"
	"  --output FILE   write it there; overwrites nothing\n"
	"  --socket PATH   where the service listens, as in \"connect --help\"\n"
	"  --help          this text\n"
	"\n"
	"Exit codes: 66 no such file, 69 no service, 73 FILE cannot be made, 74 it\n"
	"cannot be written.\n";

static const char put_help[] =
	"Usage: mcp-python put [--name NAME] FILE\n"
	"\n"
	"Stores a file with the service, and prints a URI. Scripts and sessions of the\n"
	"same user get the file, unchanged and read-only, by this URI in \"files\", for\n"
	"a day. It counts against what the user may keep there; the oldest go first.\n"
	"\n"
	"  --name NAME     its name there; otherwise the last one of FILE\n"
	"  --socket PATH   where the service listens, as in \"connect --help\"\n"
	"  --help          this text\n"
	"\n"
	"Exit codes: 66 no such file, 69 no service, 73 the service does not keep it.\n";

static const char token_help[] =
	"Usage: mcp-python token add NAME [--tenant NAME] [--expires TIME]\n"
	"                            [--profile NAME]\n"
	"       mcp-python token list [--json]\n"
	"       mcp-python token revoke ID\n"
	"\n"
	"Keeps the tokens that HTTP clients of the service show. A new token is printed\n"
	"once and stored nowhere; its ID is what stands between its first two \"_\".\n"
	"The service follows the file within a second or two.\n"
	"\n"
	"  --tenant NAME    who shares it shares limits and sessions; otherwise the\n"
	"                   token's own name\n"
	"  --expires TIME   from now: 12h, 30d or 8w; otherwise never\n"
	"  --profile NAME   the only one in which its scripts may run; the same for all\n"
	"                   tokens of a tenant\n"
	"  --json           list as JSON\n"
	"  --file PATH      the file, token_file in the service's configuration;\n"
	"                   otherwise " SYSCONFDIR "/mcp-pythond/tokens\n"
	"  --help           this text\n";

const char *
options_help(enum command about)
{
	switch (about) {
	case COMMAND_CONNECT:
		return connect_help;
	case COMMAND_RUN:
		return run_help;
	case COMMAND_REPL:
		return repl_help;
	case COMMAND_GET:
		return get_help;
	case COMMAND_PUT:
		return put_help;
	case COMMAND_TOKEN:
		return token_help;
	case COMMAND_HELP:
	case COMMAND_VERSION:
		break;
	}
	return overview_help;
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

#define WRONG(...) why_say(why_r, -EINVAL, "arguments", __VA_ARGS__)

static int
unknown_command(const char *typed, struct why *why_r)
{
	/* Those of client/operator.c, which reads their words itself. */
	static const char *const others[] = { "approve", "approvals", "audit", "check-host", "deny",
					      "gateway", "interpreter", "kernel", "metrics",
					      "packages", "ps", "resume", "status", "stop",
					      "suspend", "tools", "top", "usage", "web" };
	size_t len = strlen(typed);

	if (len > 3 && strcmp(typed + len - 3, ".py") == 0)
		return WRONG("there is no command \"%s\"; did you mean \"mcp-python run %s\"?",
			     typed, typed);
	for (size_t i = 0; i < N(commands) + N(others); i++) {
		const char *known = i < N(commands) ? commands[i] : others[i - N(commands)];

		if (resembles(typed, known))
			return WRONG("there is no command \"%s\"; did you mean \"%s\"?", typed,
				     known);
	}
	return WRONG("there is no command \"%s\"; see mcp-python --help", typed);
}

static int
find_command(const char *word, enum command *command_r, struct why *why_r)
{
	size_t i = 0;

	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		word = "help";
	if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
		word = "version";
	while (i < N(commands) && strcmp(word, commands[i]) != 0)
		i++;
	if (i == N(commands))
		return unknown_command(word, why_r);
	*command_r = (enum command)i;
	return 0;
}

/* ---- options ---- */

/* typed: as it stands in the command line. */
static int
unknown_option(const char *typed, enum command command, struct why *why_r)
{
	const char *bare = typed + strspn(typed, "-");
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(bare, "="), bare);
	for (size_t i = 0; i < N(rows); i++)
		if (rows[i].commands & 1u << command && resembles(name, rows[i].name))
			return WRONG("there is no option \"%s\"; did you mean \"--%s\"?", typed,
				     rows[i].name);
	return WRONG("there is no option \"%s\" here; see mcp-python %s --help", typed,
		     commands[command]);
}

static int
options_set_number(const struct option_row *row, const char *value, void *member)
{
	char *end;
	double number;

	/* Digits only: strtod() also takes hexadecimal, "inf" and leading blanks. */
	if (strspn(value, row->kind == SECONDS ? "0123456789." : "0123456789") != strlen(value))
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

static int
options_add_word(const struct option_row *row, const char *value, struct option_words *words,
		 struct why *why_r)
{
	if (words->n == OPTION_WORDS_MAX)
		return WRONG("--%s: at most %d are taken", row->name, OPTION_WORDS_MAX);
	words->at[words->n++] = value;
	return 0;
}

static int
options_set_value(const struct option_row *row, const char *value, struct options *o,
		  struct why *why_r)
{
	void *member = (char *)o + row->member;

	if (row->kind == FLAG) {
		*(bool *)member = true;
		return 0;
	}
	if (!*value)
		return WRONG("--%s needs a value: %s", row->name, row->value);
	if (row->kind == NAME && !token_is_name(value))
		return WRONG("--%s %s: " NAME_RULE, row->name, value);
	if (row->kind == TEXT || row->kind == NAME) {
		*(const char **)member = value;
		return 0;
	}
	if (row->kind == WORDS)
		return options_add_word(row, value, member, why_r);
	if (row->kind == SPAN)
		return set_span(value, member) == 0 ? 0
			: WRONG("--%s %s: a time such as 12h, 30d or 8w is needed, ten years at "
				"most", row->name, value);
	return options_set_number(row, value, member) == 0 ? 0
		: WRONG("--%s %s: a %s above 0 is needed", row->name, value,
			row->kind == COUNT ? "whole number" : "number of seconds");
}

/* What getopt_long returns for an option: this and the number of its row. */
#define FIRST_ROW 256

static void
list_options(enum command command, struct option list_r[N(rows) + 2])
{
	*list_r++ = (struct option){"help", no_argument, NULL, 'h'};
	for (size_t i = 0; i < N(rows); i++)
		if (rows[i].commands & 1u << command)
			*list_r++ = (struct option){
				.name = rows[i].name, .has_arg = rows[i].kind != FLAG,
				.val = FIRST_ROW + (int)i};
	*list_r = (struct option){0};
}

/* Reads options up to the first other word, and returns where that is in argv, whose first member
 * is skipped. If word_r is not NULL, reads all words: *word_r is the one word that is not an
 * option, or NULL. Stops at --help, and sets o->command to COMMAND_HELP. */
static int
options_read_options(int argc, const char *const *argv, struct options *o, const char **word_r,
		     struct why *why_r)
{
	struct option list[N(rows) + 2];
	int r = 0;

	list_options(o->command, list);
	opterr = 0;
	optind = 0;	/* from the start, also when it has read something before */
	while (r == 0) {
		const char *typed = argv[optind ? optind : 1];
		/* Neither form changes argv. */
		int option = getopt_long(argc, (char *const *)argv, word_r ? "-:h" : "+:h", list,
					 NULL);

		if (option == 1 && *word_r)
			return WRONG("token %s: \"%s\" is one word too many", argv[0],
				     optarg);
		if (option == -1)
			break;
		if (option == 1) {
			*word_r = optarg;
		} else if (option == 'h') {
			o->help_about = o->command;
			o->command = COMMAND_HELP;
			break;
		} else if (option == ':') {
			r = options_set_value(&rows[optopt - FIRST_ROW], "", o, why_r);
		} else if (option != '?') {
			r = options_set_value(&rows[option - FIRST_ROW], optarg, o, why_r);
		} else if (optopt >= FIRST_ROW) {
			r = WRONG("--%s takes no value", rows[optopt - FIRST_ROW].name);
		} else {
			r = unknown_option(typed, o->command, why_r);
		}
	}
	return r < 0 ? r : optind;
}

/* ---- commands ---- */

static int
read_run(int argc, const char *const *argv, struct options *o, struct why *why_r)
{
	if (argc == 0)
		return WRONG("run needs a file: mcp-python run FILE [-- ARGS...]");
	o->file = *argv++;
	argc--;
	if (argc > 0 && strcmp(*argv, "--") == 0) {
		argv++;
		argc--;
	} else if (argc > 0 && **argv == '-') {
		return WRONG("%s stands after the file: options go before it, the script's own "
			     "arguments after \"--\"", *argv);
	}
	o->args = argv;
	o->n_args = (size_t)argc;
	if (o->pass_stdin && strcmp(o->file, "-") == 0)
		return WRONG("standard input cannot be both the script and its input");
	if (o->pass_stdin && o->leave_stdin)
		return WRONG("--stdin and --no-stdin exclude each other");
	if (o->force && !o->save && !o->rw)
		return WRONG("--force is for --save and --rw");
	if (o->rw && (o->dirs.n != 1 || o->files.n > 0))
		return WRONG("--rw is for exactly one --dir, and no --file");
	return 0;
}

static int
read_get(int argc, const char *const *argv, struct options *o, struct why *why_r)
{
	if (argc == 0)
		return WRONG("get needs a URI, as an answer has it");
	if (argc > 1)
		return WRONG("get %s: \"%s\" is one word too many; options go before the URI",
			     argv[0], argv[1]);
	o->uri = argv[0];
	return 0;
}

static int
read_put(int argc, const char *const *argv, struct options *o, struct why *why_r)
{
	if (argc == 0)
		return WRONG("put needs a FILE");
	if (argc > 1)
		return WRONG("put %s: \"%s\" is one word too many; options go before the FILE",
			     argv[0], argv[1]);
	o->file = argv[0];
	return 0;
}

static int
options_check_token(const struct options *o, struct why *why_r)
{
	if (o->token_action == TOKEN_ADD && !o->token_name)
		return WRONG("token add needs a NAME for it");
	if (o->token_action == TOKEN_REVOKE && !o->token_name)
		return WRONG("token revoke needs an ID; see mcp-python token list");
	if (o->token_action == TOKEN_ADD && !token_is_name(o->token_name))
		return WRONG("a token's NAME: " NAME_RULE);
	if (o->profile && !token_is_name(o->profile))
		return WRONG("--profile: " NAME_RULE);
	if (o->token_action != TOKEN_ADD && (o->tenant || o->expires_seconds || o->profile))
		return WRONG("--tenant, --expires and --profile are for token add");
	if (o->token_action != TOKEN_LIST && o->json)
		return WRONG("--json is for token list");
	return 0;
}

/* ACTION, options and at most one word. */
static int
read_token(int argc, const char *const *argv, struct options *o, struct why *why_r)
{
	static const char *const actions[] = {
		[TOKEN_ADD] = "add", [TOKEN_LIST] = "list", [TOKEN_REVOKE] = "revoke"};
	size_t action = 0;
	int at;

	while (argc > 0 && action < N(actions) && strcmp(argv[0], actions[action]) != 0)
		action++;
	if (argc == 0 || action == N(actions))
		return WRONG("token needs one of: add NAME, list, revoke ID");
	o->token_action = (enum token_action)action;
	at = options_read_options(argc, argv, o, &o->token_name, why_r);
	if (at < 0 || o->command == COMMAND_HELP)
		return at < 0 ? at : 0;
	if (at < argc || (action == TOKEN_LIST && o->token_name))
		return WRONG("token %s: \"%s\" is one word too many", argv[0],
			     at < argc ? argv[at] : o->token_name);
	return options_check_token(o, why_r);
}

/* argv[0] is the command's name. */
static int
read_command(int argc, const char *const *argv, struct options *o, struct why *why_r)
{
	int at = options_read_options(argc, argv, o, NULL, why_r);

	if (at < 0 || o->command == COMMAND_HELP)
		return at < 0 ? at : 0;
	if (o->folder && (o->socket || o->keep || o->session))
		return WRONG("--folder needs a private service: it excludes --socket, --session and "
			     "--keep");
	o->private |= o->folder != NULL;
	if (o->private && o->socket)
		return WRONG("--private and --socket exclude each other");
	if (o->private && (o->keep || o->session))
		return WRONG("a session of a private service ends with the command: --private excludes "
			     "--session and --keep");
	if (o->command == COMMAND_RUN)
		return read_run(argc - at, argv + at, o, why_r);
	if (o->command == COMMAND_GET)
		return read_get(argc - at, argv + at, o, why_r);
	if (o->command == COMMAND_PUT)
		return read_put(argc - at, argv + at, o, why_r);
	if (o->command == COMMAND_TOKEN)
		return read_token(argc - at, argv + at, o, why_r);
	return at == argc ? 0 : WRONG("%s takes no argument \"%s\"", argv[0], argv[at]);
}

int
options_parse(int argc, const char *const *argv, struct options *options_r, struct why *why_r)
{
	struct options o = {.help_about = COMMAND_HELP};
	int r;

	if (argc < 2)
		return WRONG("a command is needed, such as run FILE or repl; mcp-python --help lists "
			     "all");
	r = find_command(argv[1], &o.command, why_r);
	if (r == 0 && o.command == COMMAND_HELP && argc > 2)
		r = find_command(argv[2], &o.help_about, why_r);
	else if (r == 0 && o.command != COMMAND_HELP && o.command != COMMAND_VERSION)
		r = read_command(argc - 1, argv + 1, &o, why_r);
	if (r == 0)
		*options_r = o;
	return r;
}
