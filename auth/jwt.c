/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the keys of the JWKS file's last valid state.
 * Reads:   tokens of clients, hostile until their signature is proved. Sizes, header and claims
 * are checked here, the signature by cjose. */
#include "auth/jwt.h"

#include <errno.h>
#include <strings.h>

#include <cjose/jws.h>
#include <jansson.h>
#include <openssl/err.h>

#include "auth/file.h"
#include "auth/jwks.h"
#include "base/base64.h"
#include "base/log.h"
#include "base/member.h"
#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "policy/config.h"

#define HEADER_MAX 2048		/* characters of a token's first part */
#define AUDIENCES_MAX 32
#define SECONDS_MAX 253402300799.0	/* the end of the year 9999 */

struct auth_jwt {
	struct auth_jwt_rules rules;
	struct auth_file file;
	struct auth_jwks *jwks;
};

/* ---- the file ---- */

static int
jwt_read_again(struct auth_jwt *jwt, uint64_t now_ms, struct why *why_r)
{
	own_mem char *text = NULL;
	struct auth_jwks *jwks;
	size_t len;
	int r = auth_file_read(&jwt->file, now_ms, &text, &len);

	if (r < 0)
		return why_say(why_r, r, "jwks_file", "%s: %s", jwt->file.path,
			       r == -EPERM ? "others than its owner may write to it"
					   : strerror(-r));
	if (r == 0)
		return 0;
	r = auth_jwks_parse(text, len, &jwks, why_r);
	if (r < 0)
		return r;
	auth_jwks_free(jwt->jwks);
	jwt->jwks = jwks;
	return 1;
}

int
auth_jwt_new(const struct auth_jwt_rules *rules, struct auth_jwt **jwt_r, struct why *why_r)
{
	struct auth_jwt *jwt = xcalloc(1, sizeof(*jwt));
	struct why why;
	int r;

	jwt->rules = *rules;
	jwt->file = (struct auth_file){ .path = rules->jwks_file, .bytes_max = AUTH_JWKS_MAX };
	r = jwt_read_again(jwt, 0, &why);
	if (r < 0) {
		auth_jwt_free(jwt);
		return why_say(why_r, r, "jwks_file", "jwks_file: %s", why.text);
	}
	*jwt_r = jwt;
	return 0;
}

void
auth_jwt_free(struct auth_jwt *jwt)
{
	if (!jwt)
		return;
	auth_jwks_free(jwt->jwks);
	free(jwt);
}

/* Reads the file again if it has changed. The result is logged once for each state of the file. */
static void
jwt_keep_up(struct auth_jwt *jwt, uint64_t now_ms)
{
	struct log_quoted quoted;
	struct why why;
	int r = jwt_read_again(jwt, now_ms, &why);

	if (r > 0)
		log_line(LOG_INFO, "jwks-read", "keys=%zu", auth_jwks_count(jwt->jwks));
	else if (r < 0)
		log_line(LOG_ERR, "jwks-kept", "text=%s",
			 log_quote(&quoted, why.text, strlen(why.text)));
}

/* ---- the header ---- */

bool
auth_jwt_is_text(const char *text)
{
	for (int part = 0; part < 3; part++) {
		size_t len = strcspn(text, ".");

		if (!auth_is_base64url(text, len) || text[len] != (part < 2 ? '.' : '\0'))
			return false;
		text += len + 1;
	}
	return true;
}

/* NULL: not an object, or it has a key twice or a NUL in a string. */
static json_t *
load_object(const void *text, size_t len)
{
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);

	if (json_is_object(root))
		return root;
	json_decref(root);
	return NULL;
}

static json_t *
load_header(const char *text)
{
	size_t len = strcspn(text, "."), decoded_len;
	char *decoded;
	json_t *header;

	decoded = len <= HEADER_MAX ? base64url_decode(text, len, &decoded_len) : NULL;
	if (!decoded)
		return NULL;
	header = load_object(decoded, decoded_len);
	free(decoded);
	return header;
}

/* A signed text of another kind by the same issuer, such as a logout token, is not an access
 * token. Many issuers write only JWT, or nothing. */
static bool
is_access_token(const json_t *typ)
{
	static const char *const types[] = { "at+jwt", "application/at+jwt", "JWT" };
	const char *text = json_string_value(typ);

	for (size_t i = 0; text && i < sizeof(types) / sizeof(*types); i++)
		if (strcasecmp(text, types[i]) == 0)
			return true;
	return !typ;
}

/* NULL, and the key that must have signed; or the mistake. */
static const char *
jwt_judge_header(const struct auth_jwt *jwt, const json_t *header, const cjose_jwk_t **key_r)
{
	const char *name = member_text(header, "alg");
	const char *kid = member_text(header, "kid");
	enum auth_alg alg = name ? auth_alg_named(name) : AUTH_ALGS;

	if (alg == AUTH_ALGS)
		return "algorithm not taken";
	/* Extensions listed in "crit" must be understood; none is. */
	if (json_object_get(header, "crit"))
		return "critical header is unknown";
	if (!is_access_token(json_object_get(header, "typ")))
		return "no access token";
	*key_r = kid ? auth_jwks_find(jwt->jwks, kid, alg) : NULL;
	return *key_r ? NULL : "unknown key";
}

