/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python repl.   Owns: nothing.
 * Commands of this program: lines that begin with "%". The session has others (%time, %cd ...). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/quote.h"
#include "base/xalloc.h"
#include "client/repl_parts.h"
#include "client/results.h"
#include "client/say.h"
#include "client/script.h"
#include "client/show.h"
#include "client/text.h"

static void
repl_commands_print_help(struct repl *, const char *, const char *)
{
	static const char help[] =
		"Python, a cell at a time; an empty line ends a block. Tab completes names, and\n"
		"\"name?\" explains one. Ctrl-C cancels the cell that runs; exit() or Ctrl-D leaves.\n"
		"  %checkpoint NAME   keep the state under a name\n"
		"  %restore NAME      go back to it\n"
		"  %reset             forget everything\n"
		"  %whos              list variables\n"
		"  %files             list files of the session\n"
		"  %save NAME [DIR]   save a file that a cell made into a directory here\n"
		"  %run FILE          run a file from here as a cell\n"
		"  %session           print the session's handle, for --session\n"
		"The session knows others, such as !command, %time, %timeit, %cd, %env and %%bash.\n";

	(void)show_bytes(STDOUT_FILENO, help, sizeof(help) - 1);
}

static void
print_session(struct repl *repl, const char *, const char *)
{
	if (repl->session)
		repl_show_line(repl->session, strlen(repl->session));
}

static void
reset(struct repl *repl, const char *, const char *)
{
	json_t *arguments = repl_arguments(repl);

	call_set(arguments, "reset", json_true());
	repl_call(repl, arguments);
	if (repl->verdict == 0)
		say("everything is forgotten");
}

static void
print_checkpoints(const struct repl *repl)
{
	const json_t *name;
	size_t i;

	if (json_array_size(repl->checkpoints) == 0)
		say("there are no checkpoints; %%checkpoint NAME keeps the state under a name");
	json_array_foreach(repl->checkpoints, i, name)
		repl_show_line(json_string_value(name), json_string_length(name));
}

/* Calls with a checkpoint's name as an argument, or lists them if there is no name. True: the call
 * was made and has succeeded. */
static bool
call_with_checkpoint(struct repl *repl, const char *argument, const char *name)
{
	json_t *arguments;

	if (!name) {
		print_checkpoints(repl);
		return false;
	}
	arguments = repl_arguments(repl);
	call_set(arguments, argument, json_string(name));
	repl_call(repl, arguments);
	return repl->verdict == 0;
}

static void
repl_commands_keep(struct repl *repl, const char *word, const char *)
{
	if (call_with_checkpoint(repl, "checkpoint", word))
		say("the state is kept as %s; %%restore %s goes back to it", word, word);
}

static void
restore(struct repl *repl, const char *word, const char *)
{
	if (call_with_checkpoint(repl, "restore", word))
		say("the state is that of %s; files are as they were", word);
}

/* Names and values may hold anything. */
static void
print_lines(char *text)
{
	char *line, shown[1024];

	while ((line = strsep(&text, "\n")))
		if (*line)
			repl_show_line(shown, quote_line(shown, sizeof(shown), line, strlen(line)));
}

static void
print_look(struct repl *repl, const char *code, const char *nothing)
{
	char *text = repl_look(repl, code);

	if (!text)
		say("the session does not answer");
	else if (!*text)
		say("%s", nothing);
	else
		print_lines(text);
	free(text);
}

static void
print_variables(struct repl *repl, const char *, const char *)
{
	static const char code[] =
		"for k, v in sorted((k, v) for k, v in globals().items() if k[0] != '_' and "
		"type(v).__name__ != 'module' and k not in ('In', 'Out', 'display')):\n"
		" try: r = repr(v)\n"
		" except Exception as e: r = '<repr failed: %s>' % type(e).__name__\n"
		" print('%-16s %-16s %.60s' % (k, type(v).__name__, r.replace('\\n', ' ')))\n";

	print_look(repl, code, "there are no variables");
}

static void
print_files(struct repl *repl, const char *, const char *)
{
	static const char code[] =
		"import os\n"
		"for d, b, n in os.walk('/workspace'):\n"
		" b.sort()\n"
		" for f in sorted(n):\n"
		"  p = os.path.join(d, f)\n"
		"  print('%12d  %s' % (os.lstat(p).st_size, ''.join(\n"
		"   c if c.isprintable() else ascii(c)[1:-1] for c in p[11:])))\n";

	print_look(repl, code, "there are no files in /workspace");
}

static void
repl_commands_save(struct repl *repl, const char *word, const char *second)
{
	const json_t *uri = word ? json_object_get(repl->files, word) : NULL;

	if (!word)
		say("which file? %%files lists them");
	else if (!uri)
		say("no cell has made or changed a file %s; %%files lists all", word);
	else if (!json_is_string(uri))
		say("the service has not kept %s; the answer of its cell says why", word);
	else
		(void)results_save_one(second ? second : ".", &repl->channel, ++repl->id, word,
				       json_string_value(uri));
}

static void
run_file(struct repl *repl, const char *word, const char *)
{
	struct script_text text = {0};
	json_t *arguments;

	if (!word || strcmp(word, "-") == 0) {
		say("%%run FILE: one file is needed");
		return;
	}
	if (script_load(word, &text) != 0)
		return;
	arguments = repl_arguments(repl);
	call_set(arguments, "code", json_stringn(text.bytes ? text.bytes : "", text.len));
	script_text_free(&text);
	repl_call(repl, arguments);
}

static const struct command {
	const char *name;
	void (*run)(struct repl *repl, const char *word, const char *second);
	int words;
} commands[] = {
	{ "", repl_commands_print_help, 0 }, { "help", repl_commands_print_help, 0 },
	{ "session", print_session, 0 },     { "reset", reset, 0 },
	{ "checkpoint", repl_commands_keep, 1 }, { "restore", restore, 1 },
	{ "whos", print_variables, 0 },      { "files", print_files, 0 },
	{ "save", repl_commands_save, 2 },   { "run", run_file, 1 },
};

char *
repl_command_names(void)
{
	size_t len;
	char *names = NULL;
	FILE *to = open_memstream(&names, &len);

	if (!to)
		xalloc_fail(0);
	for (size_t i = 1; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(to, "%%%s\n", commands[i].name);
	xassert(fclose(to) == 0);
	return names;
}

/* The next word of *rest, or NULL. A word in quotes may have blanks. */
static char *
next_word(char **rest)
{
	char *word = *rest + strspn(*rest, " \t\r"), *end = NULL;

	if (!*word)
		return NULL;
	if (*word == '"' || *word == '\'')
		end = strchr(word + 1, *word);
	if (end)
		word++;
	else
		end = word + strcspn(word, " \t\r");
	*rest = *end ? end + 1 : end;
	*end = '\0';
	return word;
}

bool
repl_command_line(struct repl *repl, char *line)
{
	size_t len = strcspn(line + 1, " \t\r");

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct text_position where;
		char *words[3] = {0}, *rest = line + 1 + len;
		int n = 0;

		if (strlen(commands[i].name) != len || memcmp(commands[i].name, line + 1, len) != 0)
			continue;
		if (!text_check(line, strlen(line), true, &where)) {
			say("that is not UTF-8 text");
			return true;
		}
		while (n < 3 && (words[n] = next_word(&rest)))
			n++;
		if (n > commands[i].words)
			say("%%%s: \"%s\" is one word too many; a name with blanks needs quotes",
			    commands[i].name, words[commands[i].words]);
		else
			commands[i].run(repl, words[0], words[1]);
		return true;
	}
	return false;
}
