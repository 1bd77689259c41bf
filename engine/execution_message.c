/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   messages of a script's process and its init, whose bounds were checked already. This
 * file decides which message is allowed when. Cells have a socket of their own: repl_cell.c. */
#include "base/clock.h"

#include <errno.h>

#include "engine/engine_parts.h"
#include "engine/execution_files.h"
#include "engine/execution_modules.h"
#include "engine/execution_parts.h"
#include "engine/execution_tools.h"
#include "engine/running.h"
#include "engine/worker.h"

static int
message_on_prompt(struct execution *e, const struct msg_prompt *prompt)
{
	if (prompt->id != e->serial || waits_open(&e->prompts, prompt->number, clock_us()) < 0)
		return -EBADMSG;
	if (e->stopping != GOES_ON || e->watcher.on_prompt == NULL)
		execution_answer_prompt(e, NULL, 0);
	else
		e->watcher.on_prompt(e->watcher.arg, prompt->number, prompt->text.at,
				     prompt->text.len);
	return 0;
}

void
execution_answer_prompt(struct execution *e, const char *line, size_t len)
{
	struct msg msg = { .type = MSG_ANSWER, .answer = { .has_line = line != NULL,
							   .line = { line, len } } };

	if (e->state != EXECUTION_RUNNING)
		return;
	msg.answer.number = waits_close(&e->prompts, clock_us());
	if (msg.answer.number == 0)
		return;
	/* A failed send means that the process has ended; its end is reported elsewhere. */
	if (e->repl != NULL)
		(void)e->engine->cells->send(e->repl, &msg, -1);
	else
		(void)worker_send(e->worker, &msg, -1);
	execution_look_at_clocks(e);
}

int
execution_take(struct execution *e, struct frame *frame)
{
	if (frame->msg.type == MSG_PROMPT)
		return message_on_prompt(e, &frame->msg.prompt);
	if (frame->msg.type == MSG_MODULE)
		return modules_take(e, &frame->msg.module);
	if (frame->msg.type == MSG_TOOL_CALL)
		return tools_take(e, &frame->msg.tool_call);
	if (frame->msg.type == MSG_WHERE)
		return execution_on_where(e, frame);
	if (frame->msg.type == MSG_OFFER)
		return execution_on_offer(e, frame);
	e->results.written = output_transcribed(&e->output);
	return results_take(&e->results, frame);
}

/* ---- of a worker that runs a script ---- */

static int
on_left_restart(struct execution *e, const struct worker *w, const struct msg_left_restart *restart)
{
	if (restart->worker != w->serial)
		return -EBADMSG;
	execution_files_restart(e);
	/* Init sends this once; a script could repeat it for ever. */
	return results_restart(&e->results) ? 0 : -EBADMSG;
}

/* The listener has no more descriptors to pass. */
static int
on_listener(struct execution *e, struct worker *w, struct frame *frame)
{
	if (execution_on_listener(e, frame) < 0)
		return -EBADMSG;
	worker_pass_descriptors(w, false);
	return 0;
}

static int
message_on_message(struct worker *w, struct frame *frame)
{
	const enum msg_type type = frame->msg.type;
	struct execution *e = w->execution;

	if (w->state != WORKER_RUNNING || e == NULL)
		return -EBADMSG;
	if (type == MSG_LEFT_RESTART)
		return on_left_restart(e, w, &frame->msg.left_restart);
	if (type == MSG_LISTENER)
		return on_listener(e, w, frame);
	if (type == MSG_DONE && frame->msg.done.id == e->serial)
		execution_on_done(e, frame);
	else if (type == MSG_EXITED)
		execution_on_exited(e, (int)frame->msg.exited.status);
	else
		return execution_take(e, frame);
	return 0;
}

static void
message_on_output(struct worker *w, enum stream stream, const void *bytes, size_t len)
{
	execution_on_output(w->execution, stream, bytes, len);
}

static void
message_on_broken(struct worker *w)
{
	execution_on_broken(w->execution);
}

static void
message_on_died(struct worker *w, int wait_status)
{
	execution_on_died(w->execution, wait_status);
}

const struct worker_user execution_user = {
	.on_message = message_on_message,
	.on_output = message_on_output,
	.on_broken = message_on_broken,
	.on_died = message_on_died,
};
