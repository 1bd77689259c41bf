/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the conversation of one byte stream.
 * Reads:   lines of a client, hostile. */
#include "mcp/stream.h"

#include <stdio.h>

#include "base/jsonout.h"
#include "base/xalloc.h"
#include "mcp/jsonrpc.h"

struct mcp_stream {
	struct mcp_stream_watcher watcher;
	struct mcp_exchange exchange;
	struct mcp_conversation *conversation;
	bool taking;		/* a line is being handled; on_idle is called only after that */
};

static struct mcp_stream *
stream_of(struct mcp_exchange *exchange)
{
	return (struct mcp_stream *)((char *)exchange - offsetof(struct mcp_stream, exchange));
}

static void
stream_on_send(struct mcp_exchange *exchange, enum mcp_sent kind, struct jsonout *message)
{
	struct mcp_stream *stream = stream_of(exchange);
	size_t len;
	char *line = jsonout_take_line(message, &len);

	stream->watcher.send(stream->watcher.arg, line, len, kind == MCP_SENT_NEWS);
}

static void
stream_on_done(struct mcp_exchange *exchange)
{
	struct mcp_stream *stream = stream_of(exchange);

	if (!stream->taking)
		stream->watcher.on_idle(stream->watcher.arg);
}

static bool
mcp_stream_on_hold(void *arg, size_t bytes)
{
	const struct mcp_stream *stream = arg;

	return stream->watcher.hold(stream->watcher.arg, bytes);
}

static void
mcp_stream_on_let_go(void *arg, size_t bytes)
{
	const struct mcp_stream *stream = arg;

	stream->watcher.let_go(stream->watcher.arg, bytes);
}

struct mcp_stream *
mcp_stream_new(struct mcp *mcp, struct tenant *tenant,
	       const struct mcp_stream_watcher *watcher)
{
	struct mcp_stream *stream = xcalloc(1, sizeof(*stream));
	const struct mcp_conversation_options options = {
		.mcp = mcp,
		.tenant = tenant,
		.by_stream = true,
		.hold = mcp_stream_on_hold,
		.let_go = mcp_stream_on_let_go,
		.arg = stream,
	};

	stream->watcher = *watcher;
	stream->exchange.send = stream_on_send;
	stream->exchange.on_done = stream_on_done;
	stream->conversation = mcp_conversation_new(&options);
	return stream;
}

void
mcp_stream_free(struct mcp_stream *stream)
{
	if (!stream)
		return;
	mcp_conversation_free(stream->conversation);
	free(stream);
}

static bool
stream_is_blank(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
			return false;
	return true;
}

void
mcp_stream_line(struct mcp_stream *stream, const char *text, size_t len)
{
	size_t before = mcp_stream_in_flight(stream);
	struct jsonrpc_line line;

	if (stream_is_blank(text, len))
		return;
	jsonrpc_parse(text, len, &line);
	stream->taking = true;
	mcp_conversation_take(stream->conversation, &stream->exchange, &line, len);
	stream->taking = false;
	jsonrpc_line_done(&line);
	if (before > 0 && mcp_stream_in_flight(stream) == 0)
		stream->watcher.on_idle(stream->watcher.arg);
}

void
mcp_stream_refuse(struct mcp_stream *stream, const char *text)
{
	struct jsonout out;

	jsonout_init(&out);
	jsonrpc_write_error(&out, NULL, JSONRPC_INVALID_REQUEST, text, NULL);
	stream_on_send(&stream->exchange, MCP_SENT_REFUSAL, &out);
}

void
mcp_stream_end_input(struct mcp_stream *stream)
{
	mcp_conversation_end_input(stream->conversation);
}

size_t
mcp_stream_in_flight(const struct mcp_stream *stream)
{
	return mcp_conversation_in_flight(stream->conversation);
}
