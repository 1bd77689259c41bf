/* SPDX-License-Identifier: Apache-2.0 */
/* Access tokens of OAuth: the right ones are taken, everything else is refused for the
 * reason that it has. */
#include "auth/jwt.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "auth/file.h"
#include "base/why.h"
#include "policy/config.h"
#include "tests/unit/auth/auth_rig.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define LEEWAY 30

/* 1795240800 and what is around it. */
#define ISS "\"iss\":\"" RIG_ISSUER "\","
#define AUD "\"aud\":\"" RIG_RESOURCE "\","
#define EXP "\"exp\":1795241400"
#define SUB "\"sub\":\"alice\","
#define GOOD "{" ISS AUD SUB EXP "}"

static struct config_list scopes;	/* none, unless a test says so */
static uint64_t clock_ms = 1000;

static struct auth_jwt *
make(const struct rig *rig)
{
	const struct auth_jwt_rules rules = {
		.jwks_file = rig->jwks, .issuer = RIG_ISSUER, .audience = RIG_RESOURCE,
		.scopes = &scopes, .leeway_s = LEEWAY,
	};
	cjose_jwk_t *const keys[] = { rig->rsa, rig->ec };
	struct auth_jwt *jwt = NULL;
	char *text = rig_jwks(keys, N(keys));

	rig_write(rig->jwks, text);
	free(text);
	assert_int_equal(auth_jwt_new(&rules, &jwt, NULL), 0);
	return jwt;
}

static const char *
check(struct auth_jwt *jwt, const char *text, struct auth_subject *subject_r)
{
	return auth_jwt_check(jwt, text, clock_ms, RIG_NOW, subject_r);
}

/* NULL: it must be taken. Frees text. */
static void
expect(struct auth_jwt *jwt, char *text, const char *why)
{
	struct auth_subject subject = { .sub = "nobody" };
	const char *got = check(jwt, text, &subject);

	if ((got == NULL) != (why == NULL) || (got && strcmp(got, why) != 0))
		fail_msg("%.200s: %s, not %s", text, got ? got : "taken", why ? why : "taken");
	if (why == NULL)
		assert_string_equal(subject.sub, "alice");
	free(text);
}

static void
right_ones_are_taken(void **state)
{
	struct rig *rig = *state;
	struct auth_jwt *jwt = make(rig);

	expect(jwt, rig_sign(rig->rsa, "RS256", "rsa", "at+jwt", GOOD), NULL);
	expect(jwt, rig_sign(rig->rsa, "PS256", "rsa", "JWT", GOOD), NULL);
	expect(jwt, rig_sign(rig->ec, "ES256", "ec", NULL, GOOD), NULL);
	auth_jwt_free(jwt);
}

