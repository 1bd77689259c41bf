/* Runs in: the supervisor.   Owns: the calls in flight of one stream, and open batches.
 * Reads:   messages of a client, parsed but otherwise hostile.
 * Nothing of a call is ever sent after the client has cancelled it. */
#include "supervisor/mcp_stream.h"

#include <stdio.h>
#include <string.h>

#include "supervisor/jsonout.h"
#include "supervisor/jsonrpc.h"
#include "supervisor/mcp.h"
#include "supervisor/mcp_call.h"
#include "supervisor/mcp_envelope.h"
#include "supervisor/revision.h"
#include "supervisor/tools/tool.h"
#include "supervisor/xalloc.h"

/* The answers of one array line, until all of them are there. */
struct batch {
	size_t owed;		/* by calls, and one by the dispatcher while it reads the line */
	size_t answers;
	struct jsonout out;
};

struct mcp_stream {
	const struct mcp *mcp;
	struct tenant *tenant;
	struct mcp_stream_watcher watcher;
	const struct revision *session;	/* agreed on by the handshake; NULL: none yet */
	struct mcp_call *calls;
	size_t in_flight;
	size_t bytes_each;	/* of the line being read, by its messages */
};

/* A request while it is dispatched. */
struct request {
	struct jsonrpc_message *message;
	struct batch *batch;			/* NULL: its line was no array */
	struct envelope envelope;
	const struct revision *revision;	/* NULL: not known yet */
};

struct mcp_stream *
mcp_stream_new(const struct mcp *mcp, struct tenant *tenant,
	       const struct mcp_stream_watcher *watcher)
{
	struct mcp_stream *stream = xcalloc(1, sizeof(*stream));

	stream->mcp = mcp;
	stream->tenant = tenant;
	stream->watcher = *watcher;
	return stream;
}

static void
send_out(struct mcp_stream *stream, struct jsonout *out, bool may_drop)
{
	size_t len;
	char *line = jsonout_take_line(out, &len);

	stream->watcher.send(stream->watcher.arg, line, len, may_drop);
}

/* One answer that was owed is there, or (answer NULL) will never be. */
static void
batch_settle(struct mcp_stream *stream, struct batch *batch, const struct jsonout *answer)
{
	if (answer) {
		jsonout_raw(&batch->out, answer->at, answer->len);
		batch->answers++;
	}
	if (--batch->owed)
		return;
	jsonout_close(&batch->out, ']');
	if (batch->answers)
		send_out(stream, &batch->out, false);
	jsonout_done(&batch->out);
	free(batch);
}

static struct batch *
batch_new(void)
{
	struct batch *batch = xcalloc(1, sizeof(*batch));

	batch->owed = 1;
	jsonout_open(&batch->out, '[');
	return batch;
}

/* Sends an answer that is given at once. */
static void
answer_now(struct mcp_stream *stream, struct batch *batch, struct jsonout *out)
{
	if (batch) {
		batch->owed++;
		batch_settle(stream, batch, out);
		jsonout_done(out);
	} else {
		send_out(stream, out, false);
	}
}

static void
answer_error_data(struct mcp_stream *stream, const struct request *request, int code,
		  const char *text, const char *data)
{
	struct jsonout out;

	jsonout_init(&out);
	jsonrpc_write_error(&out, request->message->id.raw, code, text, data);
	answer_now(stream, request->batch, &out);
}

static void
answer_error(struct mcp_stream *stream, const struct request *request, int code,
	     const char *text)
{
	answer_error_data(stream, request, code, text, NULL);
}

static struct mcp_call *
find_call(const struct mcp_stream *stream, const json_t *id)
{
	struct mcp_call *call = stream->calls;

	while (call && !json_equal(mcp_call_id(call), id))
		call = mcp_call_next(call);
	return call;
}

