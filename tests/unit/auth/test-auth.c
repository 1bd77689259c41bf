/* SPDX-License-Identifier: Apache-2.0 */
/* The principal of a request: by the service's own tokens, those of an issuer, a proxy's header,
 * the kernel's word; and what those are told who are refused. */
#include "http/principal.h"

#include <errno.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/keyvalq_struct.h>
#include <jansson.h>
#include <openssl/sha.h>

#include "auth/file.h"
#include "auth/tokens.h"
#include "base/why.h"
#include "http/head.h"
#include "policy/config.h"
#include "policy/keys.h"
#include "policy/tokens.h"
#include "tests/unit/auth/auth_rig.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define HEADERS_MAX 8
#define PROXY_USER "root"	/* whom every machine has */

/* A token that is right, for tenant; its record goes to tokens. */
static void
add_token(struct tokens *tokens, unsigned char number, const char *tenant, int64_t expires,
	  char *text_r)
{
	unsigned char id[TOKEN_ID] = { number }, secret[TOKEN_HASH] = { number };
	struct token token = { .name = "n", .created = 1, .expires = expires };

	token_make(id, secret, token.id, text_r);
	strcpy(token.tenant, tenant);
	SHA256((const unsigned char *)text_r, strlen(text_r), token.hash);
	tokens_add(tokens, &token);
}

static void
write_tokens(const struct rig *rig, const struct tokens *tokens)
{
	char *text = tokens_print(tokens);

	rig_write(rig->tokens, text);
	free(text);
}

/* ---- the service's own tokens ---- */

static void
tokens_are_looked_up(void **state)
{
	struct rig *rig = *state;
	struct auth_tokens *known;
	struct tokens tokens = { .n = 0 };
	const struct token *token;
	char a[TOKEN_TEXT + 1], b[TOKEN_TEXT + 1];
	char before;

	add_token(&tokens, 1, "a", 0, a);
	add_token(&tokens, 2, "b", RIG_NOW, b);
	write_tokens(rig, &tokens);
	assert_int_equal(auth_tokens_new(rig->tokens, &known, NULL), 0);
	assert_null(auth_tokens_check(known, a, 1000, RIG_NOW, &token));
	assert_string_equal(token->tenant, "a");
	assert_null(auth_tokens_check(known, b, 1000, RIG_NOW - 1, &token));
	assert_string_equal(token->tenant, "b");
	assert_string_equal(auth_tokens_check(known, b, 1000, RIG_NOW, &token), "expired");
	/* each character counts */
	for (size_t i = 0; i < TOKEN_TEXT; i++) {
		before = a[i];
		a[i] = before == 'B' ? 'C' : 'B';
		assert_non_null(auth_tokens_check(known, a, 1000, RIG_NOW, &token));
		a[i] = before;
	}
	/* one's secret does not open the other */
	memcpy(b + 4 + TOKEN_ID, a + 4 + TOKEN_ID, TOKEN_TEXT - 4 - TOKEN_ID);
	assert_string_equal(auth_tokens_check(known, b, 1000, 1, &token), "unknown");
	assert_non_null(auth_tokens_check(known, "", 1000, 1, &token));
	auth_tokens_free(known);
	tokens_done(&tokens);
}

/* Counts calls by the first letter of the tenant. */
static void
count_withdrawn(void *arg, const char *tenant)
{
	unsigned int *n = arg;

	n[tenant[0] - 'a']++;
}

