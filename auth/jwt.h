/* SPDX-License-Identifier: Apache-2.0 */
/* OAuth 2.1 access tokens in the form of RFC 9068. A valid token is signed by a key of the JWKS
 * file, names the configured issuer, is meant for this service, and is not expired. The file is
 * read again when it changes. If it cannot be read or parsed, the earlier keys stay in use.
 *
 * RS256, PS256 and ES256 are accepted, with keys that have a kid. "none" and algorithms with a
 * shared secret (HS256) are never accepted.
 */
#ifndef AUTH_JWT_H
#define AUTH_JWT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct auth_jwt;
struct config_list;
struct why;

#define AUTH_JWT_MAX 8192		/* characters of a token */
#define AUTH_JWKS_MAX (256 * 1024)	/* bytes of the file */
#define AUTH_JWKS_KEYS_MAX 64
#define AUTH_SUB_MAX 255		/* characters of a sub; the limit of OpenID Connect */

/* All borrowed. */
struct auth_jwt_rules {
	const char *jwks_file, *issuer, *audience;
	const struct config_list *scopes;	/* a token must have all of them */
	unsigned int leeway_s;			/* the largest accepted difference between the
						 * clocks of issuer and service, in seconds */
};

struct auth_subject {
	char sub[AUTH_SUB_MAX + 1];	/* visible ASCII */
	bool lacks_scope;		/* the token is valid, but lacks a scope */
};

/* Reads the JWKS file, which must exist and have a key. 0 or -errno with why_r. */
int auth_jwt_new(const struct auth_jwt_rules *rules, struct auth_jwt **jwt_r,
		 struct why *why_r);
void auth_jwt_free(struct auth_jwt *jwt);	/* NULL is fine */

/* Has text the form of a JWT, with three parts? */
bool auth_jwt_is_text(const char *text);

/* Checks a token. now_ms: of CLOCK_MONOTONIC, for checks of the file; now: seconds since 1970.
 * NULL: the token is valid, and *subject_r is filled in; otherwise the reason, static. */
const char *auth_jwt_check(struct auth_jwt *jwt, const char *text, uint64_t now_ms,
			   int64_t now, struct auth_subject *subject_r);

#endif
