/* SPDX-License-Identifier: Apache-2.0 */
/* What a script sends to its proxy: a head, and a body behind it.
 *
 * - a head that is taken is whole, within bounds, and names a target that is one;
 * - what the origin gets of it is a head again, of the same host, that keeps nothing open, and
 *   says the same of the body; in it each place of a secret has the secret's text;
 * - a body takes no byte twice, none after its end, and ends at the same place when it comes
 *   byte by byte;
 * - a rule that names the target allows it, and one that names another does not. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egress/head.h"
#include "tests/fuzz/fuzz.h"

static void
check_rewritten(const struct head *head, const char *bytes)
{
	static const char close[] = "\r\nConnection: close\r\n\r\n";
	const char *values[HEAD_SECRETS_MAX];
	size_t len, absolute_len;
	char *text, *absolute;
	struct head again;

	for (size_t i = 0; i < HEAD_SECRETS_MAX; i++)
		values[i] = "value";
	text = head_for_origin(head, bytes, values, &len);

	MUST(text && len > sizeof(close));
	MUST(memcmp(text + len - (sizeof(close) - 1), close, sizeof(close) - 1) == 0);
	MUST(memmem(text, len, "\r\n\r\n", 4) == text + len - 4);
	/* In absolute form it is one that the proxy would accept, too. */
	absolute_len = len + 7 + NETWORK_HOST_MAX + 16;
	absolute = malloc(absolute_len + 1);
	MUST(absolute);
	len = (size_t)snprintf(absolute, absolute_len, "%.*s http://%s%s%s:%u%.*s",
			       (int)head->method_len, text,
			       head->target.address.family == 6 ? "[" : "", head->target.host,
			       head->target.address.family == 6 ? "]" : "", head->target.port,
			       (int)(len - head->method_len - 1), text + head->method_len + 1);
	if (!memchr(text, '\0', len) && len < HEAD_MAX) {
		int r = head_parse(absolute, len, &again);

		MUST(r == 1 || r == -431);
		MUST(r < 0 || (strcmp(again.target.host, head->target.host) == 0 &&
			       again.target.port == head->target.port &&
			       again.body == head->body && again.body_len == head->body_len &&
			       again.n_secrets == 0));
	}
	free(absolute);
	free(text);
}

static void
check_body(const struct head *head, const char *bytes, size_t len)
{
	struct head_body_state at_once, by_byte;
	size_t taken, total = 0, n;
	bool over, over_too = false;
	int r, r_too = 0;

	head_body_begin(&at_once, head->body, head->body_len);
	head_body_begin(&by_byte, head->body, head->body_len);
	r = head_body_take(&at_once, bytes, len, &taken, &over);
	MUST(taken <= len);
	if (len == 0)
		return;
	while (r_too == 0 && !over_too && total < len) {
		r_too = head_body_take(&by_byte, bytes + total, 1, &n, &over_too);
		MUST(n <= 1);
		total += n;
	}
	MUST(r == r_too && over == over_too && (r < 0 || total == taken));
}

static void
check_rules(const struct network_target *target)
{
	char text[NETWORK_HOST_MAX + 16];
	struct network_rule rule;
	bool six = target->address.family == 6;

	snprintf(text, sizeof(text), "%s%s%s:%u", six ? "[" : "", target->host, six ? "]" : "",
		 target->port);
	MUST(network_rule_parse(text, strlen(text), &rule) == 0);
	MUST(network_rule_allows(&rule, target));
	rule.port ^= 1;
	MUST(!network_rule_allows(&rule, target));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	struct head head;
	int r = head_parse(bytes, size, &head);

	MUST(r == 0 || r == 1 || r == -400 || r == -431 || r == -501);
	MUST(r != 0 || size < HEAD_MAX);
	if (r != 1)
		return 0;
	MUST(head.len <= size && head.len <= HEAD_MAX && head.target.port != 0);
	MUST(head.target.host[0] && strlen(head.target.host) <= NETWORK_HOST_MAX);
	check_rules(&head.target);
	if (!head.connect) {
		check_rewritten(&head, bytes);
		check_body(&head, bytes + head.len, size - head.len);
	}
	return 0;
}
