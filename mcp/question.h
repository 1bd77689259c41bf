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

struct mcp_question {
	char key[QUESTION_KEY_MAX + 1];
	enum question_kind kind;
	char *message, *schema, *params;	/* see struct tool_question */
	size_t most;
	bool answered;
	enum reply_action action;
	json_t *content;			/* NULL: none */
};

/* The questions of one on_ask; n is 0: none is open. */
struct mcp_ask {
	struct mcp_question question[QUESTIONS_MAX];
	size_t n;
	char *state;				/* NULL: none */
};

/* Copies; *ask is empty before. abilities: of the client (enum client_ability). 0, or -EOPNOTSUPP:
 * the client lacks an ability that one of them needs; -EINVAL: they break a rule of tool.h. */
int mcp_ask_open(struct mcp_ask *ask, const struct tool_question *question, size_t n,
		 const char *state, unsigned int abilities);

/* The abilities that a client needs for these questions (enum client_ability). */
unsigned int mcp_ask_needs(const struct mcp_ask *ask);

/* Empties it, and frees what it held. */
void mcp_ask_clear(struct mcp_ask *ask);

/* Takes a client's reply, of any shape. False: it does not fit this question. */
bool mcp_question_answer(struct mcp_question *question, const json_t *result);

/* The members "method" and "params" of the request that asks it. */
void mcp_question_write(const struct mcp_question *question, const struct revision *revision,
			struct jsonout *out);

#endif
