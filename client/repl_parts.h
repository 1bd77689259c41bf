/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of mcp-python repl, for its files. repl.c reads and runs cells, repl_commands.c has
 * the commands that begin with "%", and repl_look.c asks about the state of the session.
 */
#ifndef CLIENT_REPL_PARTS_H
#define CLIENT_REPL_PARTS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "client/call.h"
#include "client/pictures.h"
#include "client/prompt.h"

struct options;
struct repl_input;

#define EXIT_INTERRUPTED 130 /* 128 + SIGINT */

struct text {
	char *bytes;
	size_t len, room;
};

struct repl {
	const struct options *options;
	struct repl_input *input;
	struct call_channel channel;
	struct prompt prompt;
	struct pictures pictures;
	int id;
	char *session;	/* NULL: the next cell begins a session */
	bool began;	/* this program has begun the session, and closes it at the end */
	bool ended;	/* the session has ended, by the code or because it cannot continue */
	int code;	/* the exit code */
	struct text cell, held; /* held: a line that belongs to the next cell */
	bool holds, held_is_pasted;
	bool pasted;	/* the last line of the cell was pasted */
	json_t *files;	/* for each path the uri of its newest content; NULL: none is known */
	json_t *checkpoints; /* from the last answer; NULL: none */
	int verdict;	/* the exit code that the last answer stands for; 0: its status was ok */
};

/* The arguments of every call: session and limits. They belong to the caller. */
json_t *repl_arguments(const struct repl *repl);

/* Calls run_repl, and shows its output and answer. Takes ownership of arguments. */
void repl_call(struct repl *repl, json_t *arguments);

/* Shows text of the session or of this program, followed by a line end. */
void repl_show_line(const char *text, size_t len);

/* ---- repl_commands.c ---- */

/* Runs a command, a line that begins with "%". True: it was run, and line was changed. False: it is
 * not a command of this program, but may be one of the session. */
bool repl_command_line(struct repl *repl, char *line);

/* The commands with their "%", one per line, malloc'd. */
char *repl_command_names(void);

/* ---- repl_look.c ---- */

/* Runs code in a copy of the session, and closes the copy: the session does not change. Returns
 * what it printed, malloc'd, or NULL. */
char *repl_look(struct repl *repl, const char *code);

/* The function for repl_input_complete. arg: a struct repl. */
char *repl_complete(void *arg, const char *word);

#endif
