/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that the service gives to a client and gets back. The first byte is the kind of the rest:
 *
 * 'T'  a text as any client may send it. It was not sealed, so it does not open.
 *   'S'  what is sealed (end, flags, name and arguments), then changes of the text. The seal opens
 *        if and only if the text is unchanged, the binding is the same, and the time is not over.
 *        The opened content is then the sealed content.
 *   'C'  a cursor. A cursor that is read is written the same: each place has one spelling. */
#include "fuzz.h"

#include <stdbool.h>

#include "mcp/cursor.h"
#include "mcp/seal.h"

static struct mcp_seal *seal, *stranger;

static json_t *
params_of(struct rest *rest)
{
	struct rest name = rest_take(rest, rest_byte(rest) % 16), value = rest_take(rest, 8);

	return json_pack("{s:o*,s:{s:o*}}", "name",
			 json_stringn((const char *)name.at, name.len), "arguments", "a",
			 json_stringn((const char *)value.at, value.len));
}

/* Returns whether the text is different in the end. */
static bool
change(char **text, struct rest *rest)
{
	char *was = strdup(*text);
	size_t len = strlen(was);
	bool changed;

	while (rest->len >= 2) {
		uint8_t where = rest_byte(rest), with = rest_byte(rest);

		if (where % 8 == 7)
			(*text)[len = with % (len + 1)] = '\0';
		else if (len > 0 && (*text)[where % len] != (char)with && with != 0)
			(*text)[where % len] = (char)with;
	}
	changed = strcmp(was, *text) != 0;
	free(was);
	return changed;
}

static void
try_sealed(struct rest rest)
{
	struct sealed in = { .nothing_done = rest_byte(&rest) & 1 }, out = { .expires = 0 };
	struct seal_binding binding, other;
	json_t *params;
	char *text;
	bool same;

	id_new(in.id);
	in.expires = (int64_t)rest_byte(&rest) << (rest_byte(&rest) % 54);
	params = params_of(&rest);
	seal_bind("uid:1", "tools/call", params, &binding);
	seal_bind("uid:2", "tools/call", params, &other);
	json_decref(params);
	text = mcp_seal_close(seal, &in, &binding);
	MUST(!mcp_seal_open(seal, text, in.expires, &binding, &out));
	MUST(!mcp_seal_open(seal, text, INT64_MIN, &other, &out));
	MUST(!mcp_seal_open(stranger, text, INT64_MIN, &binding, &out));
	same = !change(&text, &rest);
	MUST(mcp_seal_open(seal, text, in.expires - 1, &binding, &out) == same);
	if (same)
		MUST(strcmp(in.id, out.id) == 0 && in.expires == out.expires && out.is_ours &&
		     in.nothing_done == out.nothing_done);
	free(text);
}

static void
try_text(const char *text)
{
	struct seal_binding binding;
	struct sealed out;

	seal_bind("uid:1", "tools/call", NULL, &binding);
	MUST(!mcp_seal_open(seal, text, INT64_MIN, &binding, &out));
}

static void
try_cursor(const char *text, size_t len)
{
	char *place = cursor_read(text, len), *again;

	if (!place)
		return;
	MUST(strlen(place) <= len);
	again = cursor_write(place);
	MUST(strlen(again) == len && memcmp(again, text, len) == 0);
	free(again);
	free(place);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!seal) {
		seal = mcp_seal_new_random();
		stranger = mcp_seal_new_random();
	}
	if (size == 0 || size > 16384)
		return 0;
	text = strndup((const char *)data + 1, size - 1);
	if (data[0] == 'S')
		try_sealed((struct rest){ data + 1, size - 1 });
	else if (data[0] == 'C')
		try_cursor((const char *)data + 1, size - 1);
	else
		try_text(text);
	free(text);
	return 0;
}
