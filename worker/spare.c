/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a session's init.   Owns: what is known of the spare.   Reads: nothing. */
#include "worker/spare.h"

#include <signal.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "worker/processes.h"
#include "worker/reaper.h"
#include "worker/workspace.h"

#define ROOM (16 << 20)		/* the free memory, below the limit, that a spare needs */
#define MEASURE_PAUSE 20	/* the pause after a measurement, in multiples of its time */

static struct {
	uint64_t memory_limit;
	unsigned int slot;	/* of the last cell */
	bool making;
	int line;		/* to the spare, if making */
	bool tried;		/* a spare was made, or could not be, or is not needed */
	bool current;		/* nothing has run in the slot since the spare was made */
	bool measured;
	/* The memory that a spare had alone when it was last measured, and the earliest time of
	 * the next measurement. */
	uint64_t bytes, next_ms;
} spare = { .tried = true };

/* A head that has ended between cells, so that its spare has become the state. The next CELL_ENDED
 * of the slot reports it. */
static struct {
	bool told;		/* it was reported, or there is none */
	unsigned int slot;
	int status;
} fallen = { .told = true };

bool
spare_raise_limit(uint64_t bytes)
{
	if (bytes <= spare.memory_limit)
		return false;
	spare.memory_limit = bytes;
	return true;
}

static bool
spare_exists(void)
{
	return slot_head(SLOT_SPARE).pid > 0;
}

static pid_t
spare_head(void)
{
	return slot_head(spare.slot).pid;
}

bool
spare_is_of(unsigned int slot)
{
	return spare_exists() && spare.slot == slot;
}

bool
spare_is_current(unsigned int slot)
{
	return spare_is_of(slot) && spare.current;
}

void
spare_after(unsigned int slot)
{
	spare.tried = spare_is_of(slot);
	spare.slot = slot;
}

/* ---- making it ---- */

bool
spare_is_wanted(void)
{
	return !spare.tried && !slots_alone() && spare_head() > 0;
}

/* Ends the operation, with a spare or without one. */
static void
spare_made(void)
{
	spare.making = false;
	if (spare.current && spare_head() > 0)
		kill(spare_head(), SIGSTOP);
}

/* Is there enough memory for a spare? A fork needs memory for page tables. If there is none, the
 * kernel ends a process, which may be the state. (Before a cell, the supervisor makes sure that
 * there is room.) Memory that a process shares with the zygote does not count: init has only such
 * memory, so init's size is subtracted once for each process. */
static bool
spare_has_room(void)
{
	uint64_t used = slots_memory(), zygote = processes_memory(getpid()), shared = zygote;
	struct statvfs files = { 0 };

	for (unsigned int i = 0; i < REPL_SNAPSHOTS_MAX; i++)
		if (slot_head(i).pid > 0)
			shared += zygote;
	if (statvfs(WORKSPACE, &files) < 0)
		return false;
	used = used > shared ? used - shared : 0;
	return spare.memory_limit == 0 ||
	       used + (files.f_blocks - files.f_bfree) * files.f_frsize + ROOM <=
	       spare.memory_limit;
}

void
spare_make(void)
{
	struct order order = { .kind = ORDER_COPY };

	spare.tried = true;
	if (!spare_has_room()) {
		/* A slot that is awake is stopped: it might grow and be ended for that, and there
		 * would be no spare. */
		slots_rest();
		return;
	}
	spare.making = true;
	spare.current = slots_awake() < 0;
	if (spare.current)
		kill(spare_head(), SIGCONT);
	if (slot_order_fork(spare.slot, &order, -1, &spare.line) < 0)
		spare_made();
}

bool
spare_is_made(unsigned int *slot_r, int *line_r)
{
	*slot_r = spare.slot;
	*line_r = spare.line;
	return spare.making;
}

void
spare_forked(pid_t pid)
{
	slot_exchange(SLOT_SPARE, (struct head){ .pid = pid, .line = spare.line });
	spare.measured = false;
	processes_becomes_child(pid);
	slots_weigh(spare_head(), WEIGHT_CELL);
	spare_made();
}

void
spare_refused(void)
{
	close(spare.line);
	spare_made();
}

void
spare_lost(void)
{
	close(spare.line);
	spare.making = false;
}

/* ---- its memory ---- */

bool
spare_is_unmeasured(void)
{
	return spare_exists() && !spare.measured;
}

void
spare_measure(void)
{
	uint64_t begun_ms = clock_ms(), ended_ms;

	if (begun_ms < spare.next_ms)
		return;
	spare.measured = true;
	spare.bytes = processes_alone_memory(slot_head(SLOT_SPARE).pid);
	ended_ms = clock_ms();
	spare.next_ms = ended_ms + MEASURE_PAUSE * (ended_ms - begun_ms);
}

uint64_t
spare_bytes(void)
{
	return spare.bytes;
}

/* ---- its use ---- */

void
spare_end(void)
{
	pid_t pid = slot_empty(SLOT_SPARE);

	if (pid == 0)
		return;
	if (spare_head() > 0)
		slots_weigh(spare_head(), WEIGHT_STATE);
	processes_await_end(pid);
}

struct head
spare_take(void)
{
	return slot_exchange(SLOT_SPARE, (struct head){ 0 });
}

void
spare_use(void)
{
	unsigned int last;

	if (!spare_exists() || spare_head() > 0)
		return;
	slots_set_awake(-1);
	fallen.told = false;
	fallen.slot = spare.slot;
	fallen.status = slot_end(spare.slot);
	slot_exchange(spare.slot, spare_take());
	processes_end_left(spare.slot);
	reaper_end_others(0, &last);
	reaper_await_deaths(spare.slot);
	if (spare_head() > 0)
		reaper_prove(spare.slot, false);
	slot_signal(spare.slot, SIGSTOP);
}

bool
spare_undo(void)
{
	if (!spare_exists())
		return false;
	slot_empty(spare.slot);
	spare_use();
	return true;
}

bool
spare_replaced(unsigned int slot, int *status_r)
{
	if (fallen.told || fallen.slot != slot)
		return false;
	*status_r = fallen.status;
	return fallen.told = true;
}

void
spare_forget(unsigned int slot)
{
	if (spare.slot == slot)
		spare_end();
	if (fallen.slot == slot)
		fallen.told = true;
}