static void
remove_call(struct mcp_stream *stream, struct mcp_call *call)
{
	struct mcp_call *before = stream->calls;

	if (before == call) {
		stream->calls = mcp_call_next(call);
	} else {
		while (mcp_call_next(before) != call)
			before = mcp_call_next(before);
		mcp_call_set_next(before, mcp_call_next(call));
	}
	stream->in_flight--;
	stream->watcher.let_go(stream->watcher.arg, mcp_call_bytes(call));
	mcp_call_free(call);
	if (stream->in_flight == 0)
		stream->watcher.on_idle(stream->watcher.arg);
}

static void
on_call_progress(void *arg, struct jsonout *message)
{
	send_out(arg, message, true);
}

static void
on_call_answer(void *arg, struct mcp_call *call, struct jsonout *answer)
{
	struct mcp_stream *stream = arg;
	struct batch *batch = mcp_call_group(call);

	if (batch)
		batch_settle(stream, batch, answer);
	else
		send_out(stream, answer, false);
	remove_call(stream, call);
}

static void
cancel_call(struct mcp_stream *stream, struct mcp_call *call)
{
	struct batch *batch = mcp_call_group(call);

	mcp_call_cancel(call, CANCEL_BY_CLIENT);
	if (batch)
		batch_settle(stream, batch, NULL);
	remove_call(stream, call);
}

/* ---- requests, one function each ---- */

static const char *
text_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static void
serve_initialize(struct mcp_stream *stream, const struct request *request)
{
	const json_t *params = request->message->params;
	const json_t *client = json_object_get(params, "clientInfo");
	const char *wanted = text_of(params, "protocolVersion");
	struct jsonout out;

	if (stream->session || request->batch) {
		answer_error(stream, request, JSONRPC_INVALID_REQUEST,
			     request->batch ? "initialize may not be part of a batch"
					    : "this stream is initialized already");
		return;
	}
	if (!wanted || !json_is_object(json_object_get(params, "capabilities")) ||
	    !text_of(client, "name") || !text_of(client, "version")) {
		answer_error(stream, request, JSONRPC_INVALID_PARAMS,
			     "initialize needs protocolVersion, capabilities and "
			     "clientInfo with name and version");
		return;
	}
	stream->session = revision_negotiate(wanted);
	jsonout_init(&out);
	jsonrpc_open_result(&out, request->message->id.raw);
	revision_write_initialized(stream->session, &out, mcp_instructions(stream->mcp));
	jsonrpc_close_result(&out);
	answer_now(stream, request->batch, &out);
}

static void
serve_tools_list(struct mcp_stream *stream, const struct request *request)
{
	const json_t *cursor = json_object_get(request->message->params, "cursor");
	struct jsonout out;

	/* All tools fit on one page, so no cursor was ever handed out; the empty one is
	 * taken for the beginning. */
	if (cursor && (!json_is_string(cursor) || json_string_length(cursor) > 0)) {
		answer_error(stream, request, JSONRPC_INVALID_PARAMS, "unknown cursor");
		return;
	}
	jsonout_init(&out);
	jsonrpc_open_result(&out, request->message->id.raw);
	mcp_write_tools(stream->mcp, request->revision, &out);
	jsonrpc_close_result(&out);
	answer_now(stream, request->batch, &out);
}

static void
serve_tools_call(struct mcp_stream *stream, const struct request *request)
{
	const json_t *params = request->message->params;
	const json_t *arguments = json_object_get(params, "arguments");
	const char *name = text_of(params, "name");
	const struct tool *tool = name ? tool_find(name) : NULL;
	const struct mcp_call_watcher watcher = { on_call_progress, on_call_answer, stream };
	json_t *none = NULL;
	struct mcp_call *call;

	if (!tool || (arguments && !json_is_object(arguments))) {
		answer_error(stream, request, JSONRPC_INVALID_PARAMS,
			     !name ? "name is required and must be a string"
				   : !tool ? "unknown tool" : "arguments must be an object");
		return;
	}
	if (stream->in_flight == STREAM_CALLS_MAX ||
	    !stream->watcher.hold(stream->watcher.arg, stream->bytes_each)) {
		answer_error(stream, request, JSONRPC_INTERNAL_ERROR,
			     stream->in_flight == STREAM_CALLS_MAX
				? "too many calls in flight on this connection"
				: "too many bytes in flight of this user");
		return;
	}
	call = mcp_call_new(stream->mcp, stream->tenant, request->revision,
			    &request->message->id, &watcher);
	mcp_call_set_next(call, stream->calls);
	stream->calls = call;
	stream->in_flight++;
	mcp_call_set_bytes(call, stream->bytes_each);
	if (request->batch) {
		request->batch->owed++;
		mcp_call_set_group(call, request->batch);
	}
	if (!arguments)
		arguments = none = xalloc_check(json_object());
	mcp_call_start(call, tool, arguments, &request->envelope);
	json_decref(none);
}

