/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of the service to the user at the terminal: for a line for a script's input(), or for
 * consent. The text is shown in such a way that it cannot control the terminal. */
#ifndef CLIENT_PROMPT_H
#define CLIENT_PROMPT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

struct shown;

#define PROMPT_LINE_MAX 4096	/* bytes of an answer; a terminal gives no more in one line */
#define PROMPT_FIELD_MAX 64	/* bytes of its name */

/* One at a time. Zeroed: nothing is asked. */
struct prompt {
	json_t *id; /* NULL: nothing is asked */
	/* How many bytes the watched stream had when a typed line put the cursor at the beginning
	 * of a line. */
	size_t out_seen;
	/* The rest belongs to prompt.c. */
	char field[PROMPT_FIELD_MAX + 1];
	bool consents; /* yes or no; else a line */
	char *label;   /* the text before the typed line */
	char line[PROMPT_LINE_MAX];
	size_t len; /* larger than the buffer: the line is too long */
	const struct shown *out;
};

/* Can a user be asked? Standard input and standard error must be a terminal. */
bool prompt_has_terminal(void);

/* Sets the stream that standard output shows from now on; borrowed. NULL: none. */
void prompt_watch(struct prompt *prompt, const struct shown *out);

/* Shows the question of a request elicitation/create. Returns NULL; or the answer, if the question
 * cannot be shown to a person. */
json_t *prompt_ask(struct prompt *prompt, const json_t *request);

/* Reads standard input, which is readable or has ended. Returns the answer, or NULL: none yet. */
json_t *prompt_read(struct prompt *prompt);

/* Takes a notifications/cancelled of the service, which may be about this question. */
void prompt_withdraw(struct prompt *prompt, const json_t *notification);

/* Drops the question, if there is one. */
void prompt_forget(struct prompt *prompt);

#endif
