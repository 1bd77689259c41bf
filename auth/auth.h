/* SPDX-License-Identifier: Apache-2.0 */
/* Who may use the service over HTTP, by a token: one that the service made, or one of an OAuth 2.1
 * issuer, of which this is a resource server (RFC 6750, RFC 9728). http/principal.h handles users
 * that the kernel or a proxy identifies.
 */
#ifndef AUTH_AUTH_H
#define AUTH_AUTH_H

#include <stdbool.h>
#include <sys/types.h>

#include "auth/jwt.h"

struct auth;
struct config;
struct why;

#define HTTP_PATH "/mcp"	/* the protected path, where MCP is served */
#define AUTH_PRINCIPAL_MAX (4 + AUTH_SUB_MAX + 1 + 255)	/* sub:SUB@ISSUER */

/* "uid:1000", "token:TENANT", "sub:SUB@ISSUER", "user:NAME": visible ASCII; or a refusal. */
struct auth_verdict {
	int status;			/* 0: admitted; 400, 401 or 403 */
	char principal[AUTH_PRINCIPAL_MAX + 1];
	char profile[65];		/* the only one for its scripts; "": any */
	const char *challenge;		/* WWW-Authenticate; NULL: none; lives as long as auth */
	const char *text;		/* of a refusal, for people; static */
};

/* Reads the files that config names; config must outlive the result. Call it after privilege was
 * dropped, because the files are read again later. 0 or -errno with why_r filled. */
int auth_new(const struct config *config, struct auth **auth_r, struct why *why_r);
void auth_free(struct auth *auth);	/* NULL is fine */

/* Are there tokens at all? */
bool auth_has_tokens(const struct auth *auth);

/* Judges the header Authorization; NULL: it is missing. */
void auth_judge(struct auth *auth, const char *authorization, struct auth_verdict *verdict_r);

/* Was the token of an admitted request revoked since? */
bool auth_is_withdrawn(struct auth *auth, const char *authorization);

/* The header that a proxy may set (NULL: none), and the user that the proxy runs as. */
const char *auth_trusted_header(const struct auth *auth);
uid_t auth_trusted_uid(const struct auth *auth);

/* The document of RFC 9728 as JSON, if path is its path; otherwise NULL. */
const char *auth_metadata(const struct auth *auth, const char *path);

#endif
