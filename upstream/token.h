/* SPDX-License-Identifier: Apache-2.0 */
/* The token that a token endpoint of OAuth gives for a client's credentials (RFC 6749, 4.4). Pure;
 * the endpoint's answer is hostile.
 */
#ifndef UPSTREAM_TOKEN_H
#define UPSTREAM_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKEN_MIN 8	/* bytes: a shorter text would be masked where it is not the token */
#define TOKEN_MAX 8192

/* A token. Zeroed: there is none. */
struct token {
	char *text;
	uint64_t renew_ms;	/* from this time on it is not used any more; UINT64_MAX: its end is
				 * not known */
};

/* Reads the endpoint's answer. No copy of the token is left in freed memory. now_ms: of a monotonic
 * clock. NULL, with *token_r, which token_wipe frees; or the mistake (static). */
const char *token_read(const char *json, size_t len, uint64_t now_ms, struct token *token_r);

/* Gets the member "error" from the answer of an endpoint that gives no token: at most size - 1
 * bytes of printable ASCII. "": there is none. */
void token_error(const char *json, size_t len, char *text_r, size_t size);

/* Can the token be used now? */
bool token_is_fresh(const struct token *token, uint64_t now_ms);

/* Overwrites and frees the token. */
void token_wipe(struct token *token);

#endif
