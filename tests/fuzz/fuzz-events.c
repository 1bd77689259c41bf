/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events of another MCP server: for any bytes, and any division into pieces, what comes
 * out is the same.
 *
 * - a message is not empty, has NUL behind it, and has at most as many bytes as are allowed;
 * - a piece that is refused leaves nothing that is larger;
 * - the bytes in one piece and in small ones give the same messages, or are both refused. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "upstream/events.h"

#define MESSAGE_MAX 64
#define SEEN_MAX (1024 * 1024)

static void
on_message(void *arg, char *text, size_t len)
{
	struct bytes *seen = arg;

	MUST(len > 0 && len <= MESSAGE_MAX && text[len] == '\0');
	MUST(bytes_add(seen, text, len + 1, SEEN_MAX) == 0);
	/* The message is the receiver's to change. */
	memset(text, 'x', len);
}

static int
feed(const char *bytes, size_t len, size_t piece, struct bytes *seen)
{
	struct events events = { .on_message = on_message, .arg = seen, .max = MESSAGE_MAX };
	int r = 0;

	for (size_t at = 0; at < len && r == 0; at += piece)
		r = events_feed(&events, bytes + at, len - at < piece ? len - at : piece);
	MUST(r <= 0 && events.line.len <= MESSAGE_MAX && events.data.len <= MESSAGE_MAX);
	events_free(&events);
	return r;
}

/* The first byte is the size of the small pieces. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes whole = { 0 }, cut = { 0 };
	const char *bytes = (const char *)data + 1;

	if (size < 2 || size > SEEN_MAX / 2)
		return 0;
	MUST(feed(bytes, size - 1, size, &whole) == feed(bytes, size - 1, 1 + data[0] % 16, &cut));
	MUST(whole.len == cut.len && (whole.len == 0 || memcmp(whole.at, cut.at, cut.len) == 0));
	bytes_free(&whole);
	bytes_free(&cut);
	return 0;
}
