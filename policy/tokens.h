/* SPDX-License-Identifier: Apache-2.0 */
/* The bearer tokens of this service, and the file that lists them.
 *
 * A token is mcp_ID_SECRET: ID names its record, SECRET is 256 random bits in base64url. The file
 * has the SHA-256 of the whole token. A fast hash is enough: only passwords, which can be guessed,
 * need a slow one.
 *
 * The file is one JSON object, {"version": 1, "tokens": [RECORD...]}. A record is an object:
 *
 *   {"id": "...", "name": "...", "tenant": "...", "sha256": "64 hex digits",
 *    "created": TIME, "expires": TIME, "revoked": TIME, "profile": "..."}
 *
 * A TIME is a text such as 2026-11-21T06:00:00Z. The last three members are left out if they do not
 * apply. All tokens of a tenant that are not revoked must name the same profile, or none, because
 * they share the tenant's sessions. This module converts between the file's text and structs; it
 * opens no file.
 */
#ifndef POLICY_TOKENS_H
#define POLICY_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct why;

#define TOKEN_ID 10			/* characters */
#define TOKEN_SECRET 43
#define TOKEN_TEXT (4 + TOKEN_ID + 1 + TOKEN_SECRET)
#define TOKEN_HASH 32			/* bytes */
#define TOKEN_NAME_MAX 64
#define TOKENS_MAX 4096
#define TOKENS_BYTES_MAX (2 * 1024 * 1024)	/* of the file */

struct token {
	char id[TOKEN_ID + 1];
	char name[TOKEN_NAME_MAX + 1];		/* for people */
	char tenant[TOKEN_NAME_MAX + 1];	/* tokens with the same tenant share everything */
	char profile[TOKEN_NAME_MAX + 1];	/* the only profile for its scripts; "": any */
	unsigned char hash[TOKEN_HASH];
	int64_t created, expires, revoked;	/* seconds since 1970; 0: never */
};

struct tokens {
	struct token *token;
	size_t n;
};

/* Parses a file's text. 0, and tokens_done releases *tokens_r; or -EINVAL with why_r. */
int tokens_parse(const char *text, size_t len, struct tokens *tokens_r, struct why *why_r);

/* Makes the file's text, malloc'd. */
char *tokens_print(const struct tokens *tokens);

void tokens_done(struct tokens *tokens);

/* Adds a copy of a token. 0; -E2BIG: there are TOKENS_MAX already; -EEXIST: other tokens of the
 * tenant that are not revoked name another profile. */
int tokens_add(struct tokens *tokens, const struct token *token);

/* The token with this id of len characters, which need not end with NUL. NULL: there is none. */
struct token *tokens_find(const struct tokens *tokens, const char *id, size_t len);

/* Is text a valid name: 1 to TOKEN_NAME_MAX letters, digits, "_", "-", "." and "@", beginning with
 * a letter or digit? */
bool token_is_name(const char *text);

/* Has text, which ends with NUL, the form of a token? If so, *id_r points to its id, of TOKEN_ID
 * characters, within text. */
bool token_is_text(const char *text, const char **id_r);

/* Makes an id and the token with this id from random bytes. text_r: has room for TOKEN_TEXT and
 * NUL. */
void token_make(const unsigned char id_bytes[TOKEN_ID], const unsigned char secret[TOKEN_HASH],
		char id_r[TOKEN_ID + 1], char *text_r);

/* Writes a time as 2026-11-21T06:00:00Z. text_r: has TOKEN_TIME + 1 bytes. */
#define TOKEN_TIME 20
void token_time_print(int64_t seconds, char *text_r);

#endif
