/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python token.   Owns: a new token until it is printed; it is stored nowhere.
 * The service need not be told of a change: it notices that the file has changed. */
#include "client/token.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <jansson.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "base/why.h"
#include "client/exits.h"
#include "client/say.h"
#include "client/token_file.h"
#include "policy/shown.h"

#define KEPT_S (90 * 24 * 3600)	/* how long an invalid record is kept for those who look */

static int
exit_code(int error)
{
	switch (-error) {
	case EACCES:
	case EPERM:
		return EX_NOPERM;
	case EINVAL:
	case EEXIST:
		return EX_DATAERR;
	case ENOENT:
	case ENOTDIR:
		return EX_NOINPUT;
	case EROFS:
		return EX_CANTCREAT;
	default:
		return EX_IOERR;
	}
}

/* When the token became or will become invalid; 0: never. */
static int64_t
end_of(const struct token *token)
{
	if (token->revoked && (!token->expires || token->revoked < token->expires))
		return token->revoked;
	return token->expires;
}

static const char *
token_state_of(const struct token *token, int64_t now)
{
	return token->revoked ? "revoked"
	       : token->expires && now >= token->expires ? "expired" : "valid";
}

/* ---- add ---- */

static void
forget_old(struct tokens *tokens, int64_t now)
{
	size_t n = 0;

	for (size_t i = 0; i < tokens->n; i++) {
		int64_t end = end_of(&tokens->token[i]);

		if (!end || end + KEPT_S > now)
			tokens->token[n++] = tokens->token[i];
	}
	tokens->n = n;
}

/* text_r has room for TOKEN_TEXT and NUL. */
static int
make_token(const struct options *options, const struct tokens *tokens, int64_t now,
	   struct token *token_r, char *text_r)
{
	unsigned char id[TOKEN_ID], secret[TOKEN_HASH];

	*token_r = (struct token){.created = now};
	do {
		if (getrandom(id, sizeof(id), 0) != sizeof(id) ||
		    getrandom(secret, sizeof(secret), 0) != sizeof(secret))
			return -EIO;
		token_make(id, secret, token_r->id, text_r);
	} while (tokens_find(tokens, token_r->id, TOKEN_ID));
	OPENSSL_cleanse(secret, sizeof(secret));
	strcpy(token_r->name, options->token_name);
	strcpy(token_r->tenant, options->tenant ? options->tenant : options->token_name);
	if (options->profile)
		strcpy(token_r->profile, options->profile);
	if (options->expires_seconds)
		token_r->expires = now + options->expires_seconds;
	SHA256((const unsigned char *)text_r, TOKEN_TEXT, token_r->hash);
	return 0;
}

static void
tell_added(const struct tokens *tokens, const struct token *token)
{
	size_t valid = 0;
	char until[TOKEN_TIME + 1] = "";

	if (token->expires)
		token_time_print(token->expires, until);
	say("token %s of tenant %s was added%s%s; it is not shown again", token->id,
	    token->tenant, token->expires ? ", until " : "", until);
	for (size_t i = 0; i < tokens->n; i++)
		valid += strcmp(tokens->token[i].name, token->name) == 0 &&
			 strcmp(token_state_of(&tokens->token[i], token->created), "valid") == 0;
	if (valid > 1)
		say("%s has %zu valid tokens now; mcp-python token list shows them", token->name, valid);
}

static int
token_add(const struct options *options, struct token_file *file, struct why *why_r)
{
	char text[TOKEN_TEXT + 1];
	struct token token;
	int r;

	forget_old(&file->tokens, time(NULL));
	r = make_token(options, &file->tokens, time(NULL), &token, text);
	if (r == 0)
		r = tokens_add(&file->tokens, &token);
	if (r < 0)
		return why_say(why_r, r, "token", "%s",
			       r == -E2BIG ? "the file holds the most tokens that it may" :
			       r == -EEXIST ? "other tokens of that tenant have another "
					      "profile, or none" : strerror(-r));
	r = token_file_write(file, why_r);
	if (r < 0)
		return r;
	tell_added(&file->tokens, &token);
	puts(text);
	OPENSSL_cleanse(text, sizeof(text));
	return 0;
}

