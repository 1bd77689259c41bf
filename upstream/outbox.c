/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-tools.   Owns: nothing.   Reads: nothing. */
#include "upstream/outbox.h"

#define FULL (1 << 20)

static const char unread[] = "the results of other calls have to be read first; the call may have "
	"been done. Call again later, or ask for less";

int
outbox_send(struct control *control, const struct msg *msg)
{
	const struct msg_tools_result *result = &msg->tools_result;
	size_t waits = control->writer.bytes;

	if (msg->type == MSG_TOOLS_PROGRESS && waits > OUTBOX_RESULTS_MAX)
		return 0;
	if (msg->type == MSG_TOOLS_RESULT && result->body.len > sizeof(unread) &&
	    waits + result->body.len > OUTBOX_RESULTS_MAX)
		return control_send(control, &(struct msg){
			.type = MSG_TOOLS_RESULT,
			.tools_result = { .call = result->call, .status = TOOL_FAILED,
					  .body = msg_str(unread) } });
	return control_send(control, msg);
}

bool
outbox_is_full(const struct control *control)
{
	return control->writer.bytes > FULL;
}