static void
serve_simple(struct mcp_stream *stream, const struct request *request)
{
	struct jsonout out;

	jsonout_init(&out);
	jsonrpc_open_result(&out, request->message->id.raw);
	if (request->revision->modern)
		revision_write_discovered(request->revision, &out,
					  mcp_instructions(stream->mcp));
	else
		revision_write_empty(request->revision, &out);
	jsonrpc_close_result(&out);
	answer_now(stream, request->batch, &out);
}

/* ---- which era, which method ---- */

static void
refuse_version(struct mcp_stream *stream, const struct request *request)
{
	const json_t *asked = request->envelope.requested;
	struct jsonout data;
	char *text;

	jsonout_init(&data);
	jsonout_open(&data, '{');
	jsonout_member_raw(&data, "supported", revision_modern_list());
	jsonout_key(&data, "requested");
	jsonout_text(&data, json_string_value(asked), json_string_length(asked));
	jsonout_close(&data, '}');
	text = jsonout_take(&data);
	answer_error_data(stream, request, MCP_UNSUPPORTED_VERSION,
			  "this protocol version is not supported", text);
	free(text);
}

/* A request that claims no revision. True: go on, with request->revision. */
static bool
admit_legacy(struct mcp_stream *stream, struct request *request, enum mcp_method method)
{
	request->revision = stream->session ? stream->session : revision_negotiate("");
	if (method == METHOD_DISCOVER) {
		answer_error(stream, request, JSONRPC_INVALID_PARAMS,
			     "server/discover needs _meta with " META_VERSION);
		return false;
	}
	if (stream->session || method == METHOD_INITIALIZE || method == METHOD_PING ||
	    method == METHOD_UNKNOWN)
		return true;
	if (request->envelope.has_modern_keys)
		answer_error(stream, request, JSONRPC_INVALID_PARAMS,
			     "_meta: " META_VERSION " is required");
	else
		answer_error(stream, request, JSONRPC_INVALID_REQUEST,
			     "not initialized: send initialize first, or name a "
			     "protocol version in _meta");
	return false;
}

static bool
admit(struct mcp_stream *stream, struct request *request, enum mcp_method method)
{
	switch (request->envelope.verdict) {
	case ENVELOPE_NONE:
		return admit_legacy(stream, request, method);
	case ENVELOPE_MODERN:
		request->revision = request->envelope.revision;
		if (!request->batch)
			return true;
		answer_error(stream, request, JSONRPC_INVALID_REQUEST,
			     "batches are not part of this revision");
		return false;
	case ENVELOPE_MALFORMED:
		answer_error(stream, request, JSONRPC_INVALID_PARAMS,
			     request->envelope.text);
		return false;
	case ENVELOPE_UNSUPPORTED:
		refuse_version(stream, request);
		return false;
	}
	return false;
}

