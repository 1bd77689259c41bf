/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a session's init.   Owns: the copy that is being made.   Reads: COPY. */
#include "worker/states.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "proto/frame.h"
#include "worker/jail.h"
#include "worker/processes.h"
#include "worker/reaper.h"
#include "worker/slots.h"
#include "worker/spare.h"
#include "worker/trees.h"

static struct {
	bool on;
	unsigned int from, to;
	int awake;		/* the slot that continues when the copy is made; -1: none */
	int line;		/* to the copy */
} copy;

void
states_send(const struct msg *msg)
{
	/* The supervisor is gone, or has closed the socket: the session ends. */
	if (frame_send(JAIL_CONTROL, msg, NULL, 0) < 0)
		_exit(0);
}

void
states_tell(void)
{
	static struct msg_states told;
	struct msg msg = { .type = MSG_STATES };

	for (unsigned int i = 0; i < REPL_SNAPSHOTS_MAX; i++)
		if (slot_head(i).pid > 0 || spare_is_of(i))
			msg.states.snapshots |= 1U << i;
	if (!slots_memory_counted() && slots_awake() < 0)
		msg.states.bytes = slots_memory();
	msg.states.spare_bytes = spare_bytes();
	if (msg.states.snapshots == told.snapshots && msg.states.bytes == told.bytes &&
	    msg.states.spare_bytes == told.spare_bytes)
		return;
	told = msg.states;
	states_send(&msg);
}

static void
states_tell_copied(int error)
{
	struct msg msg = { .type = MSG_COPIED, .copied = {
		.to = copy.to, .error = (uint32_t)error } };

	states_tell();
	states_send(&msg);
}

void
states_tell_first(void)
{
	states_tell_copied(0);
}

/* ---- a copy ---- */

static void
states_copied(int error)
{
	if (error != 0)
		slot_halt(copy.from, 0);
	else
		slot_halt_copied(copy.from, slot_head(copy.to).pid);
	if (copy.awake >= 0)
		trees_place((unsigned int)copy.awake);
	slots_wake(copy.awake);
	copy.on = false;
	states_tell_copied(error);
}

void
states_copy(const struct msg_copy *message)
{
	struct order order = { .kind = ORDER_COPY, .slot = message->to + 1 };
	int r;

	copy.on = true;
	copy.from = message->from;
	copy.to = message->to;
	copy.awake = slots_rest();
	trees_place(copy.from);
	/* The whole slot continues, not only the head: the head may wait for the intermediate
	 * process of an earlier copy. */
	slot_signal(copy.from, SIGCONT);
	r = slot_order_fork(copy.from, &order, -1, &copy.line);
	if (r < 0)
		states_copied(-r);
}

bool
states_is_copying(unsigned int *slot_r, int *line_r)
{
	*slot_r = copy.from;
	*line_r = copy.line;
	return copy.on;
}

/* To be called before the slot gets another state, or none: stops it, and drops its spare. */
static void
states_forget(unsigned int slot)
{
	if (slots_awake() == (int)slot)
		slots_rest();
	spare_forget(slot);
}

void
states_forked(pid_t pid)
{
	if (copy.awake == (int)copy.to)
		copy.awake = -1;
	states_forget(copy.to);
	processes_end_left(copy.to);
	slot_put(copy.to, (struct head){ .pid = pid, .line = copy.line });
	/* The copy has the weight of the head that it was made from. A head with a spare has the
	 * weight of a cell. */
	slots_weigh(pid, WEIGHT_STATE);
	trees_copied(copy.from, copy.to);
	states_copied(0);
}

void
states_refused(void)
{
	close(copy.line);
	states_copied(EAGAIN);
}

void
states_lost(void)
{
	close(copy.line);
	reaper_await_deaths(copy.from);
	states_copied(ENOENT);
}

void
states_drop(unsigned int slot)
{
	pid_t pid;

	states_forget(slot);
	pid = slot_empty(slot);
	processes_end_left(slot);
	processes_await_end(pid);
	trees_drop(slot);
}