static const struct claims_case {
	const char *claims, *why;
} claims_cases[] = {
	{ "{" ISS SUB EXP ",\"aud\":[\"x\",\"" RIG_RESOURCE "\"]}", NULL },
	{ "{" ISS SUB EXP ",\"aud\":[]}", "for another service" },
	{ "{" ISS SUB EXP ",\"aud\":[\"x\"]}", "for another service" },
	{ "{" ISS SUB EXP ",\"aud\":[[\"" RIG_RESOURCE "\"]]}", "for another service" },
	{ "{" ISS SUB EXP ",\"aud\":\"" RIG_RESOURCE "/\"}", "for another service" },
	{ "{" ISS SUB EXP ",\"aud\":\"https://py.example.org\"}", "for another service" },
	{ "{" ISS SUB EXP ",\"aud\":null}", "for another service" },
	{ "{" ISS SUB EXP "}", "for another service" },
	{ "{" AUD SUB EXP "}", "another issuer" },
	{ "{" AUD SUB EXP ",\"iss\":\"https://id.example.org\"}", "another issuer" },
	{ "{" AUD SUB EXP ",\"iss\":[\"" RIG_ISSUER "\"]}", "another issuer" },
	{ "{" ISS AUD "\"sub\":\"alice\"}", "there is no time of expiry" },
	{ "{" ISS AUD SUB "\"exp\":\"1795241400\"}", "there is no time of expiry" },
	{ "{" ISS AUD SUB "\"exp\":-1}", "there is no time of expiry" },
	{ "{" ISS AUD SUB "\"exp\":1e300}", "there is no time of expiry" },
	{ "{" ISS AUD SUB "\"exp\":1795240800}", NULL },	/* leeway */
	{ "{" ISS AUD SUB "\"exp\":1795240771}", NULL },
	{ "{" ISS AUD SUB "\"exp\":1795240770}", "expired" },
	{ "{" ISS AUD SUB "\"exp\":1}", "expired" },
	{ "{" ISS AUD SUB EXP ",\"nbf\":1795240830}", NULL },
	{ "{" ISS AUD SUB EXP ",\"nbf\":1795240831}", "not valid yet" },
	{ "{" ISS AUD SUB EXP ",\"nbf\":\"now\"}", "strange times" },
	{ "{" ISS AUD SUB EXP ",\"iat\":1795240800.5}", NULL },
	{ "{" ISS AUD SUB EXP ",\"iat\":1795240831}", "not valid yet" },
	{ "{" ISS AUD SUB EXP ",\"iat\":true}", "strange times" },
	{ "{" ISS AUD SUB "\"exp\":1795240790,\"iat\":1795240810}", "strange times" },
	{ "{" ISS AUD EXP "}", "no usable subject" },
	{ "{" ISS AUD EXP ",\"sub\":\"\"}", "no usable subject" },
	{ "{" ISS AUD EXP ",\"sub\":7}", "no usable subject" },
	{ "{" ISS AUD EXP ",\"sub\":\"a b\"}", "no usable subject" },
	{ "{" ISS AUD EXP ",\"sub\":\"a\\nb\"}", "no usable subject" },
	{ "{" ISS AUD EXP ",\"sub\":\"\\u00e9\"}", "no usable subject" },
	{ "{" ISS AUD EXP ",\"sub\":\"alice\\u0000\"}", "claims not understood" },
	{ "{" ISS AUD SUB SUB EXP "}", "claims not understood" },
	{ "{" ISS AUD SUB EXP "}x", "claims not understood" },
	{ "[]", "claims not understood" },
	{ "", "no JWT" },	/* an empty part */
};

static void
claims_are_judged(void **state)
{
	struct rig *rig = *state;
	struct auth_jwt *jwt = make(rig);

	for (size_t i = 0; i < N(claims_cases); i++)
		expect(jwt, *claims_cases[i].claims
				? rig_sign(rig->ec, "ES256", "ec", NULL, claims_cases[i].claims)
				: strdup("e30..e30"), claims_cases[i].why);
	auth_jwt_free(jwt);
}

static void
subjects_are_bounded(void **state)
{
	struct rig *rig = *state;
	struct auth_jwt *jwt = make(rig);
	struct auth_subject subject;
	char claims[1024], sub[AUTH_SUB_MAX + 2] = "", *text;

	memset(sub, 's', AUTH_SUB_MAX);
	for (int longer = 0; longer < 2; longer++) {
		snprintf(claims, sizeof(claims), "{" ISS AUD EXP ",\"sub\":\"%s%s\"}", sub,
			 longer ? "s" : "");
		text = rig_sign(rig->ec, "ES256", "ec", NULL, claims);
		if (longer) {
			assert_string_equal(check(jwt, text, &subject), "no usable subject");
		} else {
			assert_null(check(jwt, text, &subject));
			assert_string_equal(subject.sub, sub);
		}
		free(text);
	}
	auth_jwt_free(jwt);
}

