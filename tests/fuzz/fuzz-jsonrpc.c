/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a client: for any bytes, the results of the parser keep its promises.
 *
 * - there is always at least one message, and each has one of the four kinds;
 * - a legal id comes back in a spelling that stands in the line, and has the value that the
 *   parser of the whole line sees;
 * - what an answer echoes makes the answer valid JSON;
 * - a request that was accepted has a method and params that are an object or absent. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonout.h"
#include "mcp/jsonrpc.h"
#include "tests/fuzz/fuzz.h"

static void
check_answer(const struct jsonrpc_message *m)
{
	struct jsonout out;
	json_t *answer;

	jsonout_init(&out);
	jsonrpc_write_error(&out, m->id.raw, -1, m->text ? m->text : "x", NULL);
	answer = json_loadb(out.at, out.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	/* An integer past 64 bits is echoed, but is too large for this parser. */
	if (!answer)
		answer = json_loadb(out.at, out.len,
				    JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
	MUST(answer != NULL);
	MUST(!!json_object_get(answer, "id") == !!m->id.raw);
	MUST(memchr(out.at, '\n', out.len) == NULL);
	json_decref(answer);
	jsonout_done(&out);
}

static void
check_message(const struct jsonrpc_message *m, const json_t *value, const char *text,
	      size_t len)
{
	if (m->id.raw && value)
		MUST(json_equal(m->id.value, json_object_get(value, "id")));
	MUST(!m->id.raw == !m->id.value);
	if (m->id.raw) {
		MUST(strlen(m->id.raw) <= JSONRPC_ID_MAX);
		MUST(memmem(text, len, m->id.raw, strlen(m->id.raw)) != NULL);
	}
	switch (m->kind) {
	case JSONRPC_REQUEST:
		MUST(m->id.raw != NULL);
		__attribute__((fallthrough));
	case JSONRPC_NOTIFICATION:
		MUST(m->method != NULL);
		MUST(m->params == NULL || json_is_object(m->params));
		break;
	case JSONRPC_RESPONSE:
		MUST((m->code < 0) == (m->text != NULL));
		MUST(m->text == NULL || (m->id.raw != NULL && m->result == NULL));
		break;
	case JSONRPC_INVALID:
		MUST(m->code < 0 && m->text != NULL);
		break;
	}
	check_answer(m);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jsonrpc_line line;
	char *text = malloc(size ? size : 1);	/* lines are cut at newlines */
	size_t len = 0;

	for (size_t i = 0; i < size; i++)
		if (data[i] != '\n')
			text[len++] = (char)data[i];
	jsonrpc_parse(text, len, &line);
	MUST(line.n > 0 && line.n <= JSONRPC_BATCH_MAX);
	MUST(line.is_batch || line.n == 1);
	for (size_t i = 0; i < line.n; i++)
		check_message(&line.message[i],
			      line.is_batch ? json_array_get(line.value, i) : line.value,
			      text, len);
	jsonrpc_line_done(&line);
	free(text);
	return 0;
}
