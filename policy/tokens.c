/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, and mcp-python token.   Owns: records of tokens, never a token.
 * Reads:   a file that an administrator or mcp-python token has written; any deviation from its
 * form is refused. */
#include "policy/tokens.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "base/base64.h"
#include "base/hex.h"
#include "base/why.h"
#include "base/xalloc.h"

#define PREFIX "mcp_"
#define FORM 1		/* the version of the file's form */

/* ---- forms ---- */

bool
token_is_name(const char *text)
{
	size_t len = strlen(text);

	if (len == 0 || len > TOKEN_NAME_MAX || !isalnum((unsigned char)*text))
		return false;
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr("_-.@", *text))
			return false;
	return true;
}

/* 32 letters and digits that are not mistaken for one another. */
static const char id_digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
static const char secret_digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static bool
is_id(const char *text, size_t len)
{
	return len == TOKEN_ID && strspn(text, id_digits) >= TOKEN_ID;
}

bool
token_is_text(const char *text, const char **id_r)
{
	const size_t prefix = sizeof(PREFIX) - 1;

	if (strlen(text) != TOKEN_TEXT || memcmp(text, PREFIX, prefix) != 0 ||
	    !is_id(text + prefix, TOKEN_ID) || text[prefix + TOKEN_ID] != '_' ||
	    strspn(text + prefix + TOKEN_ID + 1, secret_digits) != TOKEN_SECRET)
		return false;
	*id_r = text + prefix;
	return true;
}

void
token_make(const unsigned char id_bytes[TOKEN_ID], const unsigned char secret[TOKEN_HASH],
	   char id_r[TOKEN_ID + 1], char *text_r)
{
	char spelt[BASE64_LEN(TOKEN_HASH) + 1];

	for (size_t i = 0; i < TOKEN_ID; i++)
		id_r[i] = id_digits[id_bytes[i] % 32];
	id_r[TOKEN_ID] = '\0';
	base64url_encode(secret, TOKEN_HASH, spelt);
	stpcpy(stpcpy(stpcpy(stpcpy(text_r, PREFIX), id_r), "_"), spelt);
}

