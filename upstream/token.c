/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-tools.   Owns: nothing; the token belongs to the caller.
 * Reads:   the answer of a token endpoint, hostile. */
#include "upstream/token.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "base/xalloc.h"
#include "policy/shape.h"

#define EARLY_MS 60000			/* before its end it is renewed, or in the last half */
#define LONGEST_S (10.0 * 365 * 86400)

static void
token_wipe_memory(void *mem)
{
	if (mem)
		explicit_bzero(mem, malloc_usable_size(mem));
	free(mem);
}

/* b64token of RFC 6750: nothing that would end a header. */
static bool
token_is_token(const char *text, size_t len)
{
	if (!text || len < TOKEN_MIN || len > TOKEN_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	return true;
}

/* False: it is no time. */
static bool
read_end(const json_t *seconds, uint64_t now_ms, uint64_t *renew_ms_r)
{
	double s = json_number_value(seconds);
	uint64_t ms, early;

	*renew_ms_r = UINT64_MAX;
	if (!seconds || json_is_null(seconds))
		return true;
	if (!json_is_number(seconds) || !(s >= 1))
		return false;
	ms = (uint64_t)((s < LONGEST_S ? s : LONGEST_S) * 1000);
	early = ms / 2 < EARLY_MS ? ms / 2 : EARLY_MS;
	*renew_ms_r = now_ms + ms - early;
	return true;
}

static const char *
token_take(const json_t *answer, uint64_t now_ms, struct token *token_r)
{
	const json_t *token = json_object_get(answer, "access_token");
	const char *type = json_string_value(json_object_get(answer, "token_type"));

	if (!json_is_object(answer))
		return "its answer is not a JSON object";
	if (!token_is_token(json_string_value(token), json_string_length(token)))
		return "its answer has no access_token of 8 to 8192 printable characters";
	if (!type || strcasecmp(type, "bearer") != 0)
		return "its token_type is not Bearer";
	if (!read_end(json_object_get(answer, "expires_in"), now_ms, &token_r->renew_ms))
		return "its expires_in is not a number of seconds";
	token_r->text = xmemdup0(json_string_value(token), json_string_length(token));
	return NULL;
}

const char *
token_read(const char *json, size_t len, uint64_t now_ms, struct token *token_r)
{
	const char *wrong;
	json_t *answer;

	*token_r = (struct token){ 0 };
	json_set_alloc_funcs(xmalloc, token_wipe_memory);
	answer = json_loadb(json, len, JSON_REJECT_DUPLICATES, NULL);
	wrong = token_take(answer, now_ms, token_r);
	json_decref(answer);
	json_set_alloc_funcs(xmalloc, free);
	return wrong;
}

void
token_error(const char *json, size_t len, char *text_r, size_t size)
{
	json_t *answer = json_loadb(json, len, JSON_REJECT_DUPLICATES, NULL);
	const char *error = json_string_value(json_object_get(answer, "error"));

	shape_text(text_r, size, error ? error : "");
	json_decref(answer);
}

bool
token_is_fresh(const struct token *token, uint64_t now_ms)
{
	return token->text && now_ms < token->renew_ms;
}

void
token_wipe(struct token *token)
{
	if (token->text)
		explicit_bzero(token->text, strlen(token->text));
	free(token->text);
	*token = (struct token){ 0 };
}