static void
the_token_file_is_followed(void **state)
{
	struct rig *rig = *state;
	struct auth_tokens *known;
	struct tokens tokens = { .n = 0 };
	const struct token *token;
	char a[TOKEN_TEXT + 1], b[TOKEN_TEXT + 1];
	unsigned int withdrawn[2] = { 0 };
	uint64_t ms = 1000;

	/* it need not be there at first */
	unlink(rig->tokens);
	assert_int_equal(auth_tokens_new(rig->tokens, &known, NULL), 0);
	auth_tokens_on_withdrawn(known, count_withdrawn, withdrawn);
	add_token(&tokens, 1, "a", 0, a);
	assert_string_equal(auth_tokens_check(known, a, ms, 1, &token), "unknown");
	write_tokens(rig, &tokens);
	ms += AUTH_FILE_LOOK_MS;
	assert_null(auth_tokens_check(known, a, ms, 1, &token));
	add_token(&tokens, 2, "b", 0, b);
	write_tokens(rig, &tokens);
	assert_string_equal(auth_tokens_check(known, b, ms + AUTH_FILE_LOOK_MS - 1, 1, &token),
			    "unknown");
	ms += AUTH_FILE_LOOK_MS;
	assert_null(auth_tokens_check(known, b, ms, 1, &token));
	/* broken, or writable by others: nothing changes */
	rig_write(rig->tokens, "{");
	ms += AUTH_FILE_LOOK_MS;
	assert_null(auth_tokens_check(known, b, ms, 1, &token));
	tokens.token[1].revoked = 2;
	write_tokens(rig, &tokens);
	assert_int_equal(chmod(rig->tokens, 0662), 0);
	ms += AUTH_FILE_LOOK_MS;
	assert_null(auth_tokens_check(known, b, ms, 1, &token));
	assert_int_equal(withdrawn[0] + withdrawn[1], 0);
	assert_int_equal(chmod(rig->tokens, 0640), 0);
	ms += AUTH_FILE_LOOK_MS;
	auth_tokens_keep_up(known, ms);
	assert_int_equal(withdrawn[1], 1);
	assert_string_equal(auth_tokens_check(known, b, ms, 1, &token), "revoked");
	assert_null(auth_tokens_check(known, a, ms, 1, &token));
	/* gone: no client is admitted any more */
	assert_int_equal(unlink(rig->tokens), 0);
	ms += AUTH_FILE_LOOK_MS;
	assert_string_equal(auth_tokens_check(known, a, ms, 1, &token), "unknown");
	assert_int_equal(withdrawn[0], 1);
	assert_int_equal(withdrawn[1], 1);
	auth_tokens_free(known);
	tokens_done(&tokens);
}

static void
a_broken_token_file_stops_the_start(void **state)
{
	struct rig *rig = *state;
	struct auth_tokens *known;
	struct why why;

	rig_write(rig->tokens, "{\"version\":1,\"tokens\":[{}]}");
	assert_int_equal(auth_tokens_new(rig->tokens, &known, &why), -EINVAL);
	assert_non_null(strstr(why.text, "record 1"));
	unlink(rig->tokens);
	assert_int_equal(mkdir(rig->tokens, 0700), 0);
	assert_int_equal(auth_tokens_new(rig->tokens, &known, &why), -EINVAL);
	assert_int_equal(rmdir(rig->tokens), 0);
}

/* ---- requests ---- */

enum from { TCP, SOCKET, PROXY };

struct request {
	enum from from;
	const char *const headers[2 * HEADERS_MAX];	/* name, value, ... */
};

static void
judge(struct auth *auth, const struct request *request, struct auth_verdict *verdict_r)
{
	const struct http_caller caller = { .by_socket = request->from != TCP,
					    .uid = request->from == PROXY ? 0 : 71000,
					    .owner = 4242, .owner_known = true };
	struct evkeyval pairs[HEADERS_MAX] = { 0 };
	struct evkeyvalq list;
	struct http_head head;

	TAILQ_INIT(&list);
	for (size_t i = 0; i < HEADERS_MAX && request->headers[2 * i]; i++) {
		pairs[i].key = (char *)request->headers[2 * i];
		pairs[i].value = (char *)request->headers[2 * i + 1];
		TAILQ_INSERT_TAIL(&list, &pairs[i], next);
	}
	assert_null(http_head_read(&list, &head));
	assert_true(http_principal(auth, &caller, &list, &head, verdict_r));
}

#define JUDGE(from, ...) \
	judge(auth, &(const struct request){ from, { __VA_ARGS__ } }, &verdict)
#define ADMITTED(who) do { \
	assert_int_equal(verdict.status, 0); \
	assert_string_equal(verdict.principal, who); \
} while (0)
#define REFUSED(number, challenge_has) do { \
	assert_int_equal(verdict.status, number); \
	assert_string_equal(verdict.principal, ""); \
	assert_non_null(verdict.text); \
	assert_non_null(strstr(verdict.challenge ? verdict.challenge : "", challenge_has)); \
} while (0)

static struct auth *
make_auth(struct config *config)
{
	struct auth *auth = NULL;
	struct why why = { .text = "" };

	if (auth_new(config, &auth, &why) < 0)
		fail_msg("%s", why.text);
	return auth;
}

