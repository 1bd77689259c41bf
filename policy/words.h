/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of words in the configuration file, for each kind of key.
 */
#ifndef POLICY_WORDS_H
#define POLICY_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/keys.h"

struct word_kind {
	bool (*fits)(const char *word, size_t len);
	const char *what;	/* completes the message "... is not WHAT" */
};

/* The form of a key's string, or of the words of its list; NULL: keys of this kind have no words.
 */
const struct word_kind *word_kind(enum key_kind kind);

/* Does the word name a subject: uid:NUMBER, user:NAME, group:NAME, token:NAME or sub:NAME? */
bool word_is_subject(const char *word, size_t len);

/* Can the word be the name of another MCP server? It must be an identifier of Python in lower case
 * that the module tools does not use itself. */
bool word_is_tool_server(const char *word, size_t len);

#endif
