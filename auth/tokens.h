/* SPDX-License-Identifier: Apache-2.0 */
/* Checks bearer tokens against the token file (policy/tokens.h). The file is read again when it
 * changes. If it is broken, the earlier tokens stay; if it is gone, there are none.
 */
#ifndef AUTH_TOKENS_H
#define AUTH_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

struct auth_tokens;
struct token;
struct why;

/* path is borrowed. 0, even if there is no file; -errno with why_r filled: the file cannot be read
 * or understood. */
int auth_tokens_new(const char *path, struct auth_tokens **tokens_r, struct why *why_r);
void auth_tokens_free(struct auth_tokens *tokens);	/* NULL is fine */

/* now_ms: of CLOCK_MONOTONIC, for looking at the file; now: seconds since 1970. NULL: it is valid,
 * and *token_r, borrowed until the next call, says whose it is; otherwise the reason, static. */
const char *auth_tokens_check(struct auth_tokens *tokens, const char *text, uint64_t now_ms,
			      int64_t now, const struct token **token_r);

/* Was a token that was valid before removed or revoked? A token that has only expired was not. */
bool auth_tokens_withdrawn(struct auth_tokens *tokens, const char *text, uint64_t now_ms);

#endif
