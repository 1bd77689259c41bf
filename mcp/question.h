/* SPDX-License-Identifier: Apache-2.0 */
/* The questions of a run to its client, and the parsing of replies. */
#ifndef MCP_QUESTION_H
#define MCP_QUESTION_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "mcp/tool.h"

struct jsonout;
struct revision;

enum question_state {
	QUESTION_NONE,			/* the place is free */
	QUESTION_NEW,			/* it was not sent to a client yet */
	QUESTION_TOLD,			/* it was sent, and has no answer */
	QUESTION_ANSWERED,
};

struct mcp_question {
	char key[QUESTION_KEY_MAX + 1];
	enum question_kind kind;
	enum question_state state;
	char *message, *schema, *params;	/* these and most: see struct tool_question */
	size_t most;
	enum reply_action action;
	json_t *content;			/* NULL: none */
};

/* The questions of a run that wait for the client's answer, or whose answers wait for the tool. */
struct mcp_ask {
	struct mcp_question question[QUESTIONS_MAX];
	size_t n;				/* all places from this one on are free; 0: there
						 * is no question */
	char *state;				/* as in on_ask of struct tool_host; NULL: none */
};

/* Adds copies of questions. abilities: of the client (enum client_ability). 0, or -EOPNOTSUPP: the
 * client lacks an ability that one of them needs; -EINVAL: they break a rule of mcp/tool.h. */
int mcp_ask_open(struct mcp_ask *ask, const struct tool_question *question, size_t n,
		 const char *state, unsigned int abilities);

/* The question with this key. NULL: there is none. */
struct mcp_question *mcp_ask_find(struct mcp_ask *ask, const char *key);

/* Moves into *taken_r the questions whose answers the tool can get now. These are the answered
 * calls of the client's tools; or, if the questions are of other kinds, all of them once all are
 * answered. mcp_ask_clear releases *taken_r. False: there is none. */
bool mcp_ask_take(struct mcp_ask *ask, struct mcp_ask *taken_r);

/* Drops a question whose answer the tool does not want any more. */
void mcp_ask_drop(struct mcp_ask *ask, struct mcp_question *question);

/* Does the question wait for an answer? */
bool mcp_question_is_open(const struct mcp_question *question);

/* The abilities that a client needs for these questions (enum client_ability). */
unsigned int mcp_ask_needs(const struct mcp_ask *ask);

/* Empties ask, and frees the questions. */
void mcp_ask_clear(struct mcp_ask *ask);

/* Takes a client's reply, of any shape. False: it does not fit this question. */
bool mcp_question_answer(struct mcp_question *question, const json_t *result);

/* Ends an open question without a reply of the client. why: the reason, for a script that has
 * called a client's tool; NULL: the client has not replied. */
void mcp_question_give_up(struct mcp_question *question, const char *why);

/* Writes the members "method" and "params" of the request that asks an open question. From now on
 * the question counts as sent. */
void mcp_question_write(struct mcp_question *question, const struct revision *revision,
			struct jsonout *out);

/* ---- replies to forms ---- */

/* Does content fit the schema? schema: requestedSchema as JSON text, made by a tool. content: the
 * client's value, of any shape; NULL counts as an empty object. Members that the form does not have
 * are accepted. */
bool mcp_form_fits(const char *schema, const json_t *content);

#endif
