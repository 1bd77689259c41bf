/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the lines of mcp-python repl: from a terminal, with editing and history by libedit, or from
 * any other input. */
#ifndef CLIENT_REPL_INPUT_H
#define CLIENT_REPL_INPUT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct repl_input;

/* mask: the signal mask during a wait; *interrupted: a handler sets it to end a wait. Both are
 * borrowed. */
struct repl_input *repl_input_new(const sigset_t *mask,
				  const volatile sig_atomic_t *interrupted);
/* Writes the history, and frees the input. NULL is fine. */
void repl_input_free(struct repl_input *input);

/* Is the input a terminal? */
bool repl_input_is_terminal(const struct repl_input *input);

/* Reads a line. It is given without its newline, and is borrowed until the next call. 0; 1: the
 * input has ended; -EINTR: the wait was interrupted, and the typed part of the line is lost; or
 * another -errno. */
int repl_input_line(struct repl_input *input, const char *prompt, const char **line_r,
		    size_t *len_r);

/* Was the last line pasted, and not typed? True only for a terminal with bracketed paste. */
bool repl_input_is_pasted(const struct repl_input *input);

/* Are there more pasted lines? */
bool repl_input_has_paste(const struct repl_input *input);

/* Sets the function for the key Tab: it returns the names that begin with word, one per line,
 * malloc'd; NULL: none. */
void repl_input_complete(struct repl_input *input, char *(*complete)(void *arg, const char *word),
			 void *arg);

/* Adds a line to the history of a terminal. */
void repl_input_remember(struct repl_input *input, const char *line);

#endif
