/* SPDX-License-Identifier: Apache-2.0 */
/* Checks bearer tokens against the token file (policy/tokens.h). The file is read again when it
 * changes. If it cannot be read or parsed, the earlier tokens stay valid; if it is gone, no token
 * is valid.
 */
#ifndef AUTH_TOKENS_H
#define AUTH_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

struct auth_tokens;
struct token;
struct why;

/* Reads the token file. path is borrowed. 0, also if there is no file; or -errno with why_r: the
 * file cannot be read or parsed. */
int auth_tokens_new(const char *path, struct auth_tokens **tokens_r, struct why *why_r);
void auth_tokens_free(struct auth_tokens *tokens);	/* NULL is fine */

/* Sets a callback. When the file is read again, call(arg, tenant) is called for each token that it
 * revokes or no longer has, and that was not revoked before. tenant: borrowed for the call. */
void auth_tokens_on_withdrawn(struct auth_tokens *tokens,
			      void (*call)(void *arg, const char *tenant), void *arg);

/* Reads the file again if it has changed; it is looked at once in AUTH_FILE_LOOK_MS. now_ms: of
 * CLOCK_MONOTONIC. */
void auth_tokens_keep_up(struct auth_tokens *tokens, uint64_t now_ms);

/* Checks a token. now_ms: of CLOCK_MONOTONIC, for checks of the file; now: seconds since 1970.
 * NULL: the token is valid, and *token_r is its record, borrowed until the next call; otherwise the
 * reason, static.
 */
const char *auth_tokens_check(struct auth_tokens *tokens, const char *text, uint64_t now_ms,
			      int64_t now, const struct token **token_r);

/* To be asked about a token that was valid before: was it removed from the file, or revoked, since
 * then? False for a token that has only expired. */
bool auth_tokens_withdrawn(struct auth_tokens *tokens, const char *text, uint64_t now_ms);

#endif
