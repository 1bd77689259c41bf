/* SPDX-License-Identifier: Apache-2.0 */
/* The head and body of a POST, as evhttp would hand them over: header lines, an empty line,
 * the body. For any requests,
 *
 * - their framing is the same in one piece and byte by byte;
 * - a refusal has a status, a code and a text;
 * - what passes as modern names a revision, and its headers say what its body says;
 * - a host or origin that is taken without a list names the loopback device. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <jansson.h>

#include "http/framing.h"
#include "http/head.h"
#include "http/ladder.h"
#include "http/origin.h"
#include "mcp/jsonrpc.h"
#include "policy/config.h"
#include "tests/fuzz/fuzz.h"

/* The next line of the head, NUL-terminated; NULL: the head is over. */
static char *
next_line(const uint8_t **at, const uint8_t *end)
{
	const uint8_t *newline = memchr(*at, '\n', (size_t)(end - *at));
	size_t len = newline ? (size_t)(newline - *at) : (size_t)(end - *at);
	char *line;

	if (*at == end)
		return NULL;
	line = strndup((const char *)*at, len);
	MUST(line != NULL);
	*at += newline ? len + 1 : len;
	if (*line)
		return line;
	free(line);
	return NULL;
}

static void
check_origins(const struct http_head *head)
{
	static const struct config_list none;
	const char *host = head->value[HTTP_HOST], *origin = head->value[HTTP_ORIGIN];

	if (host && http_host_is_ours(host, NULL, &none))
		MUST(strchr("lL1[", *host) && !strpbrk(host, "/@ "));
	if (origin && http_origin_is_allowed(origin, &none))
		MUST(strncasecmp(origin, "http", 4) == 0 && !strpbrk(origin, "@ "));
}

static void
check_framing(const char *bytes, size_t n)
{
	struct http_framing whole = { 0 }, slow = { 0 };
	const char *wrong = http_framing_take(&whole, bytes, n), *also = NULL;

	for (size_t i = 0; i < n && !also; i++)
		also = http_framing_take(&slow, bytes + i, 1);
	MUST(wrong == also && whole.state == slow.state && whole.left == slow.left);
}

static void
check_verdict(const struct http_head *head, const struct jsonrpc_line *line)
{
	struct http_verdict verdict;

	http_ladder(head, line, &verdict);
	if (verdict.way == HTTP_WAY_REFUSE)
		MUST(verdict.status == 400 && verdict.code < 0 && verdict.text);
	if (verdict.way != HTTP_WAY_MODERN)
		return;
	MUST(verdict.revision && !line->is_batch && !head->mcp_twice);
	MUST(strcmp(head->value[HTTP_METHOD], line->message[0].method) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *at = data, *end = data + size;
	struct evkeyvalq headers;
	struct jsonrpc_line line;
	struct http_head head;
	char *text;

	check_framing((const char *)data, size);
	TAILQ_INIT(&headers);
	while ((text = next_line(&at, end))) {
		char *colon = strchr(text, ':');

		if (colon) {
			*colon = '\0';
			(void)evhttp_add_header(&headers, text, colon + 1);
		}
		free(text);
	}
	if (!http_head_read(&headers, &head)) {
		check_origins(&head);
		(void)http_is_json(head.value[HTTP_CONTENT_TYPE]);
		jsonrpc_parse((const char *)at, (size_t)(end - at), &line);
		check_verdict(&head, &line);
		jsonrpc_line_done(&line);
	}
	evhttp_clear_headers(&headers);
	return 0;
}