static void
without_tokens_the_kernel_decides(void **state)
{
	struct config *config = config_new();
	struct auth *auth = make_auth(config);
	struct auth_verdict verdict;

	(void)state;
	assert_false(auth_has_tokens(auth));
	JUDGE(TCP, "Host", "x");
	ADMITTED("uid:4242");
	JUDGE(SOCKET, "Host", "x");
	ADMITTED("uid:4242");
	/* what was not asked for is not looked at */
	JUDGE(TCP, "Authorization", "Bearer x y z", "X-Forwarded-User", "root");
	ADMITTED("uid:4242");
	assert_null(auth_metadata(auth, "/.well-known/oauth-protected-resource"));
	auth_free(auth);
	auth = NULL;
	JUDGE(TCP, "Host", "x");
	ADMITTED("uid:4242");
	config_free(config);
}

static void
tokens_admit(void **state)
{
	struct rig *rig = *state;
	struct config *config = config_new();
	struct tokens tokens = { .n = 0 };
	char token[TOKEN_TEXT + 1], old[TOKEN_TEXT + 1], line[128], other[128];
	struct auth_verdict verdict;
	struct auth *auth;

	add_token(&tokens, 1, "ci", 0, token);
	add_token(&tokens, 2, "ci", 1, old);
	strcpy(tokens.token[0].profile, "bare");
	strcpy(tokens.token[1].profile, "bare");
	write_tokens(rig, &tokens);
	config->auth.token_file = strdup(rig->tokens);
	auth = make_auth(config);
	assert_true(auth_has_tokens(auth));
	snprintf(line, sizeof(line), "Bearer %s", token);
	JUDGE(TCP, "Authorization", line);
	ADMITTED("token:ci");
	assert_string_equal(verdict.profile, "bare");
	JUDGE(SOCKET, "authorization", line);
	ADMITTED("token:ci");
	snprintf(other, sizeof(other), "bEARER   %s", token);
	JUDGE(TCP, "Authorization", other);
	ADMITTED("token:ci");

	JUDGE(TCP, "Host", "x");
	REFUSED(401, "Bearer realm=");
	assert_null(strstr(verdict.challenge, "error"));
	assert_null(strstr(verdict.challenge, "resource_metadata"));
	JUDGE(TCP, "Authorization", "Basic dXNlcjpwYXNz");
	REFUSED(401, "Bearer realm=");
	JUDGE(TCP, "Authorization", token);
	REFUSED(401, "Bearer realm=");
	JUDGE(TCP, "Authorization", "Bearer");
	REFUSED(400, "error=\"invalid_request\"");
	JUDGE(TCP, "Authorization", "Bearer a b");
	REFUSED(400, "error=\"invalid_request\"");
	snprintf(other, sizeof(other), "Bearer %s,", token);
	JUDGE(TCP, "Authorization", other);
	REFUSED(400, "error=\"invalid_request\"");
	snprintf(other, sizeof(other), "Bearer %s", old);
	JUDGE(TCP, "Authorization", other);
	REFUSED(401, "error=\"invalid_token\"");
	/* a client that shows a wrong token is not admitted in the other way */
	JUDGE(SOCKET, "Authorization", other);
	REFUSED(401, "error=\"invalid_token\"");
	JUDGE(SOCKET, "Host", "x");
	ADMITTED("uid:4242");
	assert_string_equal(verdict.profile, "");
	JUDGE(TCP, "Authorization", "Bearer e30.e30.e30");
	REFUSED(401, "error=\"invalid_token\"");
	auth_free(auth);
	config_free(config);
	tokens_done(&tokens);
}

static void
long_tokens_are_malformed(void **state)
{
	struct rig *rig = *state;
	struct config *config = config_new();
	char *line = malloc(7 + AUTH_JWT_MAX + 2);
	struct auth_verdict verdict;
	struct auth *auth;

	rig_write(rig->tokens, "{\"version\":1,\"tokens\":[]}");
	config->auth.token_file = strdup(rig->tokens);
	auth = make_auth(config);
	memset(line, 'a', 7 + AUTH_JWT_MAX + 1);
	memcpy(line, "Bearer ", 7);
	line[7 + AUTH_JWT_MAX + 1] = '\0';
	JUDGE(TCP, "Authorization", line);
	REFUSED(400, "invalid_request");
	line[7 + AUTH_JWT_MAX] = '\0';
	JUDGE(TCP, "Authorization", line);
	REFUSED(401, "invalid_token");
	free(line);
	auth_free(auth);
	config_free(config);
}