static void
no_algorithm_of_the_tokens_own_choice(void **state)
{
	struct rig *rig = *state;
	struct auth_jwt *jwt = make(rig);
	cjose_jwk_t *const keys[] = { rig->rsa };
	cjose_err error;
	char *public = cjose_jwk_to_json(rig->rsa, false, &error), *jwks = rig_jwks(keys, 1);
	cjose_jwk_t *secret;

	expect(jwt, rig_forge("{\"alg\":\"none\",\"kid\":\"rsa\"}", GOOD, "x"),
	       "algorithm not taken");
	expect(jwt, rig_forge("{\"alg\":\"None\",\"kid\":\"rsa\"}", GOOD, "x"),
	       "algorithm not taken");
	expect(jwt, rig_forge("{\"kid\":\"rsa\"}", GOOD, "x"), "algorithm not taken");
	expect(jwt, rig_forge("{\"alg\":[\"RS256\"],\"kid\":\"rsa\"}", GOOD, "x"),
	       "algorithm not taken");
	/* what is public taken for a shared secret */
	for (int i = 0; i < 2; i++) {
		const char *text = i ? jwks : public;

		secret = cjose_jwk_create_oct_spec((const uint8_t *)text, strlen(text), &error);
		expect(jwt, rig_sign(secret, "HS256", "rsa", NULL, GOOD), "algorithm not taken");
		cjose_jwk_release(secret);
	}
	/* the other kind of key */
	expect(jwt, rig_sign(rig->rsa, "RS256", "ec", NULL, GOOD), "unknown key");
	expect(jwt, rig_sign(rig->ec, "ES256", "rsa", NULL, GOOD), "unknown key");
	expect(jwt, rig_sign(rig->rsa, "RS512", "rsa", NULL, GOOD), "algorithm not taken");
	free(public);
	free(jwks);
	auth_jwt_free(jwt);
}

static void
no_other_key(void **state)
{
	struct rig *rig = *state;
	struct auth_jwt *jwt = make(rig);
	cjose_err error;
	char *public, *header;

	expect(jwt, rig_sign(rig->other_rsa, "RS256", "rsa", NULL, GOOD), "wrong signature");
	expect(jwt, rig_sign(rig->other_rsa, "RS256", "other", NULL, GOOD), "unknown key");
	expect(jwt, rig_sign(rig->rsa, "RS256", NULL, NULL, GOOD), "unknown key");
	/* a key that the token itself contains is not used */
	public = cjose_jwk_to_json(rig->other_rsa, false, &error);
	assert_true(asprintf(&header, "{\"alg\":\"RS256\",\"kid\":\"other\",\"jwk\":%s}",
			     public) > 0);
	expect(jwt, rig_forge(header, GOOD, "x"), "unknown key");
	free(header);
	free(public);
	auth_jwt_free(jwt);
}

static void
headers_are_judged(void **state)
{
	struct rig *rig = *state;
	struct auth_jwt *jwt = make(rig);

	expect(jwt, rig_sign(rig->rsa, "RS256", "rsa", "logout+jwt", GOOD), "no access token");
	expect(jwt, rig_forge("{\"alg\":\"RS256\",\"kid\":\"rsa\",\"crit\":[\"b64\"]}", GOOD,
			      "x"), "critical header is unknown");
	expect(jwt, rig_forge("{\"alg\":\"RS256\",\"alg\":\"none\",\"kid\":\"rsa\"}", GOOD, "x"),
	       "header not understood");
	expect(jwt, rig_forge("[]", GOOD, "x"), "header not understood");
	expect(jwt, rig_forge("{\"alg\":\"RS256\",\"kid\":\"rsa\"}", GOOD, "x"),
	       "wrong signature");
	auth_jwt_free(jwt);
}

/* Cut anywhere, or with any one bit of it turned, it is refused. */
static void
nothing_of_it_may_be_missing_or_different(void **state)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	struct rig *rig = *state;
	struct auth_jwt *jwt = make(rig);
	char *text = rig_sign(rig->ec, "ES256", "ec", NULL, GOOD);
	struct auth_subject subject;
	size_t len = strlen(text);

	assert_null(check(jwt, text, &subject));
	for (size_t i = 0; i < len; i++) {
		char before = text[i];

		text[i] = '\0';
		assert_non_null(check(jwt, text, &subject));
		if (before != '.') {
			/* the highest of six bits: the lowest ones may stand for nothing */
			text[i] = digits[(size_t)(strchr(digits, before) - digits) ^ 32];
			assert_non_null(check(jwt, text, &subject));
		}
		text[i] = before;
	}
	assert_null(check(jwt, text, &subject));
	free(text);
	auth_jwt_free(jwt);
}

