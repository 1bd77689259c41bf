/* SPDX-License-Identifier: Apache-2.0 */
/* Event ids that clients send back. Steps come first, a byte each, up to a newline. A step begins a
 * stream, says news or an answer on a stream, or ends a stream. The rest is a Last-Event-ID. The
 * target asserts:
 *
 * - An accepted id names an existing stream, and an event of that stream.
 * - The stream then repeats each later event, in order, with its id. Each of these ids is accepted
 *   too. */
#include "fuzz.h"

#include <event2/buffer.h>
#include <event2/event.h>

#include "base/jsonout.h"
#include "http/account.h"
#include "http/replay.h"

#define STREAMS_MAX 8

struct rig {
	struct http_tenant tenant;
	struct http_replays replays;
	struct http_replay *stream[STREAMS_MAX];
	size_t n;
	struct evbuffer *out;
	int exchange;			/* in place of an exchange; never used */
};

static void
forget(void *exchange)
{
	(void)exchange;
}

static void
step(struct rig *rig, uint8_t what)
{
	struct http_replay *stream = rig->n > 0 ? rig->stream[(what >> 4) % rig->n] : NULL;
	struct jsonout message;

	if (what % 4 == 0 && rig->n < STREAMS_MAX) {
		rig->stream[rig->n++] = http_replay_new(&rig->replays,
							(struct http_exchange *)&rig->exchange,
							forget);
	} else if (what % 4 == 3 && stream && stream->exchange) {
		http_replay_end(stream);
	} else if (stream && stream->exchange) {
		jsonout_init(&message);
		jsonout_uint(&message, stream->latest + 1);
		http_replay_say(stream, what % 4 == 1, &message, rig->out);
	}
}

/* Each message is the number of its event. */
static void
check_again(const struct rig *rig, struct http_replay *stream, uint64_t number)
{
	struct evbuffer *out = evbuffer_new();

	http_replay_write(stream, number, out);
	while (number < stream->latest) {
		char id[HTTP_EVENT_ID_MAX], want[128], got[128] = "";
		uint64_t back;
		int n;

		http_replay_id(stream, ++number, id);
		MUST(http_replay_find(&rig->replays, id, &back) == stream && back == number);
		n = snprintf(want, sizeof(want), "event: message\nid: %s\ndata: %s\n\n", id,
			     strchr(id, '-') + 1);
		MUST(evbuffer_remove(out, got, (size_t)n) == n && strcmp(got, want) == 0);
	}
	MUST(evbuffer_get_length(out) == 0);
	evbuffer_free(out);
}

static void
find(const struct rig *rig, const char *id)
{
	struct http_replay *found;
	char again[HTTP_EVENT_ID_MAX];
	uint64_t number, back;

	found = http_replay_find(&rig->replays, id, &number);
	if (!found)
		return;
	MUST(number <= found->latest && found->whole);
	MUST(id[strspn(id, "0123456789-")] == '\0');
	http_replay_id(found, number, again);
	MUST(http_replay_find(&rig->replays, again, &back) == found && back == number);
	check_again(rig, found, number);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct event_base *base;
	struct rest rest = { data, size }, steps = rest_line(&rest);
	struct http_tenants tenants = { .replay_bytes = 0 };
	struct rig rig = { .tenant = { .all = &tenants } };
	char *id;

	if (!base)
		base = event_base_new();
	if (steps.len > 1000 || memchr(data, '\0', size))
		return 0;
	id = strndup((const char *)rest.at, rest.len);
	rig.out = evbuffer_new();
	http_replays_init(&rig.replays, base, &rig.tenant, 60);
	for (size_t i = 0; i < steps.len; i++)
		step(&rig, steps.at[i]);
	find(&rig, id);
	http_replays_clear(&rig.replays);
	MUST(rig.tenant.replay_bytes == 0 && tenants.replay_bytes == 0);
	evbuffer_free(rig.out);
	free(id);
	return 0;
}
