/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the contents of the files of [auth], and the texts of
 * challenges.
 * Reads:   Authorization of clients, hostile, bounded by the size of a request's head. */
#include "auth/auth.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <strings.h>
#include <time.h>

#include <jansson.h>

#include "auth/tokens.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "policy/config.h"
#include "policy/tokens.h"

#define WELL_KNOWN "/.well-known/oauth-protected-resource"
#define LOG_EVERY_MS 1000
#define TOKEN_PRINCIPAL "token:%s"	/* of a tenant */

enum challenge { ASK, MALFORMED, INVALID, SCOPE, CHALLENGES };

struct auth {
	const struct config *config;
	struct auth_tokens *tokens;	/* NULL: no [auth] token_file */
	struct auth_jwt *jwt;		/* NULL: no OAuth */
	uid_t proxy;
	char *challenge[CHALLENGES];
	char *document, *document_path;	/* with jwt: the path of [auth] resource, as in RFC 9728 */
	void (*withdrawn)(void *arg, const char *principal);
	void *withdrawn_arg;
	uint64_t logged_ms;
	unsigned int unlogged;
};

/* ---- texts ---- */

/* Splits a URI where RFC 9728, 3.1, inserts the well-known path: after the host. *origin_r: the
 * length up to there. *path_r: the rest; "" if it is only "/". */
static void
split_resource(const char *resource, size_t *origin_r, const char **path_r)
{
	const char *host = strstr(resource, "://") + 3;

	*origin_r = (size_t)(host - resource) + strcspn(host, "/");
	*path_r = strcmp(resource + *origin_r, "/") == 0 ? "" : resource + *origin_r;
}

static char *
make_challenge(const struct config *config, const char *error)
{
	const char *resource = config->auth.jwks_file ? config->auth.resource : NULL, *path;
	const struct config_list *scopes = &config->auth.required_scopes;
	char *text = NULL;
	size_t size, origin;
	FILE *out = xalloc_check(open_memstream(&text, &size));

	fputs("Bearer realm=\"mcp-pythond\"", out);
	if (error)
		fprintf(out, ", error=\"%s\"", error);
	if (resource && scopes->n > 0) {
		fputs(", scope=\"", out);
		for (size_t i = 0; i < scopes->n; i++)
			fprintf(out, "%s%s", i ? " " : "", scopes->item[i]);
		fputc('"', out);
	}
	if (resource) {
		split_resource(resource, &origin, &path);
		fprintf(out, ", resource_metadata=\"%.*s" WELL_KNOWN "%s\"", (int)origin,
			resource, path);
	}
	xassert(fclose(out) == 0);
	return text;
}

static void
make_document(struct auth *auth)
{
	const struct config *config = auth->config;
	const struct config_list *scopes = &config->auth.required_scopes;
	json_t *root = json_pack("{s:s, s:[s], s:[s], s:s}",
				 "resource", config->auth.resource,
				 "authorization_servers", config->auth.issuer,
				 "bearer_methods_supported", "header",
				 "resource_name", PACKAGE_NAME);
	json_t *list = json_array();
	const char *path;
	size_t origin;

	for (size_t i = 0; i < scopes->n; i++)
		json_array_append_new(list, json_string(scopes->item[i]));
	if (scopes->n > 0)
		json_object_set(root, "scopes_supported", list);
	json_decref(list);
	auth->document = xalloc_check(json_dumps(root, JSON_COMPACT));
	json_decref(root);
	split_resource(config->auth.resource, &origin, &path);
	auth->document_path = xasprintf(WELL_KNOWN "%s", path);
}

const char *
auth_metadata(const struct auth *auth, const char *path)
{
	if (!auth->document)
		return NULL;
	return strcmp(path, WELL_KNOWN) == 0 || strcmp(path, WELL_KNOWN HTTP_PATH) == 0 ||
			strcmp(path, auth->document_path) == 0 ? auth->document : NULL;
}

/* ---- start ---- */

static int
find_proxy(const char *name, uid_t *uid_r, struct why *why_r)
{
	const struct passwd *user;

	errno = 0;
	user = getpwnam(name);
	if (!user)
		return why_say(why_r, errno ? -errno : -ENOENT, "trusted_proxy_user",
			       "trusted_proxy_user: there is no user %s", name);
	*uid_r = user->pw_uid;
	return 0;
}

static int
auth_open_files(struct auth *auth, struct why *why_r)
{
	const struct config *config = auth->config;
	const struct auth_jwt_rules rules = {
		.jwks_file = config->auth.jwks_file,
		.issuer = config->auth.issuer,
		.audience = config->auth.resource,
		.scopes = &config->auth.required_scopes,
		.leeway_s = config->auth.leeway_seconds,
	};
	int r = 0;

	if (config->auth.token_file)
		r = auth_tokens_new(config->auth.token_file, &auth->tokens, why_r);
	if (r == 0 && config->auth.jwks_file)
		r = auth_jwt_new(&rules, &auth->jwt, why_r);
	if (r == 0 && config->auth.trusted_proxy_user)
		r = find_proxy(config->auth.trusted_proxy_user, &auth->proxy, why_r);
	return r;
}

int
auth_new(const struct config *config, struct auth **auth_r, struct why *why_r)
{
	static const char *const errors[CHALLENGES] = {
		[MALFORMED] = "invalid_request", [INVALID] = "invalid_token",
		[SCOPE] = "insufficient_scope",
	};
	struct auth *auth = xcalloc(1, sizeof(*auth));
	int r;

	auth->config = config;
	r = auth_open_files(auth, why_r);
	if (r < 0) {
		auth_free(auth);
		return r;
	}
	for (int i = 0; i < CHALLENGES; i++)
		auth->challenge[i] = make_challenge(config, errors[i]);
	if (auth->jwt)
		make_document(auth);
	*auth_r = auth;
	return 0;
}