/* ---- list ---- */

static void
print_table(const struct tokens *tokens, int64_t now)
{
	char created[TOKEN_TIME + 1], expires[TOKEN_TIME + 1];

	printf("%-*s  %-7s  %-*s  %-*s  %-16s  %-8s  %s\n", TOKEN_ID, "ID", "STATE",
	       TOKEN_TIME, "CREATED", TOKEN_TIME, "EXPIRES", "TENANT", "PROFILE", "NAME");
	for (size_t i = 0; i < tokens->n; i++) {
		const struct token *token = &tokens->token[i];

		token_time_print(token->created, created);
		strcpy(expires, "never");
		if (token->expires)
			token_time_print(token->expires, expires);
		printf("%s  %-7s  %s  %-*s  %-16s  %-8s  %s\n", token->id,
		       token_state_of(token, now), created, TOKEN_TIME, expires, token->tenant,
		       *token->profile ? token->profile : "any", token->name);
	}
}

static json_t *
json_time(int64_t seconds)
{
	char text[TOKEN_TIME + 1];

	if (!seconds)
		return json_null();
	token_time_print(seconds, text);
	return json_string(text);
}

static void
print_json(const struct tokens *tokens, int64_t now)
{
	json_t *list = json_array();
	char *text;

	for (size_t i = 0; i < tokens->n; i++) {
		const struct token *token = &tokens->token[i];

		json_array_append_new(list, json_pack(
			"{s:s, s:s, s:s, s:s?, s:s, s:o, s:o, s:o}", "id", token->id, "name",
			token->name, "tenant", token->tenant, "profile",
			*token->profile ? token->profile : NULL, "state", token_state_of(token, now),
			"created", json_time(token->created), "expires",
			json_time(token->expires), "revoked", json_time(token->revoked)));
	}
	text = shown_json(list, JSON_INDENT(2));
	puts(text);
	free(text);
	json_decref(list);
}

/* ---- revoke ---- */

static int
revoke(const char *id, struct token_file *file, struct why *why_r)
{
	struct token *token = tokens_find(&file->tokens, id, strlen(id));
	int r;

	for (size_t i = 0; !token && i < file->tokens.n; i++)
		if (strcmp(file->tokens.token[i].name, id) == 0)
			return why_say(why_r, -EINVAL, "id",
				       "%s is the name of a token; its ID is %s", id,
				       file->tokens.token[i].id);
	if (!token)
		return why_say(why_r, -EINVAL, "id", "there is no token %s in %s", id,
			       file->path);
	if (token->revoked) {
		say("token %s was revoked before", id);
		return 0;
	}
	token->revoked = time(NULL);
	r = token_file_write(file, why_r);
	if (r == 0)
		say("token %s of tenant %s is revoked", id, token->tenant);
	return r;
}

/* ---- the command ---- */

int
token_command(const struct options *options)
{
	bool change = options->token_action != TOKEN_LIST;
	struct token_file file;
	struct why why;
	int r;

	r = token_file_open(options->token_file ? options->token_file : TOKEN_FILE, change,
			    &file, &why);
	if (options->token_action == TOKEN_LIST && (r == -ENOENT || (r == 0 && !file.exists)))
		say("there are no tokens yet; mcp-python token add NAME makes one");
	if (options->token_action == TOKEN_LIST && r == -ENOENT) {
		if (options->json)
			puts("[]");
		return 0;
	}
	if (r < 0) {
		say("%s", why.text);
		return exit_code(r);
	}
	switch (options->token_action) {
	case TOKEN_ADD:
		r = token_add(options, &file, &why);
		break;
	case TOKEN_LIST:
		(options->json ? print_json : print_table)(&file.tokens, time(NULL));
		break;
	case TOKEN_REVOKE:
		r = revoke(options->token_name, &file, &why);
		break;
	}
	token_file_close(&file);
	if (r < 0)
		say("%s", why.text);
	return r < 0 ? exit_code(r) : 0;
}
