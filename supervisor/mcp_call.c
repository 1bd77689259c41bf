/* Runs in: the supervisor.   Owns: the id of each call, its progress, its answer. */
#include "supervisor/mcp_call.h"

#include "policy/config.h"
#include "supervisor/jsonout.h"
#include "supervisor/mcp.h"
#include "supervisor/mcp_envelope.h"
#include "supervisor/mcp_progress.h"
#include "supervisor/revision.h"
#include "supervisor/tools/tool.h"
#include "supervisor/xalloc.h"

struct mcp_call {
	struct mcp_call *next;
	void *group;
	size_t bytes;
	const struct mcp *mcp;
	struct tenant *tenant;
	const struct revision *revision;
	struct mcp_call_watcher watcher;
	struct jsonrpc_id id;
	const struct tool *tool;
	struct tool_run *run;
	bool starting;
	struct jsonout answer;	/* empty until there is one */
	struct mcp_progress *progress;	/* NULL: the client wants none */
};

static void
on_tool_output(void *arg, enum stream stream, const char *bytes, size_t len)
{
	mcp_progress_output(((struct mcp_call *)arg)->progress, stream, bytes, len);
}

static void
stop_progress(struct mcp_call *call)
{
	mcp_progress_free(call->progress);
	call->progress = NULL;
}

static void
give_answer(struct mcp_call *call)
{
	struct jsonout answer = call->answer;

	jsonout_init(&call->answer);
	mcp_progress_finish(call->progress);
	stop_progress(call);
	call->watcher.on_answer(call->watcher.arg, call, &answer);
	jsonout_done(&answer);
}

static void
on_tool_answer(void *arg, const struct tool_answer *answer)
{
	struct mcp_call *call = arg;

	call->run = NULL;
	jsonrpc_open_result(&call->answer, call->id.raw);
	revision_write_answer(call->revision, &call->answer, answer);
	jsonrpc_close_result(&call->answer);
	if (!call->starting)
		give_answer(call);
}

static void
want_progress(struct mcp_call *call, const struct envelope *envelope,
	      const struct tool_host *host)
{
	/* An answer keeps half of its room for the head of each stream. */
	const struct mcp_progress_options options = {
		.base = mcp_base(call->mcp),
		.revision = call->revision,
		.token = envelope->progress_token,
		.streams = envelope->streams,
		.stream_max = host->config->limits.standard.output_bytes / 2,
		.send = call->watcher.on_progress,
		.arg = call->watcher.arg,
	};

	call->progress = mcp_progress_new(&options);
}

struct mcp_call *
mcp_call_new(const struct mcp *mcp, struct tenant *tenant,
	     const struct revision *revision, struct jsonrpc_id *id,
	     const struct mcp_call_watcher *watcher)
{
	struct mcp_call *call = xcalloc(1, sizeof(*call));

	call->mcp = mcp;
	call->tenant = tenant;
	call->revision = revision;
	call->id = jsonrpc_id_take(id);
	call->watcher = *watcher;
	return call;
}

void
mcp_call_start(struct mcp_call *call, const struct tool *tool, const json_t *arguments,
	       const struct envelope *envelope)
{
	struct tool_host host;

	mcp_host(call->mcp, call->tenant, &host);
	if (envelope->progress_token) {
		want_progress(call, envelope, &host);
		host.on_output = on_tool_output;
	}
	host.on_answer = on_tool_answer;
	host.arg = call;
	call->tool = tool;
	call->starting = true;
	call->run = tool->start(&host, arguments);
	call->starting = false;
	if (call->answer.len)
		give_answer(call);
}

void
mcp_call_cancel(struct mcp_call *call, enum cancel_reason reason)
{
	struct tool_run *run = call->run;

	stop_progress(call);
	call->run = NULL;
	if (run)
		call->tool->cancel(run, reason);
}

void
mcp_call_free(struct mcp_call *call)
{
	if (!call)
		return;
	mcp_call_cancel(call, CANCEL_DISCONNECTED);
	jsonout_done(&call->answer);
	jsonrpc_id_done(&call->id);
	free(call);
}

const json_t *
mcp_call_id(const struct mcp_call *call)
{
	return call->id.value;
}

struct mcp_call *
mcp_call_next(const struct mcp_call *call)
{
	return call->next;
}

void
mcp_call_set_next(struct mcp_call *call, struct mcp_call *next)
{
	call->next = next;
}

void *
mcp_call_group(const struct mcp_call *call)
{
	return call->group;
}

void
mcp_call_set_group(struct mcp_call *call, void *group)
{
	call->group = group;
}

size_t
mcp_call_bytes(const struct mcp_call *call)
{
	return call->bytes;
}

void
mcp_call_set_bytes(struct mcp_call *call, size_t bytes)
{
	call->bytes = bytes;
}