/* ---- the claims ---- */

/* False: absent (then *seconds_r is unchanged), or not a time. */
static bool
time_of(const json_t *claims, const char *name, double *seconds_r)
{
	const json_t *value = json_object_get(claims, name);
	double seconds = json_number_value(value);

	if (!json_is_number(value) || !(seconds >= 0 && seconds <= SECONDS_MAX))
		return false;
	*seconds_r = seconds;
	return true;
}

static const char *
judge_times(const json_t *claims, double now, double leeway)
{
	double expires, issued = 0, since = 0;

	if (!time_of(claims, "exp", &expires))
		return "there is no time of expiry";
	if (now >= expires + leeway)
		return "expired";
	if (json_object_get(claims, "nbf") && !time_of(claims, "nbf", &since))
		return "strange times";
	if (json_object_get(claims, "iat") && !time_of(claims, "iat", &issued))
		return "strange times";
	if (since > now + leeway || issued > now + leeway)
		return "not valid yet";
	return issued > expires || since > expires ? "strange times" : NULL;
}

static bool
jwt_is_text(const json_t *value, const char *wanted)
{
	return json_is_string(value) && strcmp(json_string_value(value), wanted) == 0;
}

static bool
is_audience(const json_t *audience, const char *wanted)
{
	const json_t *item;
	size_t i;

	if (json_array_size(audience) > AUDIENCES_MAX)
		return false;
	json_array_foreach(audience, i, item)
		if (jwt_is_text(item, wanted))
			return true;
	return jwt_is_text(audience, wanted);
}

static bool
jwt_has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (list += strspn(list, " "); *list; list += strspn(list, " ")) {
		size_t n = strcspn(list, " ");

		if (n == len && memcmp(list, word, n) == 0)
			return true;
		list += n;
	}
	return false;
}

/* "scope" holds words (RFC 8693, 4.2); some issuers have "scp" instead, with words or an array. */
static bool
has_scope(const json_t *claims, const char *wanted)
{
	const json_t *scope = json_object_get(claims, "scope"), *item;
	size_t i;

	if (!scope)
		scope = json_object_get(claims, "scp");
	json_array_foreach(scope, i, item)
		if (jwt_is_text(item, wanted))
			return true;
	return json_is_string(scope) && jwt_has_word(json_string_value(scope), wanted);
}

static bool
take_sub(const json_t *sub, struct auth_subject *subject_r)
{
	const char *text = json_string_value(sub);
	size_t len = text ? strlen(text) : 0;

	if (len == 0 || len > AUTH_SUB_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	memcpy(subject_r->sub, text, len + 1);
	return true;
}

static const char *
judge_claims(const struct auth_jwt_rules *rules, const json_t *claims, int64_t now,
	     struct auth_subject *subject_r)
{
	const char *wrong;

	if (!jwt_is_text(json_object_get(claims, "iss"), rules->issuer))
		return "another issuer";
	if (!is_audience(json_object_get(claims, "aud"), rules->audience))
		return "for another service";
	wrong = judge_times(claims, (double)now, rules->leeway_s);
	if (wrong)
		return wrong;
	if (!take_sub(json_object_get(claims, "sub"), subject_r))
		return "no usable subject";
	subject_r->lacks_scope = false;
	for (size_t i = 0; i < rules->scopes->n; i++)
		if (!has_scope(claims, rules->scopes->item[i]))
			subject_r->lacks_scope = true;
	return NULL;
}

/* ---- the whole ---- */

static const char *
judge_signed(const struct auth_jwt *jwt, const char *text, const cjose_jwk_t *key, int64_t now,
	     struct auth_subject *subject_r)
{
	const char *wrong = "wrong signature";
	cjose_err error;
	cjose_jws_t *jws = cjose_jws_import(text, strlen(text), &error);
	json_t *claims = NULL;
	uint8_t *payload;
	size_t len;

	if (jws && cjose_jws_verify(jws, key, &error) &&
	    cjose_jws_get_plaintext(jws, &payload, &len, &error)) {
		claims = load_object(payload, len);
		wrong = claims ? judge_claims(&jwt->rules, claims, now, subject_r)
			       : "claims not understood";
	}
	json_decref(claims);
	if (jws)
		cjose_jws_release(jws);
	ERR_clear_error();	/* or OpenSSL's error queue would grow with each failure */
	return wrong;
}

const char *
auth_jwt_check(struct auth_jwt *jwt, const char *text, uint64_t now_ms, int64_t now,
	       struct auth_subject *subject_r)
{
	const cjose_jwk_t *key = NULL;
	const char *wrong;
	json_auto_t *header = NULL;

	jwt_keep_up(jwt, now_ms);
	if (strnlen(text, AUTH_JWT_MAX + 1) > AUTH_JWT_MAX)
		return "too long";
	if (!auth_jwt_is_text(text))
		return "no JWT";
	header = load_header(text);
	wrong = header ? jwt_judge_header(jwt, header, &key) : "header not understood";
	return wrong ? wrong : judge_signed(jwt, text, key, now, subject_r);
}
