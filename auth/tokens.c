/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the records of the token file's last valid state.
 * Reads:   tokens of clients, hostile; and the file, which an administrator wrote. */
#include "auth/tokens.h"

#include <errno.h>

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "auth/file.h"
#include "base/log.h"
#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "policy/tokens.h"

struct auth_tokens {
	struct auth_file file;
	struct tokens known;
	void (*withdrawn)(void *arg, const char *tenant);	/* NULL: nobody is told */
	void *withdrawn_arg;
};

/* Takes over the tokens of read. */
static void
tokens_replace(struct auth_tokens *tokens, struct tokens *read)
{
	for (size_t i = 0; i < tokens->known.n && tokens->withdrawn; i++) {
		const struct token *was = &tokens->known.token[i];
		const struct token *is = tokens_find(read, was->id, TOKEN_ID);

		if (!was->revoked && (!is || is->revoked))
			tokens->withdrawn(tokens->withdrawn_arg, was->tenant);
	}
	tokens_done(&tokens->known);
	tokens->known = *read;
}

static int
tokens_read_again(struct auth_tokens *tokens, uint64_t now_ms, struct why *why_r)
{
	own_mem char *text = NULL;
	struct tokens read = { .n = 0 };
	size_t len;
	int r = auth_file_read(&tokens->file, now_ms, &text, &len);

	if (r == -ENOENT)
		tokens_replace(tokens, &read);
	if (r < 0)
		return why_say(why_r, r, "token_file", "%s: %s", tokens->file.path,
			       r == -EPERM ? "others than its owner may write to it"
					   : strerror(-r));
	if (r == 0)
		return 0;
	r = tokens_parse(text, len, &read, why_r);
	if (r < 0)
		return r;
	tokens_replace(tokens, &read);
	return 1;
}

int
auth_tokens_new(const char *path, struct auth_tokens **tokens_r, struct why *why_r)
{
	struct auth_tokens *tokens = xcalloc(1, sizeof(*tokens));
	struct why why;
	int r;

	tokens->file = (struct auth_file){ .path = path, .bytes_max = TOKENS_BYTES_MAX };
	r = tokens_read_again(tokens, 0, &why);
	if (r < 0 && r != -ENOENT) {
		auth_tokens_free(tokens);
		return why_say(why_r, r, "token_file", "token_file: %s", why.text);
	}
	*tokens_r = tokens;
	return 0;
}

void
auth_tokens_free(struct auth_tokens *tokens)
{
	if (!tokens)
		return;
	tokens_done(&tokens->known);
	free(tokens);
}

void
auth_tokens_on_withdrawn(struct auth_tokens *tokens,
			 void (*call)(void *arg, const char *tenant), void *arg)
{
	tokens->withdrawn = call;
	tokens->withdrawn_arg = arg;
}

/* The result is logged once for each state of the file. */
void
auth_tokens_keep_up(struct auth_tokens *tokens, uint64_t now_ms)
{
	struct log_quoted quoted;
	struct why why;
	int r = tokens_read_again(tokens, now_ms, &why);

	if (r > 0)
		log_line(LOG_INFO, "tokens-read", "tokens=%zu", tokens->known.n);
	else if (r < 0)
		log_line(LOG_ERR, r == -ENOENT ? "tokens-gone" : "tokens-kept", "text=%s",
			 log_quote(&quoted, why.text, strlen(why.text)));
}

const char *
auth_tokens_check(struct auth_tokens *tokens, const char *text, uint64_t now_ms, int64_t now,
		  const struct token **token_r)
{
	unsigned char hash[TOKEN_HASH];
	const struct token *token;
	const char *id;

	auth_tokens_keep_up(tokens, now_ms);
	if (!token_is_text(text, &id))
		return "no token of this service";
	token = tokens_find(&tokens->known, id, TOKEN_ID);
	if (!token)
		return "unknown";
	SHA256((const unsigned char *)text, strlen(text), hash);
	/* The time of this check must not reveal any part of a token except its id. */
	if (CRYPTO_memcmp(hash, token->hash, sizeof(hash)) != 0)
		return "unknown";
	if (token->revoked)
		return "revoked";
	if (token->expires && now >= token->expires)
		return "expired";
	*token_r = token;
	return NULL;
}

bool
auth_tokens_withdrawn(struct auth_tokens *tokens, const char *text, uint64_t now_ms)
{
	const struct token *token;
	const char *id;

	auth_tokens_keep_up(tokens, now_ms);
	if (!token_is_text(text, &id))
		return false;
	token = tokens_find(&tokens->known, id, TOKEN_ID);
	return !token || token->revoked;
}
