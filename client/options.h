/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of mcp-python: pure parsing, nothing is opened or printed here. */
#ifndef CLIENT_OPTIONS_H
#define CLIENT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct why;

enum command {
	COMMAND_HELP,
	COMMAND_VERSION,
	COMMAND_CONNECT,
	COMMAND_RUN,
	COMMAND_REPL,
	COMMAND_GET,
	COMMAND_PUT,
	COMMAND_TOKEN,
};

#define OPTION_WORDS_MAX 64

/* The values of an option that may be given more than once. */
struct option_words {
	const char *at[OPTION_WORDS_MAX];
	size_t n;
};

enum token_action { TOKEN_ADD, TOKEN_LIST, TOKEN_REVOKE };

/* Numbers are 0 if they are not given. Strings are borrowed from argv. */
struct options {
	enum command command;
	enum command help_about; /* with COMMAND_HELP: COMMAND_HELP is the overview */
	const char *socket;	 /* NULL: not given */
	const char *file;	 /* run: a path, or "-"; put: a path */
	const char *const *args; /* run: the words after the file */
	size_t n_args;
	double timeout_seconds, cpu_seconds;
	unsigned int memory_mb, pids;
	const char *profile; /* run: NULL: the default one; token add: NULL: any */
	const char *volume;  /* run, repl: NULL: none */
	const char *folder;  /* run, repl: DIR or DIR:rw for /folder; NULL: none */
	const char *save;    /* run: a directory for pictures and files; NULL: none */
	bool force;	     /* run: saved files replace existing ones */
	bool wait;	     /* run: for an approval, if one is needed */
	bool rw;	     /* run: changes are written back to the one directory of dirs */
	bool pass_stdin, leave_stdin, json; /* run; at most one of the first two */
	bool private;	     /* run, repl: with a private supervisor */
	struct option_words files, dirs; /* run, repl: files for the script */
	struct option_words with;	 /* run, repl: packages for the script */
	const char *session; /* repl: a handle; NULL: a new session */
	bool keep;	     /* repl: do not close the session at the end */
	const char *uri;     /* get */
	const char *name;    /* put; NULL: the last part of file */
	const char *output;  /* get: a new file; NULL: standard output */
	enum token_action token_action;
	const char *token_name; /* add: a name (policy/tokens.h); revoke: an id */
	const char *token_file; /* NULL: the usual one */
	const char *tenant;	/* NULL: the token's name */
	long expires_seconds;	/* from now; 0: never */
};

/* Parses argv[1..]. Returns 0, or -EINVAL with one sentence in why_r. */
int options_parse(int argc, const char *const *argv, struct options *options_r, struct why *why_r);

/* The help text of a command; static. */
const char *options_help(enum command about);

#endif