static char *
sign_now(struct rig *rig, const char *more)
{
	char claims[512], *token, *line;

	snprintf(claims, sizeof(claims), "{\"iss\":\"" RIG_ISSUER "\",\"aud\":\"" RIG_RESOURCE
		 "\",\"sub\":\"alice\",\"exp\":%lld%s}", (long long)time(NULL) + 600, more);
	token = rig_sign(rig->ec, "ES256", "ec", "at+jwt", claims);
	assert_true(asprintf(&line, "Bearer %s", token) > 0);
	free(token);
	return line;
}

static void
set_up_oauth(struct rig *rig, struct config *config)
{
	char *jwks = rig_jwks(&rig->ec, 1);

	rig_write(rig->jwks, jwks);
	free(jwks);
	config->auth.jwks_file = strdup(rig->jwks);
	config->auth.issuer = strdup(RIG_ISSUER);
	config->auth.resource = strdup(RIG_RESOURCE);
	assert_int_equal(key_set(key_at((size_t)key_find("auth", "required_scopes")), config,
				 "mcp:run", false, NULL), 0);
}

static void
an_issuers_tokens_admit(void **state)
{
	static const char metadata[] = "resource_metadata=\"https://py.example.org"
				       "/.well-known/oauth-protected-resource/mcp\"";
	struct rig *rig = *state;
	struct config *config = config_new();
	struct tokens tokens = { .n = 0 };
	struct auth_verdict verdict;
	char *line, own[TOKEN_TEXT + 1], own_line[128];
	struct auth *auth;

	set_up_oauth(rig, config);
	add_token(&tokens, 1, "ci", 0, own);
	write_tokens(rig, &tokens);
	config->auth.token_file = strdup(rig->tokens);
	auth = make_auth(config);
	line = sign_now(rig, ",\"scope\":\"mcp:run\"");
	JUDGE(TCP, "Authorization", line);
	ADMITTED("sub:alice@" RIG_ISSUER);
	free(line);
	line = sign_now(rig, "");
	JUDGE(TCP, "Authorization", line);
	REFUSED(403, "error=\"insufficient_scope\", scope=\"mcp:run\"");
	assert_non_null(strstr(verdict.challenge, metadata));
	free(line);
	JUDGE(TCP, "Host", "x");
	REFUSED(401, metadata);
	assert_non_null(strstr(verdict.challenge, "scope=\"mcp:run\""));
	JUDGE(TCP, "Authorization", "Bearer e30.e30.e30");
	REFUSED(401, metadata);
	/* beside the service's own tokens */
	snprintf(own_line, sizeof(own_line), "Bearer %s", own);
	JUDGE(TCP, "Authorization", own_line);
	ADMITTED("token:ci");
	auth_free(auth);
	config_free(config);
	tokens_done(&tokens);
}

static void
the_document_says_where_tokens_come_from(void **state)
{
	static const struct {
		const char *resource, *path, *metadata;
	} cases[] = {
		{ "https://h/mcp", "/.well-known/oauth-protected-resource/mcp",
		  "\"https://h/.well-known/oauth-protected-resource/mcp\"" },
		{ "https://h:8443/a/b", "/.well-known/oauth-protected-resource/a/b",
		  "\"https://h:8443/.well-known/oauth-protected-resource/a/b\"" },
		{ "http://[::1]:80", "/.well-known/oauth-protected-resource",
		  "\"http://[::1]:80/.well-known/oauth-protected-resource\"" },
		{ "https://h/", "/.well-known/oauth-protected-resource",
		  "\"https://h/.well-known/oauth-protected-resource\"" },
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < N(cases); i++) {
		struct config *config = config_new();
		struct auth_verdict verdict;
		struct auth *auth;
		json_t *root;

		set_up_oauth(rig, config);
		free(config->auth.resource);
		config->auth.resource = strdup(cases[i].resource);
		auth = make_auth(config);
		root = json_loads(auth_metadata(auth, cases[i].path), 0, NULL);
		assert_string_equal(json_string_value(json_object_get(root, "resource")),
				    cases[i].resource);
		assert_string_equal(json_string_value(json_array_get(json_object_get(root,
				    "authorization_servers"), 0)), RIG_ISSUER);
		assert_string_equal(json_string_value(json_array_get(json_object_get(root,
				    "scopes_supported"), 0)), "mcp:run");
		json_decref(root);
		assert_non_null(auth_metadata(auth, "/.well-known/oauth-protected-resource"));
		assert_non_null(auth_metadata(auth, "/.well-known/oauth-protected-resource/mcp"));
		assert_null(auth_metadata(auth, "/.well-known/oauth-protected-resource/x"));
		assert_null(auth_metadata(auth, "/mcp"));
		JUDGE(TCP, "Host", "x");
		REFUSED(401, cases[i].metadata);
		auth_free(auth);
		config_free(config);
	}
}

