/* SPDX-License-Identifier: Apache-2.0 */
/* See bench_stream.h. */
#include "tests/unit/mcp/bench_stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/loop.h"
#include "base/xalloc.h"
#include "mcp/catalog.h"
#include "mcp/mcp.h"
#include "mcp/stream.h"
#include "policy/config.h"
#include "tests/unit/tools/fake_engine.h"
#include "tools/job/background.h"
#include "tools/toolsets.h"

#define LINES_MAX 1024

struct bench {
	struct catalog own;		/* when no catalog was given */
	struct bench *first;		/* whose server it is; NULL: its own */
	struct config *config;
	struct loop *loop;
	struct engine *engine;
	struct tenant *tenant;
	struct mcp *mcp;
	struct mcp_stream *stream;
	char *line[LINES_MAX];
	size_t n_lines, next;
	unsigned int idle_calls;
	size_t held;
	size_t held_most;
};

static void
on_send(void *arg, char *line, size_t len, bool may_drop)
{
	struct bench *b = arg;

	(void)may_drop;
	assert_true(b->n_lines < LINES_MAX);
	assert_int_equal(line[len - 1], '\n');
	assert_null(memchr(line, '\n', len - 1));
	line[len - 1] = '\0';
	b->line[b->n_lines++] = line;
}

static void
on_idle(void *arg)
{
	((struct bench *)arg)->idle_calls++;
}

static bool
on_hold(void *arg, size_t bytes)
{
	struct bench *b = arg;

	if (bytes > b->held_most - b->held)
		return false;
	b->held += bytes;
	return true;
}

static void
on_let_go(void *arg, size_t bytes)
{
	struct bench *b = arg;

	assert_true(bytes <= b->held);
	b->held -= bytes;
}

void
bench_set_held_most(struct bench *b, size_t bytes)
{
	b->held_most = bytes;
}

static void
open_stream(struct bench *b, unsigned int uid)
{
	const struct mcp_stream_watcher watcher = { on_send, on_idle, on_hold, on_let_go,
						    b };

	b->held_most = SIZE_MAX;
	b->tenant = engine_tenant(b->engine, uid);
	b->stream = mcp_stream_new(b->mcp, b->tenant, &watcher);
}

struct bench *
bench_new_with(const struct catalog *catalog, void (*adjust)(struct config *))
{
	struct bench *b = xcalloc(1, sizeof(*b));
	struct engine_options engine;
	struct mcp_options mcp;

	b->config = config_new();
	if (adjust)
		adjust(b->config);
	b->loop = loop_new(false);
	engine = (struct engine_options){ .base = loop_base(b->loop), .config = b->config };
	assert_int_equal(engine_new(&engine, &b->engine), 0);
	if (!catalog) {
		toolsets_add(&b->own, b->config);
		catalog = &b->own;
	}
	mcp = (struct mcp_options){ .base = loop_base(b->loop), .engine = b->engine,
				    .config = b->config, .catalog = catalog };
	b->mcp = mcp_new(&mcp);
	open_stream(b, 1000);
	return b;
}

struct bench *
bench_new(void)
{
	return bench_new_with(NULL, NULL);
}

struct bench *
bench_beside(struct bench *first, unsigned int uid)
{
	struct bench *b = xcalloc(1, sizeof(*b));

	b->first = first;
	b->config = first->config;
	b->loop = first->loop;
	b->engine = first->engine;
	b->mcp = first->mcp;
	open_stream(b, uid);
	return b;
}

void
bench_hang_up(struct bench *b)
{
	mcp_stream_free(b->stream);
	b->stream = NULL;
	assert_int_equal(b->held, 0);
}

void
bench_end_input(struct bench *b)
{
	mcp_stream_end_input(b->stream);
}

void
bench_free(struct bench *b)
{
	bench_hang_up(b);
	if (!b->first) {
		mcp_free(b->mcp);
		background_forget();
	}
	tenant_release(b->tenant);
	if (!b->first) {
		engine_free(b->engine);
		loop_free(b->loop);
		config_free(b->config);
	}
	for (size_t i = 0; i < b->n_lines; i++)
		free(b->line[i]);
	free(b);
}

void
bench_line(struct bench *b, const char *text, size_t len)
{
	mcp_stream_line(b->stream, text, len);
}

void
bench_say(struct bench *b, const char *text)
{
	bench_line(b, text, strlen(text));
}

void
bench_turn(struct bench *b)
{
	event_base_loop(loop_base(b->loop), EVLOOP_NONBLOCK);
}

static void
on_late(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	*(bool *)arg = true;
}

void
bench_wait(struct bench *b, size_t n)
{
	static const struct timeval most = { .tv_sec = 60 };
	struct event_base *base = loop_base(b->loop);
	size_t goal = b->n_lines + n;
	bool late = false;
	struct event *timer = evtimer_new(base, on_late, &late);

	evtimer_add(timer, &most);
	while (b->n_lines < goal && !late)
		event_base_loop(base, EVLOOP_ONCE);
	event_free(timer);
	assert_false(late);
}

size_t
bench_unread(const struct bench *b)
{
	return b->n_lines - b->next;
}

const char *
bench_next(struct bench *b)
{
	return b->next < b->n_lines ? b->line[b->next++] : NULL;
}

json_t *
bench_next_json(struct bench *b)
{
	const char *line = bench_next(b);
	json_t *value;

	assert_non_null(line);
	value = json_loads(line, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	assert_non_null(value);
	return value;
}

void
bench_initialize_as(struct bench *b, const char *revision, const char *capabilities)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "{\"jsonrpc\":\"2.0\",\"id\":\"init\",\"method\":\"initialize\",\"params\":"
		 "{\"protocolVersion\":\"%s\",\"capabilities\":%s,\"clientInfo\":"
		 "{\"name\":\"t\",\"version\":\"1\"}}}", revision, capabilities);
	bench_say(b, text);
	assert_non_null(strstr(bench_next(b), revision));
	bench_say(b, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
}

void
bench_initialize(struct bench *b, const char *revision)
{
	bench_initialize_as(b, revision, "{}");
}

void
bench_resource_changed(struct bench *b, const char *uri)
{
	mcp_resource_changed(b->mcp, b->tenant, uri);
}

size_t
bench_in_flight(const struct bench *b)
{
	return mcp_stream_in_flight(b->stream);
}

unsigned int
bench_idle_calls(const struct bench *b)
{
	return b->idle_calls;
}
