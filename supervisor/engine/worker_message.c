/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   messages of workers, within their bounds already: what each may say when. */
#include "supervisor/engine/worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/engine/execution_parts.h"
#include "supervisor/engine/repl_parts.h"

static int
on_ready(struct worker *w, const struct msg_ready *ready)
{
	if (w->state != WORKER_STARTING || w->is_ready || ready->worker != w->serial)
		return -EBADMSG;
	w->is_ready = true;
	if (w->pidfd >= 0)
		worker_become_warm(w);
	return 0;
}

static int
on_jail_failed(struct worker *w, const struct msg_jail_failed *failed)
{
	char text[1200];

	if (w->state != WORKER_STARTING)
		return -EBADMSG;
	snprintf(text, sizeof(text), "%.*s: %s", (int)failed->what.len, failed->what.at,
		 strerror((int)failed->error));
	worker_fail(w, -(int)failed->error, text);
	return 0;
}

int
worker_on_message(struct worker *w, struct frame *frame)
{
	bool runs = w->state == WORKER_RUNNING && w->execution != NULL;

	if (w->repl != NULL)
		return repl_on_message(w->repl, frame);
	switch (frame->msg.type) {
	case MSG_READY:
		return on_ready(w, &frame->msg.ready);
	case MSG_JAIL_FAILED:
		return on_jail_failed(w, &frame->msg.jail_failed);
	case MSG_DONE:
		if (!runs || frame->msg.done.id != w->execution->serial)
			return -EBADMSG;
		execution_on_done(w->execution, frame);
		return 0;
	case MSG_DISPLAY:
		return runs ? execution_on_display(w->execution, frame) : -EBADMSG;
	case MSG_LEFT:
		return runs ? execution_on_left(w->execution, frame) : -EBADMSG;
	case MSG_QUESTION:
		return runs ? execution_on_question(w->execution, frame) : -EBADMSG;
	case MSG_LISTENER:
		return runs ? execution_on_listener(w->execution, frame) : -EBADMSG;
	case MSG_LEFT_ANEW:
		/* Init says so once; a script could go on for ever. */
		if (!runs || frame->msg.left_anew.worker != w->serial ||
		    w->execution->results.is_anew)
			return -EBADMSG;
		execution_forget_left(w->execution);
		w->execution->results.is_anew = true;
		return 0;
	case MSG_LEFT_MORE:
		return runs ? execution_on_left_more(w->execution, frame) : -EBADMSG;
	case MSG_EXITED:
		if (!runs)
			return -EBADMSG;
		execution_on_exited(w->execution, (int)frame->msg.exited.status);
		return 0;
	case MSG_HELLO:
	case MSG_CONFIGURE:
	case MSG_ZYGOTE_READY:
	case MSG_ZYGOTE_FAILED:
	case MSG_SPAWN: case MSG_SPAWNED: case MSG_SPAWN_FAILED: case MSG_RUN:
	case MSG_EGRESS_CONFIGURE: case MSG_EGRESS_READY: case MSG_EGRESS_OPEN:
	case MSG_EGRESS_CLOSE: case MSG_EGRESS_REPORT: case MSG_EGRESS_CLOSED:
	case MSG_INPUT: case MSG_OPEN: case MSG_CELL: case MSG_CELL_ENDED: case MSG_STOP:
	case MSG_CELL_READY: case MSG_COMMIT: case MSG_STATES:
	case MSG_COPY: case MSG_COPIED: case MSG_DROP:
	case MSG_KEEP: case MSG_KEEPING: case MSG_ATTACH: case MSG_TAKE: case MSG_TAKEN:
	case MSG_DISCARD: case MSG_ANSWER:
	case MSG_HOLD: case MSG_HELD:
	case MSG_HANDOVER: case MSG_KEPT: case MSG_KEPT_HANDLE: case MSG_KEPT_CHECKPOINT:
		break;
	}
	return -EBADMSG;
}