static void
serve_request(struct mcp_stream *stream, struct request *request)
{
	enum mcp_method method = method_find(request->message->method);

	if (find_call(stream, request->message->id.value)) {
		answer_error(stream, request, JSONRPC_INVALID_REQUEST,
			     "a call with this id is still in flight");
		return;
	}
	envelope_read(request->message->params, &request->envelope);
	if (!admit(stream, request, method))
		return;
	if (!revision_has(request->revision, method))
		method = METHOD_UNKNOWN;
	switch (method) {
	case METHOD_INITIALIZE:
		serve_initialize(stream, request);
		break;
	case METHOD_PING:
	case METHOD_DISCOVER:
		serve_simple(stream, request);
		break;
	case METHOD_TOOLS_LIST:
		serve_tools_list(stream, request);
		break;
	case METHOD_TOOLS_CALL:
		serve_tools_call(stream, request);
		break;
	case METHOD_NOTE_INITIALIZED:
	case METHOD_NOTE_CANCELLED:
	case METHOD_UNKNOWN:
		answer_error(stream, request, JSONRPC_METHOD_NOT_FOUND, "unknown method");
		break;
	}
}

/* Everything but a cancellation of something in flight is ignored, as both eras want. */
static void
on_notification(struct mcp_stream *stream, const struct jsonrpc_message *message)
{
	const json_t *id = json_object_get(message->params, "requestId");
	struct mcp_call *call;

	if (method_find(message->method) != METHOD_NOTE_CANCELLED || !id)
		return;
	call = find_call(stream, id);
	if (call)
		cancel_call(stream, call);
}

static void
on_message(struct mcp_stream *stream, struct jsonrpc_message *message,
	   struct batch *batch)
{
	struct request request = { .message = message, .batch = batch };

	switch (message->kind) {
	case JSONRPC_REQUEST:
		serve_request(stream, &request);
		break;
	case JSONRPC_NOTIFICATION:
		on_notification(stream, message);
		break;
	case JSONRPC_RESPONSE:
		break;		/* we ask clients nothing */
	case JSONRPC_INVALID:
		answer_error(stream, &request, message->code, message->text);
		break;
	}
}

static void
on_batch(struct mcp_stream *stream, struct jsonrpc_line *line)
{
	struct jsonrpc_message refusal = { .id = { NULL, NULL } };
	const struct request request = { .message = &refusal };
	struct batch *batch;

	if (!stream->session || !stream->session->batches) {
		answer_error(stream, &request, JSONRPC_INVALID_REQUEST,
			     "batches are not part of this revision");
		return;
	}
	batch = batch_new();
	for (size_t i = 0; i < line->n; i++)
		on_message(stream, &line->message[i], batch);
	batch_settle(stream, batch, NULL);
}

static bool
is_blank(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
			return false;
	return true;
}

void
mcp_stream_line(struct mcp_stream *stream, const char *text, size_t len)
{
	struct jsonrpc_line line;

	if (is_blank(text, len))
		return;
	jsonrpc_parse(text, len, &line);
	stream->bytes_each = len / line.n;
	if (line.is_batch)
		on_batch(stream, &line);
	else
		on_message(stream, &line.message[0], NULL);
	jsonrpc_line_done(&line);
}

void
mcp_stream_too_long(struct mcp_stream *stream, size_t line_max)
{
	struct jsonrpc_message refusal = { .id = { NULL, NULL } };
	const struct request request = { .message = &refusal };
	char text[96];

	snprintf(text, sizeof(text), "a line is longer than %zu bytes", line_max);
	answer_error(stream, &request, JSONRPC_INVALID_REQUEST, text);
}

size_t
mcp_stream_in_flight(const struct mcp_stream *stream)
{
	return stream->in_flight;
}

static void
ignore_idle(void *arg)
{
	(void)arg;
}

static void
ignore_line(void *arg, char *line, size_t len, bool may_drop)
{
	(void)arg;
	(void)len;
	(void)may_drop;
	free(line);
}

void
mcp_stream_free(struct mcp_stream *stream)
{
	if (!stream)
		return;
	stream->watcher.send = ignore_line;
	stream->watcher.on_idle = ignore_idle;
	while (stream->calls) {
		struct mcp_call *call = stream->calls;
		struct batch *batch = mcp_call_group(call);

		mcp_call_cancel(call, CANCEL_DISCONNECTED);
		if (batch)
			batch_settle(stream, batch, NULL);
		remove_call(stream, call);
	}
	free(stream);
}