static void
the_header_is_the_proxys_alone(void **state)
{
	struct rig *rig = *state;
	char name[258] = "";
	struct config *config = config_new();
	struct auth_verdict verdict;
	struct auth *auth;

	config->auth.trusted_header = strdup("X-Forwarded-User");
	config->auth.trusted_proxy_user = strdup(PROXY_USER);
	for (int with_tokens = 0; with_tokens < 2; with_tokens++) {
		if (with_tokens) {
			rig_write(rig->tokens, "{\"version\":1,\"tokens\":[]}");
			config->auth.token_file = strdup(rig->tokens);
		}
		auth = make_auth(config);
		JUDGE(PROXY, "x-forwarded-user", "bob@example.org");
		ADMITTED("user:bob@example.org");
		/* what the proxy let in by another way is not looked at */
		JUDGE(PROXY, "X-Forwarded-User", "bob", "Authorization", "Basic eHk=");
		ADMITTED("user:bob");
		JUDGE(SOCKET, "X-Forwarded-User", "bob");
		REFUSED(403, "");
		JUDGE(TCP, "X-Forwarded-User", "bob");
		REFUSED(403, "");
		/* the proxy itself is no principal */
		JUDGE(PROXY, "Host", "x");
		REFUSED(401, with_tokens ? "Bearer" : "");
		JUDGE(PROXY, "X-Forwarded-User", "a", "X-Forwarded-User", "b");
		REFUSED(400, "");
		JUDGE(PROXY, "X-Forwarded-User", "");
		REFUSED(400, "");
		JUDGE(PROXY, "X-Forwarded-User", "a b");
		REFUSED(400, "");
		JUDGE(PROXY, "X-Forwarded-User", "\xc3\xa9");
		REFUSED(400, "");
		memset(name, 'n', 255);
		name[255] = '\0';
		JUDGE(PROXY, "X-Forwarded-User", name);
		assert_int_equal(verdict.status, 0);
		assert_int_equal(strlen(verdict.principal), 5 + 255);
		strcpy(name + 255, "n");
		JUDGE(PROXY, "X-Forwarded-User", name);
		REFUSED(400, "");
		JUDGE(SOCKET, "Host", "x");
		ADMITTED("uid:4242");
		auth_free(auth);
	}
	config_free(config);
}

static void
an_unknown_proxy_stops_the_start(void **state)
{
	struct config *config = config_new();
	struct auth *auth = NULL;
	struct why why;

	(void)state;
	config->auth.trusted_header = strdup("X-User");
	config->auth.trusted_proxy_user = strdup("no-such-user");
	assert_null(getpwnam("no-such-user"));
	assert_int_equal(auth_new(config, &auth, &why), -ENOENT);
	assert_non_null(strstr(why.text, "no-such-user"));
	config_free(config);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_are_looked_up),
		cmocka_unit_test(the_token_file_is_followed),
		cmocka_unit_test(a_broken_token_file_stops_the_start),
		cmocka_unit_test(without_tokens_the_kernel_decides),
		cmocka_unit_test(tokens_admit),
		cmocka_unit_test(long_tokens_are_malformed),
		cmocka_unit_test(an_issuers_tokens_admit),
		cmocka_unit_test(the_document_says_where_tokens_come_from),
		cmocka_unit_test(the_header_is_the_proxys_alone),
		cmocka_unit_test(an_unknown_proxy_stops_the_start),
	};

	return cmocka_run_group_tests(tests, rig_set_up, rig_tear_down);
}
