/* SPDX-License-Identifier: Apache-2.0 */
/* A JWKS (RFC 7517): the public keys that may sign access tokens. Parsing only, no I/O. */
#ifndef AUTH_JWKS_H
#define AUTH_JWKS_H

#include <stdbool.h>
#include <stddef.h>

#include <cjose/jwk.h>

struct auth_jwks;
struct why;

enum auth_alg { AUTH_RS256, AUTH_PS256, AUTH_ES256, AUTH_ALGS };

/* Is text, of len characters, base64url without padding, and not empty? No other text may be passed
 * to cjose: its decoder ends the process, by an assertion, if there is a "=" inside. */
bool auth_is_base64url(const char *text, size_t len);

/* The algorithm of this name. AUTH_ALGS: it is not supported. */
enum auth_alg auth_alg_named(const char *name);

/* Parses a JWKS. Keys of other kinds and for other uses are skipped. 0; or -EINVAL with why_r: the
 * text is not valid, or no key is left. */
int auth_jwks_parse(const char *text, size_t len, struct auth_jwks **jwks_r, struct why *why_r);
void auth_jwks_free(struct auth_jwks *jwks);	/* NULL is fine */

size_t auth_jwks_count(const struct auth_jwks *jwks);

/* The key with this id that may sign with this algorithm; NULL: there is none. */
const cjose_jwk_t *auth_jwks_find(const struct auth_jwks *jwks, const char *kid,
				  enum auth_alg alg);

#endif
