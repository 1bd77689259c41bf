/* SPDX-License-Identifier: Apache-2.0 */
/* Who may use the service over HTTP, by what they show: a token that the service gave out, or one
 * of an OAuth 2.1 issuer, whose resource server this is (RFC 6750, RFC 9728). What the kernel says
 * of a peer, and which header a proxy may set, is http/principal.h.
 */
#ifndef AUTH_AUTH_H
#define AUTH_AUTH_H

#include <stdbool.h>
#include <sys/types.h>

#include "auth/jwt.h"

struct auth;
struct config;
struct why;

#define HTTP_PATH "/mcp"	/* what is protected: where MCP is served */
#define AUTH_PRINCIPAL_MAX (4 + AUTH_SUB_MAX + 1 + 255)	/* sub:SUB@ISSUER */

/* "uid:1000", "token:TENANT", "sub:SUB@ISSUER", "user:NAME": visible ASCII; or a refusal. */
struct auth_verdict {
	int status;			/* 0: admitted; 400, 401 or 403 */
	char principal[AUTH_PRINCIPAL_MAX + 1];
	char profile[65];		/* the only one for its scripts; "": any */
	const char *challenge;		/* WWW-Authenticate; NULL: none; lives as long as auth */
	const char *text;		/* of a refusal, for people; static */
};

/* Reads the files that config names, which must outlive it. After privilege was given up:
 * they are read again later. 0 or -errno with why_r filled. */
int auth_new(const struct config *config, struct auth **auth_r, struct why *why_r);
void auth_free(struct auth *auth);	/* NULL is fine */

/* Are there tokens at all? */
bool auth_has_tokens(const struct auth *auth);

/* Judges the header Authorization; NULL: it is missing. */
void auth_judge(struct auth *auth, const char *authorization, struct auth_verdict *verdict_r);

/* Was the token that a request was admitted with taken back since? */
bool auth_is_withdrawn(struct auth *auth, const char *authorization);

/* The header that a proxy may set; NULL: none. And as whom that proxy runs. */
const char *auth_trusted_header(const struct auth *auth);
uid_t auth_trusted_uid(const struct auth *auth);

/* The document of RFC 9728 as JSON if that is what is at path; else NULL. */
const char *auth_metadata(const struct auth *auth, const char *path);

#endif
