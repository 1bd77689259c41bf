/* SPDX-License-Identifier: Apache-2.0 */
/* OAuth 2.1 access tokens in the form of RFC 9068. A valid one is signed by a key of the JWKS file,
 * comes from the configured issuer, is for this service, and is in its time. The file is read again
 * when it changes; if it cannot be read or understood, the earlier keys stay.
 *
 * RS256, PS256 and ES256 are accepted, with keys that have a kid. Never accepted are "none" and
 * algorithms with a shared secret (HS256).
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
#define AUTH_SUB_MAX 255		/* as OpenID Connect has it */

/* All borrowed. */
struct auth_jwt_rules {
	const char *jwks_file, *issuer, *audience;
	const struct config_list *scopes;	/* that a token must have, all of them */
	unsigned int leeway_s;			/* difference of the clocks of issuer and service */
};

struct auth_subject {
	char sub[AUTH_SUB_MAX + 1];	/* visible ASCII */
	bool lacks_scope;		/* known, but may not */
};

/* 0 or -errno with why_r filled. The file must exist and have a key. */
int auth_jwt_new(const struct auth_jwt_rules *rules, struct auth_jwt **jwt_r,
		 struct why *why_r);
void auth_jwt_free(struct auth_jwt *jwt);	/* NULL is fine */

/* Has text the form of a JWT, of three parts? */
bool auth_jwt_is_text(const char *text);

/* now_ms: of CLOCK_MONOTONIC, for looking at the file; now: seconds since 1970. NULL: it is valid,
 * and subject_r is filled; otherwise the reason, static. */
const char *auth_jwt_check(struct auth_jwt *jwt, const char *text, uint64_t now_ms,
			   int64_t now, struct auth_subject *subject_r);

#endif
