/* SPDX-License-Identifier: Apache-2.0 */
/* Is a bearer token one of those in the token file (policy/tokens.h)? The file is read again
 * when it changes; one that is broken changes nothing, one that is gone holds no token.
 */
#ifndef AUTH_TOKENS_H
#define AUTH_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

struct auth_tokens;
struct token;
struct why;

/* path is borrowed. A missing file is no mistake, a file that cannot be read or
 * understood is: -errno with why_r filled. */
int auth_tokens_new(const char *path, struct auth_tokens **tokens_r, struct why *why_r);
void auth_tokens_free(struct auth_tokens *tokens);	/* NULL is fine */

/* now_ms: of CLOCK_MONOTONIC, for looking at the file; now: seconds since 1970. NULL: taken,
 * and *token_r, the file's until the next call, says whose it is; else why not, static. */
const char *auth_tokens_check(struct auth_tokens *tokens, const char *text, uint64_t now_ms,
			      int64_t now, const struct token **token_r);

/* Is a token that was taken once known no more, or revoked? Its end alone is no such thing. */
bool auth_tokens_withdrawn(struct auth_tokens *tokens, const char *text, uint64_t now_ms);

#endif
