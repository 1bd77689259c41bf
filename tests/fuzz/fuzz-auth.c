/* SPDX-License-Identifier: Apache-2.0 */
/* Authentication, by the first byte of the input: a token file (what is accepted is printed
 * and read the same), a JWKS, the text of an access token, or the claims of one that is
 * signed as it must be. Must hold: an admitted client has a name of visible ASCII, and the text of
 * a token alone admits no client, because no token here was signed. */
#include "fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjose/cjose.h>
#include <jansson.h>

#include "auth/jwks.h"
#include "auth/jwt.h"
#include "policy/config.h"
#include "policy/tokens.h"

#define NOW 1795240800

static cjose_jwk_t *key;
static struct auth_jwt *jwt;

static void
set_up(void)
{
	static struct config_list scopes;
	static char path[64];
	const struct auth_jwt_rules rules = { .jwks_file = path, .issuer = "https://i",
					      .audience = "https://r", .scopes = &scopes };
	int fd = memfd_create("jwks", MFD_CLOEXEC);
	char *public;
	cjose_err error;

	key = cjose_jwk_create_EC_random(CJOSE_JWK_EC_P_256, &error);
	MUST(key && fd >= 0 && fchmod(fd, 0600) == 0);
	MUST(cjose_jwk_set_kid(key, "k", 1, &error));
	public = cjose_jwk_to_json(key, false, &error);
	MUST(dprintf(fd, "{\"keys\":[%s]}", public) > 0);
	free(public);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	MUST(auth_jwt_new(&rules, &jwt, NULL) == 0);
}

static void
try_tokens(const char *text, size_t len)
{
	struct tokens tokens, again;
	char *printed, *second;

	if (tokens_parse(text, len, &tokens, NULL) < 0)
		return;
	printed = tokens_print(&tokens);
	MUST(tokens_parse(printed, strlen(printed), &again, NULL) == 0);
	second = tokens_print(&again);
	MUST(strcmp(printed, second) == 0);
	free(printed);
	free(second);
	tokens_done(&tokens);
	tokens_done(&again);
}

static void
try_jwks(const char *text, size_t len)
{
	struct auth_jwks *jwks;

	if (auth_jwks_parse(text, len, &jwks, NULL) < 0)
		return;
	MUST(auth_jwks_count(jwks) > 0 && auth_jwks_count(jwks) <= AUTH_JWKS_KEYS_MAX);
	auth_jwks_free(jwks);
}

static void
try_claims(const char *text, size_t len)
{
	struct auth_subject subject;
	cjose_err error;
	cjose_header_t *header = cjose_header_new(&error);
	cjose_jws_t *jws;
	const char *token;

	MUST(cjose_header_set(header, "alg", "ES256", &error));
	MUST(cjose_header_set(header, "kid", "k", &error));
	jws = cjose_jws_sign(key, header, (const uint8_t *)text, len, &error);
	if (jws && cjose_jws_export(jws, &token, &error) &&
	    !auth_jwt_check(jwt, token, 0, NOW, &subject)) {
		MUST(*subject.sub && strlen(subject.sub) <= AUTH_SUB_MAX);
		for (const char *c = subject.sub; *c; c++)
			MUST(*c > ' ' && *c <= '~');
		MUST(memmem(text, len, "https:", 6) || memmem(text, len, "\\", 1));
	}
	if (jws)
		cjose_jws_release(jws);
	cjose_header_release(header);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct auth_subject subject;
	const char *id;
	char *text;

	if (!jwt)
		set_up();
	if (size == 0 || size > 65536)
		return 0;
	text = strndup((const char *)data + 1, size - 1);
	MUST(text);
	switch (*data) {
	case 'T':
		try_tokens((const char *)data + 1, size - 1);
		break;
	case 'K':
		try_jwks((const char *)data + 1, size - 1);
		break;
	case 'C':
		try_claims((const char *)data + 1, size - 1);
		break;
	default:
		MUST(auth_jwt_check(jwt, text, 0, NOW, &subject));
		if (token_is_text(text, &id))
			MUST(strlen(text) == TOKEN_TEXT && id == text + 4);
		break;
	}
	free(text);
	return 0;
}