void
auth_free(struct auth *auth)
{
	if (!auth)
		return;
	auth_tokens_free(auth->tokens);
	auth_jwt_free(auth->jwt);
	for (int i = 0; i < CHALLENGES; i++)
		free(auth->challenge[i]);
	free(auth->document);
	free(auth->document_path);
	free(auth);
}

bool
auth_has_tokens(const struct auth *auth)
{
	return auth->tokens || auth->jwt;
}

const char *
auth_trusted_header(const struct auth *auth)
{
	return auth->config->auth.trusted_header;
}

uid_t
auth_trusted_uid(const struct auth *auth)
{
	return auth->proxy;
}

/* ---- tokens ---- */

/* Clients that guess tokens must not fill the log. */
static void
log_refusal(struct auth *auth, uint64_t now_ms, const char *why)
{
	if (auth->logged_ms && now_ms - auth->logged_ms < LOG_EVERY_MS) {
		auth->unlogged++;
		return;
	}
	log_line(LOG_NOTICE, "auth-refused", "why=\"%s\" unlogged=%u", why, auth->unlogged);
	auth->logged_ms = now_ms;
	auth->unlogged = 0;
}

static void
auth_refuse(const struct auth *auth, enum challenge challenge, struct auth_verdict *verdict_r)
{
	static const struct {
		int status;
		const char *text;
	} refusals[CHALLENGES] = {
		[ASK] = { 401, "say who you are: Authorization: Bearer TOKEN" },
		[MALFORMED] = { 400, "Authorization is not Bearer and one token" },
		[INVALID] = { 401, "the token is invalid or has expired" },
		[SCOPE] = { 403, "the token does not have the scope that is needed" },
	};

	*verdict_r->principal = '\0';
	verdict_r->status = refusals[challenge].status;
	verdict_r->text = refusals[challenge].text;
	verdict_r->challenge = auth->challenge[challenge];
}

/* RFC 6750, "b64token". */
static bool
is_b64token(const char *text)
{
	size_t len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				  "0123456789-._~+/");

	return len > 0 && text[len + strspn(text + len, "=")] == '\0';
}

static const char *
auth_check_token(struct auth *auth, const char *text, uint64_t now_ms,
		 struct auth_verdict *verdict_r, bool *lacks_scope_r)
{
	int64_t now = (int64_t)time(NULL);
	const struct token *token;
	struct auth_subject subject;
	const char *id, *wrong;

	if (auth->tokens && (!auth->jwt || token_is_text(text, &id))) {
		wrong = auth_tokens_check(auth->tokens, text, now_ms, now, &token);
		if (wrong)
			return wrong;
		snprintf(verdict_r->principal, sizeof(verdict_r->principal), TOKEN_PRINCIPAL,
			 token->tenant);
		snprintf(verdict_r->profile, sizeof(verdict_r->profile), "%s", token->profile);
		return NULL;
	}
	wrong = auth_jwt_check(auth->jwt, text, now_ms, now, &subject);
	if (wrong)
		return wrong;
	*lacks_scope_r = subject.lacks_scope;
	snprintf(verdict_r->principal, sizeof(verdict_r->principal), "sub:%s@%s", subject.sub,
		 auth->config->auth.issuer);
	return NULL;
}

/* The text behind "Bearer"; NULL: another scheme, which is allowed but proves nothing. */
static const char *
token_of(const char *authorization)
{
	static const char scheme[] = "Bearer";
	const size_t len = sizeof(scheme) - 1;

	if (!authorization || strncasecmp(authorization, scheme, len) != 0 ||
	    (authorization[len] != ' ' && authorization[len] != '\0'))
		return NULL;
	return authorization + len + strspn(authorization + len, " ");
}

static void
on_tenant_withdrawn(void *arg, const char *tenant)
{
	const struct auth *auth = arg;
	char principal[AUTH_PRINCIPAL_MAX + 1];

	snprintf(principal, sizeof(principal), TOKEN_PRINCIPAL, tenant);
	auth->withdrawn(auth->withdrawn_arg, principal);
}

void
auth_on_withdrawn(struct auth *auth, void (*call)(void *arg, const char *principal), void *arg)
{
	auth->withdrawn = call;
	auth->withdrawn_arg = arg;
	if (auth->tokens)
		auth_tokens_on_withdrawn(auth->tokens, on_tenant_withdrawn, auth);
}

void
auth_keep_up(struct auth *auth)
{
	if (auth->tokens)
		auth_tokens_keep_up(auth->tokens, clock_ms());
}

bool
auth_is_withdrawn(struct auth *auth, const char *authorization)
{
	const char *token = token_of(authorization);

	return token && auth->tokens && auth_tokens_withdrawn(auth->tokens, token, clock_ms());
}

void
auth_judge(struct auth *auth, const char *authorization, struct auth_verdict *verdict_r)
{
	const char *token = token_of(authorization), *wrong;
	uint64_t now_ms = clock_ms();
	bool lacks_scope = false;

	*verdict_r = (struct auth_verdict){ .status = 0 };
	if (!token) {
		auth_refuse(auth, ASK, verdict_r);
		return;
	}
	if (!is_b64token(token) || strnlen(token, AUTH_JWT_MAX + 1) > AUTH_JWT_MAX) {
		auth_refuse(auth, MALFORMED, verdict_r);
		return;
	}
	wrong = auth_check_token(auth, token, now_ms, verdict_r, &lacks_scope);
	if (wrong || lacks_scope) {
		log_refusal(auth, now_ms, wrong ? wrong : "scope");
		auth_refuse(auth, wrong ? INVALID : SCOPE, verdict_r);
	}
}
