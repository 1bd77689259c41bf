/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the keys of a JWKS.
 * Reads:   a file that the administrator keeps, usually fetched from the issuer. */
#include "auth/jwks.h"

#include <errno.h>
#include <stdlib.h>

#include <jansson.h>
#include <openssl/err.h>

#include "auth/jwt.h"
#include "base/base64.h"
#include "base/member.h"
#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"

#define KID_MAX 256
#define RSA_BITS_MIN 2048
#define RSA_BITS_MAX 8192	/* a bound for the cost of one check */
#define NUMBER_MAX 2048		/* characters of a key's number */

struct key {
	char kid[KID_MAX + 1];
	enum auth_alg alg;	/* AUTH_ALGS: any algorithm of its kind */
	bool rsa;		/* else a key on the curve P-256 */
	cjose_jwk_t *jwk;
};

struct auth_jwks {
	size_t n;
	struct key key[AUTH_JWKS_KEYS_MAX];
};

static const char *const names[AUTH_ALGS] = {
	[AUTH_RS256] = "RS256", [AUTH_PS256] = "PS256", [AUTH_ES256] = "ES256",
};

bool
auth_is_base64url(const char *text, size_t len)
{
	size_t n = 0;

	free(base64url_decode(text, len, &n));
	return n > 0;
}

enum auth_alg
auth_alg_named(const char *name)
{
	int alg = 0;

	while (alg < AUTH_ALGS && strcmp(names[alg], name) != 0)
		alg++;
	return (enum auth_alg)alg;
}

static bool
jwks_fits(const struct key *key, enum auth_alg alg)
{
	return key->rsa == (alg != AUTH_ES256) && (key->alg == AUTH_ALGS || key->alg == alg);
}

/* RFC 7517, 4.2 and 4.3. */
static bool
is_for_signatures(const json_t *entry)
{
	const json_t *use = json_object_get(entry, "use");
	const json_t *operations = json_object_get(entry, "key_ops"), *operation;
	size_t i;

	if (use && (!json_is_string(use) || strcmp(json_string_value(use), "sig") != 0))
		return false;
	if (!operations)
		return true;
	json_array_foreach(operations, i, operation)
		if (json_is_string(operation) &&
		    strcmp(json_string_value(operation), "verify") == 0)
			return true;
	return false;
}

/* Imports the public part only: private keys that are in the file by mistake are not taken over. */
static cjose_jwk_t *
jwks_import(const json_t *entry, bool rsa)
{
	static const char *const members[2][4] = {
		{ "kty", "crv", "x", "y" }, { "kty", "n", "e", NULL },
	};
	json_auto_t *public = NULL;
	cjose_jwk_t *jwk = NULL;
	cjose_err error;
	own_mem char *text = NULL;

	for (int i = 1; i < 4 && members[rsa][i]; i++) {
		const char *value = member_text(entry, members[rsa][i]);

		/* "crv" was compared before */
		if (!value || strlen(value) > NUMBER_MAX ||
		    (strcmp(members[rsa][i], "crv") != 0 &&
		     !auth_is_base64url(value, strlen(value))))
			return NULL;
	}
	public = xalloc_check(json_object());
	for (int i = 0; i < 4 && members[rsa][i]; i++)
		json_object_set(public, members[rsa][i],
				json_object_get(entry, members[rsa][i]));
	text = xalloc_check(json_dumps(public, JSON_COMPACT));
	jwk = cjose_jwk_import(text, strlen(text), &error);
	return jwk;
}

static bool
has_size(const cjose_jwk_t *jwk, bool rsa)
{
	cjose_err error;
	size_t bits = cjose_jwk_get_keysize(jwk, &error);

	return rsa ? bits >= RSA_BITS_MIN && bits <= RSA_BITS_MAX : bits == 256;
}

/* Takes the key if it is usable here; then *key_r is filled. */
static bool
take_key(const json_t *entry, struct key *key_r)
{
	const char *kid = member_text(entry, "kid"), *kty = member_text(entry, "kty");
	const char *alg = member_text(entry, "alg"), *curve = member_text(entry, "crv");

	if (!kid || !*kid || strlen(kid) > KID_MAX || !kty || !is_for_signatures(entry))
		return false;
	*key_r = (struct key){ .alg = alg ? auth_alg_named(alg) : AUTH_ALGS };
	key_r->rsa = strcmp(kty, "RSA") == 0;
	if (!key_r->rsa && (strcmp(kty, "EC") != 0 || !curve || strcmp(curve, "P-256") != 0))
		return false;
	if (alg && (key_r->alg == AUTH_ALGS || !jwks_fits(key_r, key_r->alg)))
		return false;
	strcpy(key_r->kid, kid);
	key_r->jwk = jwks_import(entry, key_r->rsa);
	if (key_r->jwk && has_size(key_r->jwk, key_r->rsa))
		return true;
	if (key_r->jwk)
		cjose_jwk_release(key_r->jwk);
	return false;
}

int
auth_jwks_parse(const char *text, size_t len, struct auth_jwks **jwks_r, struct why *why_r)
{
	json_error_t error;
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error), *entry;
	const json_t *list = json_object_get(root, "keys");
	struct auth_jwks *jwks;
	size_t i;

	if (!root)
		return why_say(why_r, -EINVAL, "jwks_file", "line %d: %s", error.line,
			       error.text);
	if (!json_is_array(list) || json_array_size(list) > AUTH_JWKS_KEYS_MAX) {
		json_decref(root);
		return why_say(why_r, -EINVAL, "jwks_file",
			       "it is not {\"keys\": [...]} of at most %d keys",
			       AUTH_JWKS_KEYS_MAX);
	}
	jwks = xcalloc(1, sizeof(*jwks));
	json_array_foreach(list, i, entry)
		if (take_key(entry, &jwks->key[jwks->n]))
			jwks->n++;
	json_decref(root);
	ERR_clear_error();	/* errors of skipped keys */
	if (jwks->n == 0) {
		auth_jwks_free(jwks);
		return why_say(why_r, -EINVAL, "jwks_file", "it has no key with a kid that can "
			       "be used: RSA of %d to %d bits, or EC on P-256",
			       RSA_BITS_MIN, RSA_BITS_MAX);
	}
	*jwks_r = jwks;
	return 0;
}

void
auth_jwks_free(struct auth_jwks *jwks)
{
	if (!jwks)
		return;
	for (size_t i = 0; i < jwks->n; i++)
		cjose_jwk_release(jwks->key[i].jwk);
	free(jwks);
}

size_t
auth_jwks_count(const struct auth_jwks *jwks)
{
	return jwks->n;
}

const cjose_jwk_t *
auth_jwks_find(const struct auth_jwks *jwks, const char *kid, enum auth_alg alg)
{
	for (size_t i = 0; i < jwks->n; i++)
		if (strcmp(jwks->key[i].kid, kid) == 0 && jwks_fits(&jwks->key[i], alg))
			return jwks->key[i].jwk;
	return NULL;
}
