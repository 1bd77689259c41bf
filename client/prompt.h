/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of the service to the user at the terminal: for a line of input for a script, or for
 * consent. Their text is escaped, so that it cannot control the terminal. */
#ifndef CLIENT_PROMPT_H
#define CLIENT_PROMPT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

struct shown;

#define PROMPT_LINE_MAX 4096	/* bytes of an answer; a terminal gives no more in one line */
#define PROMPT_FIELD_MAX 64	/* bytes of the name of the form's field */

/* The open question; there is one at a time. Zeroed: no question is open. */
struct prompt {
	json_t *id; /* NULL: no question is open */
	/* The length of the watched stream when the last question ended. At that time the cursor
	 * was at the beginning of a line. */
	size_t out_seen;
	/* The rest belongs to prompt.c. */
	char field[PROMPT_FIELD_MAX + 1];
	bool consents; /* the answer is yes or no; otherwise a line */
	char *label;   /* the text before the typed line */
	char line[PROMPT_LINE_MAX];
	size_t len; /* of the typed line; larger than line: it is too long */
	const struct shown *out;
};

/* Can a user be asked? Standard input and standard error must be a terminal. */
bool prompt_has_terminal(void);

/* Sets the stream that is shown on standard output from now on; borrowed. NULL: none. */
void prompt_watch(struct prompt *prompt, const struct shown *out);

/* Shows the question of a request elicitation/create. Returns NULL; or, if the question cannot be
 * shown to a person, the answer to the request at once. */
json_t *prompt_ask(struct prompt *prompt, const json_t *request);

/* Reads standard input. To be called when it is readable or has ended. Returns the answer; NULL:
 * the line is not complete. */
json_t *prompt_read(struct prompt *prompt);

/* Takes a notifications/cancelled of the service. Drops the open question if the notification names
 * it. */
void prompt_withdraw(struct prompt *prompt, const json_t *notification);

/* Drops the open question, if there is one. */
void prompt_forget(struct prompt *prompt);

#endif