void
token_time_print(int64_t seconds, char *text_r)
{
	time_t time = (time_t)seconds;
	struct tm tm;

	gmtime_r(&time, &tm);
	strftime(text_r, TOKEN_TIME + 1, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static bool
parse_time(const char *text, int64_t *seconds_r)
{
	static const char form[] = "dddd-dd-ddTdd:dd:ddZ";
	char again[TOKEN_TIME + 1];
	struct tm tm = { 0 };
	int64_t seconds;

	if (strlen(text) != TOKEN_TIME)
		return false;
	for (size_t i = 0; i < TOKEN_TIME; i++)
		if (form[i] == 'd' ? !isdigit((unsigned char)text[i]) : text[i] != form[i])
			return false;
	if (!strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm))
		return false;
	seconds = timegm(&tm);
	if (seconds <= 0)
		return false;
	/* Refuses dates that do not exist, such as the 30th of February. */
	token_time_print(seconds, again);
	*seconds_r = seconds;
	return strcmp(text, again) == 0;
}

static int
hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool
parse_hash(const char *text, unsigned char *hash_r)
{
	if (strlen(text) != 2 * TOKEN_HASH)
		return false;
	for (size_t i = 0; i < TOKEN_HASH; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		hash_r[i] = (unsigned char)(high << 4 | low);
	}
	return true;
}

/* ---- reading ---- */

enum field { ID, NAME, TENANT, SHA256, CREATED, EXPIRES, REVOKED, PROFILE, FIELDS };

static const char *const fields[FIELDS] = {
	[ID] = "id", [NAME] = "name", [TENANT] = "tenant", [SHA256] = "sha256",
	[CREATED] = "created", [EXPIRES] = "expires", [REVOKED] = "revoked",
	[PROFILE] = "profile",
};

static bool
take_field(struct token *token, enum field field, const char *text)
{
	switch (field) {
	case ID:
		if (!is_id(text, strlen(text)))
			return false;
		strcpy(token->id, text);
		return true;
	case NAME:
	case TENANT:
		if (!token_is_name(text))
			return false;
		strcpy(field == NAME ? token->name : token->tenant, text);
		return true;
	case PROFILE:
		if (!token_is_name(text))
			return false;
		strcpy(token->profile, text);
		return true;
	case SHA256:
		return parse_hash(text, token->hash);
	case CREATED:
		return parse_time(text, &token->created);
	case EXPIRES:
		return parse_time(text, &token->expires);
	case REVOKED:
		return parse_time(text, &token->revoked);
	case FIELDS:
		break;
	}
	return false;
}

static int
take_record(const json_t *record, size_t number, struct token *token_r, struct why *why_r)
{
	size_t known = 0;

	if (!json_is_object(record))
		return why_say(why_r, -EINVAL, "tokens", "record %zu is not an object", number);
	memset(token_r, 0, sizeof(*token_r));
	for (int i = 0; i < FIELDS; i++) {
		const json_t *value = json_object_get(record, fields[i]);
		const char *text = json_string_value(value);

		if (!value && i >= EXPIRES)
			continue;
		known++;
		/* A NUL would hide the text behind it. */
		if (!text || strlen(text) != json_string_length(value) ||
		    !take_field(token_r, (enum field)i, text))
			return why_say(why_r, -EINVAL, "tokens",
				       "record %zu: %s is missing or wrong", number, fields[i]);
	}
	if (known != json_object_size(record))
		return why_say(why_r, -EINVAL, "tokens", "record %zu has a key that is not known",
			       number);
	return 0;
}

static int
take_records(const json_t *root, struct tokens *tokens, struct why *why_r)
{
	const json_t *list = json_object_get(root, "tokens"), *record;
	struct token token;
	size_t i;

	if (json_integer_value(json_object_get(root, "version")) != FORM ||
	    !json_is_array(list) || json_object_size(root) != 2)
		return why_say(why_r, -EINVAL, "tokens", "it is not {\"version\": %d, "
			       "\"tokens\": [...]}", FORM);
	if (json_array_size(list) > TOKENS_MAX)
		return why_say(why_r, -EINVAL, "tokens", "there are more than %d records",
			       TOKENS_MAX);
	json_array_foreach(list, i, record) {
		int r = take_record(record, i + 1, &token, why_r);

		if (r < 0)
			return r;
		if (tokens_find(tokens, token.id, TOKEN_ID))
			return why_say(why_r, -EINVAL, "tokens", "two records have the id %s",
				       token.id);
		if (tokens_add(tokens, &token) < 0)
			return why_say(why_r, -EINVAL, "tokens", "record %zu: other tokens of %s "
				       "name another profile", i + 1, token.tenant);
	}
	return 0;
}

int
tokens_parse(const char *text, size_t len, struct tokens *tokens_r, struct why *why_r)
{
	struct tokens tokens = { .n = 0 };
	json_error_t error;
	json_t *root;
	int r;

	if (len > TOKENS_BYTES_MAX)
		return why_say(why_r, -EINVAL, "tokens", "it is longer than %d bytes",
			       TOKENS_BYTES_MAX);
	root = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	if (!root)
		return why_say(why_r, -EINVAL, "tokens", "line %d: %s", error.line, error.text);
	r = take_records(root, &tokens, why_r);
	json_decref(root);
	if (r < 0)
		tokens_done(&tokens);
	else
		*tokens_r = tokens;
	return r;
}

/* ---- the list ---- */

void
tokens_done(struct tokens *tokens)
{
	free(tokens->token);
	*tokens = (struct tokens){ .n = 0 };
}

static bool
fits_tenant(const struct tokens *tokens, const struct token *token)
{
	for (size_t i = 0; !token->revoked && i < tokens->n; i++) {
		const struct token *other = &tokens->token[i];

		if (!other->revoked && strcmp(other->tenant, token->tenant) == 0 &&
		    strcmp(other->profile, token->profile) != 0)
			return false;
	}
	return true;
}

int
tokens_add(struct tokens *tokens, const struct token *token)
{
	if (!fits_tenant(tokens, token))
		return -EEXIST;
	if (tokens->n >= TOKENS_MAX)
		return -E2BIG;
	tokens->token = xrealloc(tokens->token, (tokens->n + 1) * sizeof(*token));
	tokens->token[tokens->n++] = *token;
	return 0;
}

struct token *
tokens_find(const struct tokens *tokens, const char *id, size_t len)
{
	for (size_t i = 0; len == TOKEN_ID && i < tokens->n; i++)
		if (memcmp(tokens->token[i].id, id, TOKEN_ID) == 0)
			return &tokens->token[i];
	return NULL;
}

static void
set_text(json_t *record, enum field field, const char *text)
{
	xassert(json_object_set_new(record, fields[field], json_string(text)) == 0);
}

static void
set_time(json_t *record, enum field field, int64_t seconds)
{
	char text[TOKEN_TIME + 1];

	if (!seconds)
		return;
	token_time_print(seconds, text);
	set_text(record, field, text);
}

static json_t *
print_record(const struct token *token)
{
	json_t *record = json_object();
	char hash[2 * TOKEN_HASH + 1];

	hex_write(token->hash, TOKEN_HASH, hash);
	set_text(record, ID, token->id);
	set_text(record, NAME, token->name);
	set_text(record, TENANT, token->tenant);
	set_text(record, SHA256, hash);
	set_time(record, CREATED, token->created);
	set_time(record, EXPIRES, token->expires);
	set_time(record, REVOKED, token->revoked);
	if (*token->profile)
		set_text(record, PROFILE, token->profile);
	return record;
}

char *
tokens_print(const struct tokens *tokens)
{
	json_t *list = json_array(), *root = json_object();
	char *text, *line;

	for (size_t i = 0; i < tokens->n; i++)
		xassert(json_array_append_new(list, print_record(&tokens->token[i])) == 0);
	xassert(json_object_set_new(root, "version", json_integer(FORM)) == 0 &&
		json_object_set_new(root, "tokens", list) == 0);
	text = xalloc_check(json_dumps(root, JSON_INDENT(2)));
	json_decref(root);
	line = xasprintf("%s\n", text);
	free(text);
	return line;
}