static void
parts_are_base64url(void **state)
{
	static const char *const wrong[] = {
		"", ".", "..", "e30", "e30.e30", "e30.e30.", ".e30.e30", "e30..e30",
		"e30.e30.e30.", "e30.e30.e30.e30", "e30A1.e30.e30", "e30.e30A1.e30",
		"e30.e30.e30A1", "A.A.A", "e30=.e30.e30", "e30.A=AB.e30", "e30.e30.A=AB",
		"e30.e30.====", "e+0.e30.e30", "e/0.e30.e30", "e30.e30.e3 0", "e30.e30.e30\n",
	};
	struct rig *rig = *state;
	struct auth_jwt *jwt = make(rig);

	for (size_t i = 0; i < N(wrong); i++) {
		assert_false(auth_jwt_is_text(wrong[i]));
		expect(jwt, strdup(wrong[i]), "no JWT");
	}
	assert_true(auth_jwt_is_text("e30.e30.e30"));
	auth_jwt_free(jwt);
}

static void
huge_ones_are_not_looked_at(void **state)
{
	struct rig *rig = *state;
	struct auth_jwt *jwt = make(rig);
	char *text = malloc(1 << 20), *header, *claims = malloc(AUTH_JWT_MAX), *deep;

	memset(text, 'A', (1 << 20) - 1);
	text[(1 << 20) - 1] = '\0';
	expect(jwt, text, "too long");
	header = malloc(4096);
	sprintf(header, "{\"alg\":\"RS256\",\"kid\":\"rsa\",\"x\":\"%03000d\"}", 0);
	expect(jwt, rig_forge(header, "{}", "x"), "header not understood");
	free(header);
	/* nested as deep as there is room for; signed, so that it is looked at */
	memset(claims, '[', 4000);
	memset(claims + 4000, '\0', 1);
	deep = rig_sign(rig->ec, "ES256", "ec", NULL, claims);
	assert_true(strlen(deep) < AUTH_JWT_MAX);
	expect(jwt, deep, "claims not understood");
	free(claims);
	auth_jwt_free(jwt);
}

static void
scopes_are_needed_all(void **state)
{
	static const struct {
		const char *more;
		bool lacks;
	} cases[] = {
		{ "", true },
		{ ",\"scope\":\"run\"", true },
		{ ",\"scope\":\"run read\"", false },
		{ ",\"scope\":\"x  read run y\"", false },
		{ ",\"scope\":\"runread\"", true },
		{ ",\"scope\":\"runs read\"", true },
		{ ",\"scope\":\"Run read\"", true },
		{ ",\"scope\":7", true },
		{ ",\"scp\":[\"read\",\"run\"]", false },
		{ ",\"scp\":[\"read run\"]", true },
		{ ",\"scp\":\"read run\"", false },
		/* the standard's name decides where both are */
		{ ",\"scope\":\"\",\"scp\":\"read run\"", true },
	};
	struct rig *rig = *state;
	struct auth_jwt *jwt = make(rig);
	struct auth_subject subject;
	char run[] = "run", read[] = "read", *words[] = { run, read }, claims[512], *text;

	scopes = (struct config_list){ .item = words, .n = 2 };
	for (size_t i = 0; i < N(cases); i++) {
		snprintf(claims, sizeof(claims), "{" ISS AUD SUB EXP "%s}", cases[i].more);
		text = rig_sign(rig->ec, "ES256", "ec", NULL, claims);
		assert_null(check(jwt, text, &subject));
		if (subject.lacks_scope != cases[i].lacks)
			fail_msg("%s", cases[i].more);
		free(text);
	}
	scopes = (struct config_list){ .n = 0 };
	auth_jwt_free(jwt);
}

