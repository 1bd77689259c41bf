/* SPDX-License-Identifier: Apache-2.0 */
/* What a word of the configuration file may be, by the kind of its key.
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

/* Of strings, and of the words of lists; of other kinds there is none. */
const struct word_kind *word_kind(enum key_kind kind);

/* Is it the name of a principal: uid:NUMBER, user:NAME, group:NAME, token:NAME or sub:NAME? */
bool word_is_subject(const char *word, size_t len);

/* Can it be the name of another MCP server: a name of Python's in lower case, that the module tools
 * does not need for itself? */
bool word_is_tool_server(const char *word, size_t len);

#endif
