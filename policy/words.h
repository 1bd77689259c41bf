/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of words in the configuration file, by the kind of the key.
 */
#ifndef POLICY_WORDS_H
#define POLICY_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/keys.h"

struct word_kind {
	bool (*fits)(const char *word, size_t len);
	const char *what;	/* for "... is not WHAT" */
};

/* The form of strings, and of the words of lists; NULL for other kinds. */
const struct word_kind *word_kind(enum key_kind kind);

/* Is it the name of a principal: uid:NUMBER, user:NAME, group:NAME, token:NAME or sub:NAME? */
bool word_is_subject(const char *word, size_t len);

/* Can it be the name of another MCP server? That is a name of Python in lower case that the module
 * tools does not use itself. */
bool word_is_tool_server(const char *word, size_t len);

#endif
