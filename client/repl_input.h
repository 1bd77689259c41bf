/* SPDX-License-Identifier: Apache-2.0 */
/* Where the lines of mcp-python repl come from: a terminal, with editing and history by
 * libedit, or anything else. */
#ifndef CLIENT_REPL_INPUT_H
#define CLIENT_REPL_INPUT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct repl_input;

/* mask: of signals while it waits; *interrupted: set by a handler when reading is to end.
 * Both borrowed. */
struct repl_input *repl_input_new(const sigset_t *mask,
				  const volatile sig_atomic_t *interrupted);
/* Writes the history. NULL is fine. */
void repl_input_free(struct repl_input *input);

/* Is it typed at a terminal? */
bool repl_input_is_terminal(const struct repl_input *input);

/* Reads a line, without its end; borrowed until the next call. 0, 1 at the end of input,
 * -EINTR when interrupted (what was typed of the line is gone), or -errno. */
int repl_input_line(struct repl_input *input, const char *prompt, const char **line_r,
		    size_t *len_r);

/* Was the last line pasted, and not typed? Of a terminal with bracketed paste. */
bool repl_input_is_pasted(const struct repl_input *input);

/* Is there more of what was pasted? */
bool repl_input_has_paste(const struct repl_input *input);

/* Tab asks this for the names that continue a word, one per line, malloc'd, or NULL. It is called
 * while a line is typed. */
void repl_input_complete(struct repl_input *input, char *(*complete)(void *arg, const char *word),
			 void *arg);

/* Puts a line into the history of a terminal. */
void repl_input_remember(struct repl_input *input, const char *line);

#endif