static void
the_file_is_followed(void **state)
{
	struct rig *rig = *state;
	struct auth_jwt *jwt = make(rig);
	cjose_jwk_t *const keys[] = { rig->other_rsa };
	char *jwks = rig_jwks(keys, 1);
	char *old = rig_sign(rig->rsa, "RS256", "rsa", NULL, GOOD);
	char *new = rig_sign(rig->other_rsa, "RS256", "other", NULL, GOOD);
	struct auth_subject subject;

	assert_null(check(jwt, old, &subject));
	rig_write(rig->jwks, jwks);
	/* within the same second the file is not read */
	assert_null(check(jwt, old, &subject));
	clock_ms += AUTH_FILE_LOOK_MS;
	assert_string_equal(check(jwt, old, &subject), "unknown key");
	assert_null(check(jwt, new, &subject));
	/* a file that is broken, writable by others, or gone changes nothing */
	rig_write(rig->jwks, "{\"keys\":[");
	clock_ms += AUTH_FILE_LOOK_MS;
	assert_null(check(jwt, new, &subject));
	rig_write(rig->jwks, "{\"keys\":[]}");
	clock_ms += AUTH_FILE_LOOK_MS;
	assert_null(check(jwt, new, &subject));
	assert_int_equal(unlink(rig->jwks), 0);
	clock_ms += AUTH_FILE_LOOK_MS;
	assert_null(check(jwt, new, &subject));
	free(jwks);
	free(old);
	free(new);
	auth_jwt_free(jwt);
}

/* Of a file with one key that is changed by change: can it be used? */
static bool
is_usable(const struct rig *rig, cjose_jwk_t *key, void (*change)(json_t *entry))
{
	const struct auth_jwt_rules rules = {
		.jwks_file = rig->jwks, .issuer = RIG_ISSUER, .audience = RIG_RESOURCE,
		.scopes = &scopes,
	};
	char *text = rig_jwks(&key, 1);
	json_t *root = json_loads(text, 0, NULL);
	struct auth_jwt *jwt = NULL;
	struct why why = { .text = "" };
	int r;

	if (change)
		change(json_array_get(json_object_get(root, "keys"), 0));
	free(text);
	text = json_dumps(root, 0);
	rig_write(rig->jwks, text);
	r = auth_jwt_new(&rules, &jwt, &why);
	if (r < 0)
		assert_non_null(strstr(why.text, "no key with a kid"));
	auth_jwt_free(jwt);
	free(text);
	json_decref(root);
	return r == 0;
}

static void for_signing(json_t *e) { json_object_set_new(e, "use", json_string("sig")); }
static void for_secrets(json_t *e) { json_object_set_new(e, "use", json_string("enc")); }
static void for_rs256(json_t *e) { json_object_set_new(e, "alg", json_string("RS256")); }
static void for_oaep(json_t *e) { json_object_set_new(e, "alg", json_string("RSA-OAEP")); }
static void for_es256(json_t *e) { json_object_set_new(e, "alg", json_string("ES256")); }
static void to_verify(json_t *e) { json_object_set_new(e, "key_ops", json_pack("[s]", "verify")); }
static void to_sign(json_t *e) { json_object_set_new(e, "key_ops", json_pack("[s]", "sign")); }
static void without_kid(json_t *e) { json_object_del(e, "kid"); }
static void symmetric(json_t *e) { json_object_set_new(e, "kty", json_string("oct")); }
static void without_n(json_t *e) { json_object_del(e, "n"); }
static void padded(json_t *e) { json_object_set_new(e, "e", json_string("AQAB====")); }
static void padded_within(json_t *e) { json_object_set_new(e, "e", json_string("A=AB")); }
static void one_too_many(json_t *e) { json_object_set_new(e, "e", json_string("AQABA")); }
static void empty(json_t *e) { json_object_set_new(e, "e", json_string("")); }
static void off_the_curve(json_t *e) { json_object_set(e, "x", json_object_get(e, "y")); }

