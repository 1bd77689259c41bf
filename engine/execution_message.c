/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   messages of a worker that runs a script, within their bounds already. This file
 * decides which message is allowed when. Cells have a socket of their own: repl_cell.c. */
#include <errno.h>

#include "engine/execution_parts.h"
#include "engine/worker.h"

static int
on_left_anew(struct execution *e, const struct worker *w, const struct msg_left_anew *anew)
{
	/* Init sends this once; a script could repeat it for ever. */
	return anew->worker == w->serial && results_anew(&e->results) ? 0 : -EBADMSG;
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
on_message(struct worker *w, struct frame *frame)
{
	const enum msg_type type = frame->msg.type;
	struct execution *e = w->execution;

	if (w->state != WORKER_RUNNING || e == NULL)
		return -EBADMSG;
	if (type == MSG_LEFT_ANEW)
		return on_left_anew(e, w, &frame->msg.left_anew);
	if (type == MSG_PROMPT)
		return execution_on_prompt(e, frame);
	if (type == MSG_LISTENER)
		return on_listener(e, w, frame);
	if (type == MSG_DONE && frame->msg.done.id == e->serial)
		execution_on_done(e, frame);
	else if (type == MSG_EXITED)
		execution_on_exited(e, (int)frame->msg.exited.status);
	else
		return results_take(&e->results, frame);
	return 0;
}

static void
on_output(struct worker *w, enum stream stream, const void *bytes, size_t len)
{
	execution_on_output(w->execution, stream, bytes, len);
}

static void
on_broken(struct worker *w)
{
	execution_on_broken(w->execution);
}

static void
on_died(struct worker *w, int wait_status)
{
	execution_on_died(w->execution, wait_status);
}

const struct worker_user execution_user = {
	.on_message = on_message,
	.on_output = on_output,
	.on_broken = on_broken,
	.on_died = on_died,
};
