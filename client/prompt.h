/* SPDX-License-Identifier: Apache-2.0 */
/* What the service asks the user at the terminal: a line for a script's input(), or
 * whether they agree to something. What is shown of it cannot steer the terminal. */
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
	/* Of what is watched: behind so many bytes the cursor began a line, for one was typed. */
	size_t out_seen;
	/* prompt.c's own. */
	char field[PROMPT_FIELD_MAX + 1];
	bool consents; /* yes or no; else a line */
	char *label;   /* what the line is typed behind */
	char line[PROMPT_LINE_MAX];
	size_t len; /* more than fits: it is too long */
	const struct shown *out;
};

/* Is there a user to ask: is standard input a terminal, and standard error too? */
bool prompt_has_terminal(void);

/* From now on this is what standard output shows; borrowed. NULL: nothing. */
void prompt_watch(struct prompt *prompt, const struct shown *out);

/* Shows the question of a request elicitation/create. Returns the answer when it can be none
 * of a person's, or NULL: it is asked. */
json_t *prompt_ask(struct prompt *prompt, const json_t *request);

/* Standard input has something, or has ended: takes it. The answer, or NULL: none yet. */
json_t *prompt_read(struct prompt *prompt);

/* A notifications/cancelled of the service's: perhaps about this prompt. */
void prompt_withdraw(struct prompt *prompt, const json_t *notification);

/* It is not asked any more, if it was. */
void prompt_forget(struct prompt *prompt);

#endif
