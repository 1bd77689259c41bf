/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of an OAuth token endpoint: for any bytes,
 *
 * - there is a token or a mistake, never both;
 * - a token has nothing in it that could end a header, and is renewed after now and before its
 *   end;
 * - what is told of an error is printable and has an end. */
#include <stdint.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "upstream/token.h"

#define NOW_MS 1000
#define ERROR_SIZE 32

static void
must_be_usable(const struct token *token)
{
	size_t len = strlen(token->text);

	MUST(len >= TOKEN_MIN && len <= TOKEN_MAX);
	for (size_t i = 0; i < len; i++)
		MUST(token->text[i] > ' ' && token->text[i] <= '~');
	MUST(token->renew_ms > NOW_MS && token_is_fresh(token, NOW_MS));
	MUST(token->renew_ms == UINT64_MAX || !token_is_fresh(token, token->renew_ms));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *json = (const char *)data, *wrong;
	char error[ERROR_SIZE];
	struct token token;

	wrong = token_read(json, size, NOW_MS, &token);
	MUST((wrong != NULL) == (token.text == NULL));
	if (token.text != NULL)
		must_be_usable(&token);
	token_wipe(&token);
	MUST(token.text == NULL && !token_is_fresh(&token, NOW_MS));
	token_error(json, size, error, sizeof(error));
	MUST(memchr(error, '\0', sizeof(error)) != NULL);
	for (size_t i = 0; error[i] != '\0'; i++)
		MUST(error[i] >= ' ' && error[i] <= '~');
	return 0;
}
