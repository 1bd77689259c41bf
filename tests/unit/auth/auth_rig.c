/* SPDX-License-Identifier: Apache-2.0 */
/* See auth_rig.h. */
#include "tests/unit/auth/auth_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

static cjose_jwk_t *
named(cjose_jwk_t *key, const char *kid)
{
	cjose_err error;

	assert_non_null(key);
	assert_true(cjose_jwk_set_kid(key, kid, strlen(kid), &error));
	return key;
}

int
rig_set_up(void **state)
{
	static const uint8_t e[] = { 1, 0, 1 };
	struct rig *rig = calloc(1, sizeof(*rig));
	cjose_err error;

	strcpy(rig->dir, "test-auth-XXXXXX");
	assert_non_null(mkdtemp(rig->dir));
	snprintf(rig->tokens, sizeof(rig->tokens), "%s/tokens", rig->dir);
	snprintf(rig->jwks, sizeof(rig->jwks), "%s/jwks", rig->dir);
	rig->rsa = named(cjose_jwk_create_RSA_random(2048, e, sizeof(e), &error), "rsa");
	rig->other_rsa = named(cjose_jwk_create_RSA_random(2048, e, sizeof(e), &error), "other");
	rig->ec = named(cjose_jwk_create_EC_random(CJOSE_JWK_EC_P_256, &error), "ec");
	*state = rig;
	return 0;
}

int
rig_tear_down(void **state)
{
	struct rig *rig = *state;

	cjose_jwk_release(rig->rsa);
	cjose_jwk_release(rig->other_rsa);
	cjose_jwk_release(rig->ec);
	unlink(rig->tokens);
	unlink(rig->jwks);
	rmdir(rig->dir);
	free(rig);
	return 0;
}

void
rig_write(const char *path, const char *text)
{
	char name[80];
	FILE *file;

	snprintf(name, sizeof(name), "%s.new", path);
	file = fopen(name, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(rename(name, path), 0);
}

char *
rig_jwks(cjose_jwk_t *const *keys, size_t n)
{
	json_t *list = json_array(), *root;
	cjose_err error;
	char *text;

	for (size_t i = 0; i < n; i++) {
		text = cjose_jwk_to_json(keys[i], false, &error);
		assert_non_null(text);
		json_array_append_new(list, json_loads(text, 0, NULL));
		free(text);
	}
	root = json_pack("{s:o}", "keys", list);
	text = json_dumps(root, 0);
	json_decref(root);
	return text;
}

char *
rig_sign(cjose_jwk_t *key, const char *alg, const char *kid, const char *typ,
	 const char *claims)
{
	cjose_err error;
	cjose_header_t *header = cjose_header_new(&error);
	cjose_jws_t *jws;
	const char *text;
	char *copy;

	assert_true(cjose_header_set(header, "alg", alg, &error));
	if (kid)
		assert_true(cjose_header_set(header, "kid", kid, &error));
	if (typ)
		assert_true(cjose_header_set(header, "typ", typ, &error));
	jws = cjose_jws_sign(key, header, (const uint8_t *)claims, strlen(claims), &error);
	assert_non_null(jws);
	assert_true(cjose_jws_export(jws, &text, &error));
	copy = strdup(text);
	cjose_jws_release(jws);
	cjose_header_release(header);
	return copy;
}

char *
rig_forge(const char *header, const char *claims, const char *signature)
{
	const char *const part[] = { header, claims, signature };
	char *encoded[3], *text;
	cjose_err error;
	size_t len;

	for (int i = 0; i < 3; i++)
		assert_true(cjose_base64url_encode((const uint8_t *)part[i], strlen(part[i]),
						   &encoded[i], &len, &error));
	assert_true(asprintf(&text, "%s.%s.%s", encoded[0], encoded[1], encoded[2]) > 0);
	for (int i = 0; i < 3; i++)
		free(encoded[i]);
	return text;
}