static void
keys_are_judged(void **state)
{
	static const uint8_t e[] = { 1, 0, 1 };
	struct rig *rig = *state;
	cjose_err error;
	cjose_jwk_t *weak = cjose_jwk_create_RSA_random(1024, e, sizeof(e), &error);
	cjose_jwk_t *curve = cjose_jwk_create_EC_random(CJOSE_JWK_EC_P_521, &error);

	assert_true(cjose_jwk_set_kid(weak, "weak", 4, &error));
	assert_true(cjose_jwk_set_kid(curve, "curve", 5, &error));
	assert_true(is_usable(rig, rig->rsa, NULL));
	assert_true(is_usable(rig, rig->rsa, for_signing));
	assert_true(is_usable(rig, rig->rsa, for_rs256));
	assert_true(is_usable(rig, rig->ec, for_es256));
	assert_true(is_usable(rig, rig->ec, to_verify));
	assert_false(is_usable(rig, rig->rsa, for_secrets));
	assert_false(is_usable(rig, rig->rsa, for_oaep));
	assert_false(is_usable(rig, rig->rsa, for_es256));
	assert_false(is_usable(rig, rig->ec, for_rs256));
	assert_false(is_usable(rig, rig->ec, to_sign));
	assert_false(is_usable(rig, rig->rsa, without_kid));
	assert_false(is_usable(rig, rig->rsa, symmetric));
	assert_false(is_usable(rig, rig->rsa, without_n));
	assert_false(is_usable(rig, rig->ec, off_the_curve));
	assert_false(is_usable(rig, rig->rsa, padded));
	assert_false(is_usable(rig, rig->rsa, padded_within));
	assert_false(is_usable(rig, rig->rsa, one_too_many));
	assert_false(is_usable(rig, rig->rsa, empty));
	assert_false(is_usable(rig, weak, NULL));
	assert_false(is_usable(rig, curve, NULL));
	cjose_jwk_release(weak);
	cjose_jwk_release(curve);
}

static void
files_that_say_nothing_stop_the_start(void **state)
{
	struct rig *rig = *state;
	const struct auth_jwt_rules rules = {
		.jwks_file = rig->jwks, .issuer = RIG_ISSUER, .audience = RIG_RESOURCE,
		.scopes = &scopes,
	};
	cjose_jwk_t *const keys[] = { rig->rsa };
	char *text = rig_jwks(keys, 1), *huge = malloc(AUTH_JWKS_MAX + 2);
	struct auth_jwt *jwt = NULL;

	unlink(rig->jwks);
	assert_int_equal(auth_jwt_new(&rules, &jwt, NULL), -ENOENT);
	assert_int_equal(mkfifo(rig->jwks, 0600), 0);	/* it is not waited for a writer */
	assert_int_equal(auth_jwt_new(&rules, &jwt, NULL), -EINVAL);
	assert_int_equal(unlink(rig->jwks), 0);
	memset(huge, ' ', AUTH_JWKS_MAX + 1);
	huge[AUTH_JWKS_MAX + 1] = '\0';
	memcpy(huge, text, strlen(text));
	rig_write(rig->jwks, huge);
	assert_int_equal(auth_jwt_new(&rules, &jwt, NULL), -EFBIG);
	rig_write(rig->jwks, text);
	assert_int_equal(chmod(rig->jwks, 0666), 0);
	assert_int_equal(auth_jwt_new(&rules, &jwt, NULL), -EPERM);
	assert_int_equal(chmod(rig->jwks, 0644), 0);
	assert_int_equal(auth_jwt_new(&rules, &jwt, NULL), 0);
	auth_jwt_free(jwt);
	free(text);
	free(huge);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(right_ones_are_taken),
		cmocka_unit_test(claims_are_judged),
		cmocka_unit_test(subjects_are_bounded),
		cmocka_unit_test(no_algorithm_of_the_tokens_own_choice),
		cmocka_unit_test(no_other_key),
		cmocka_unit_test(headers_are_judged),
		cmocka_unit_test(nothing_of_it_may_be_missing_or_different),
		cmocka_unit_test(parts_are_base64url),
		cmocka_unit_test(huge_ones_are_not_looked_at),
		cmocka_unit_test(scopes_are_needed_all),
		cmocka_unit_test(the_file_is_followed),
		cmocka_unit_test(keys_are_judged),
		cmocka_unit_test(files_that_say_nothing_stop_the_start),
	};

	return cmocka_run_group_tests(tests, rig_set_up, rig_tear_down);
}
