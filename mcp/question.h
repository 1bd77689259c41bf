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
	QUESTION_NEW,			/* no client was told of it */
	QUESTION_TOLD,
	QUESTION_ANSWERED,
};

struct mcp_question {
	char key[QUESTION_KEY_MAX + 1];
	enum question_kind kind;
	enum question_state state;
	char *message, *schema, *params;	/* see struct tool_question */
	size_t most;
	enum reply_action action;
	json_t *content;			/* NULL: none */
};

/* The questions that wait for a client or for their tool; n is 0: there is none. */
struct mcp_ask {
	struct mcp_question question[QUESTIONS_MAX];
	size_t n;				/* from here on all places are free */
	char *state;				/* NULL: none */
};

/* Copies. abilities: of the client (enum client_ability). 0, or -EOPNOTSUPP: the client lacks an
 * ability that one of them needs; -EINVAL: they break a rule of tool.h. */
int mcp_ask_open(struct mcp_ask *ask, const struct tool_question *question, size_t n,
		 const char *state, unsigned int abilities);

/* NULL: there is none with this key. */
struct mcp_question *mcp_ask_find(struct mcp_ask *ask, const char *key);

/* Moves what its tool can have now into *taken_r: each answered call of a client's tool, and other
 * questions when all are answered. mcp_ask_clear releases it. False: there is nothing. */
bool mcp_ask_take(struct mcp_ask *ask, struct mcp_ask *taken_r);

/* Its tool does not want an answer any more. */
void mcp_ask_drop(struct mcp_ask *ask, struct mcp_question *question);

/* Does it wait for an answer? */
bool mcp_question_is_open(const struct mcp_question *question);

/* The abilities that a client needs for these questions (enum client_ability). */
unsigned int mcp_ask_needs(const struct mcp_ask *ask);

/* Empties it, and frees what it held. */
void mcp_ask_clear(struct mcp_ask *ask);

/* Takes a client's reply, of any shape. False: it does not fit this question. */
bool mcp_question_answer(struct mcp_question *question, const json_t *result);

/* Ends an open question without a reply of its client's. why: for a script that called a client's
 * tool; NULL: nobody has replied. */
void mcp_question_give_up(struct mcp_question *question, const char *why);

/* The members "method" and "params" of the request that asks it, which is open. The client counts
 * as told. */
void mcp_question_write(struct mcp_question *question, const struct revision *revision,
			struct jsonout *out);

#endif
