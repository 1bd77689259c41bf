/* SPDX-License-Identifier: Apache-2.0 */
/* Authentication over HTTP by a token (RFC 6750). The command "mcp-python token" makes tokens for
 * this service. An OAuth 2.1 issuer can issue others; this service is then its resource server
 * (RFC 9728). http/principal.h is for users that the kernel or a proxy identifies.
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

/* A principal, or a refusal. */
struct auth_verdict {
	int status;			/* 0: admitted; else refused: 400, 401 or 403 */
	char principal[AUTH_PRINCIPAL_MAX + 1];	/* "uid:1000", "token:TENANT", "sub:SUB@ISSUER" or
						 * "user:NAME", visible ASCII */
	char profile[65];		/* the only profile for its scripts; "": any */
	const char *challenge;		/* WWW-Authenticate; NULL: none; lives as long as auth */
	const char *text;		/* of a refusal, for people; static */
};

/* Reads the files that config names. config must outlive *auth_r. To be called after privilege was
 * dropped, because the files are read again later. 0 or -errno with why_r. */
int auth_new(const struct config *config, struct auth **auth_r, struct why *why_r);
void auth_free(struct auth *auth);	/* NULL is fine */

/* Are tokens configured? */
bool auth_has_tokens(const struct auth *auth);

/* Decides by the header Authorization. authorization NULL: the header is missing. */
void auth_judge(struct auth *auth, const char *authorization, struct auth_verdict *verdict_r);

/* Sets a callback: call(arg, principal) is called when a token of the principal is revoked or
 * removed from the token file. */
void auth_on_withdrawn(struct auth *auth, void (*call)(void *arg, const char *principal),
		       void *arg);

/* Reads the token file again if it has changed. To be called for requests that auth_judge does not
 * see, such as those with a signed link: a revoked token may have ended the link. */
void auth_keep_up(struct auth *auth);

/* Was the token of a request revoked after the request was admitted? */
bool auth_is_withdrawn(struct auth *auth, const char *authorization);

/* The header by which a trusted proxy names the user (NULL: none), and the uid that the proxy runs
 * as. */
const char *auth_trusted_header(const struct auth *auth);
uid_t auth_trusted_uid(const struct auth *auth);

/* The document of RFC 9728 as JSON, if path is its path; otherwise NULL. */
const char *auth_metadata(const struct auth *auth, const char *path);

#endif
