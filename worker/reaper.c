/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a session's init.
 * Owns:    the statuses of ended processes.   Reads: the answers of heads. */
#include "worker/reaper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/stall.h"
#include "worker/processes.h"
#include "worker/slots.h"

#define TRY_NS 1000000
#define TRIES_MAX 500
#define DEATHS_MAX 20
#define ANSWER_MS 5000		/* the time that a copy has to say that it is the state now */

/* The process of the cell that runs. */
static struct {
	bool on, gone;
	unsigned int slot;
	pid_t pid;		/* 0: the head of the slot */
	int status;		/* if gone */
} watched;

static pid_t spent;		/* 0: it is reaped, or there is none */

/* How children of a lost head had ended that the head had not reaped. Init reaps them. The state
 * that takes the head's place has Python objects for these children, so it is told how they ended.
 * Only the last ENDS_MAX are kept. */
static struct child_end child_end[ENDS_MAX];
static size_t n_ends;

void
reaper_watch(unsigned int slot, pid_t pid)
{
	watched.on = true;
	watched.gone = false;
	watched.slot = slot;
	watched.pid = pid;
}

void
reaper_unwatch(void)
{
	watched.on = false;
}

bool
reaper_saw_end(int *status_r)
{
	if (!watched.on || !watched.gone)
		return false;
	*status_r = watched.status;
	return true;
}

/* Notes how a process has ended, if it was made before the current copy. Processes that a cell has
 * started since then are not noted: they may be those of a fork bomb. */
static void
reaper_note_end(pid_t pid, int status)
{
	bool older = pid < slot_head(SLOT_SPARE).pid ||
		     (watched.on && pid < slot_head(watched.slot).pid);

	/* An end by SIGKILL is not noted: init ends processes in this way, and the state assumes it
	 * of every child that it is not told of. */
	if (older && (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL))
		child_end[n_ends++ % ENDS_MAX] = (struct child_end){ pid, status };
}

void
reaper_reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (watched.on &&
		    pid == (watched.pid > 0 ? watched.pid : slot_head(watched.slot).pid)) {
			watched.gone = true;
			watched.status = status;
		}
		reaper_note_end(pid, status);
		if (pid == spent)
			spent = 0;
		slots_reaped(pid, status);
	}
}

unsigned int
reaper_end_others(pid_t one, unsigned int *last_r)
{
	pid_t keep[SLOTS_LISTED];
	size_t n = slots_list(keep, one);
	unsigned int found = 0;

	for (int i = 0; processes_end_others(keep, n, last_r) < 0; i++) {
		if (i == TRIES_MAX)
			_exit(1);
		found += *last_r;
		reaper_reap();
		processes_pause(TRY_NS);
	}
	return found + *last_r;
}

void
reaper_await_deaths(unsigned int slot)
{
	pid_t head;

	reaper_reap();
	head = slot_head(slot).pid;
	if (head > 0 && !processes_is_alive(head))
		slot_empty(slot);
	for (int i = 0; slot_head(slot).pid == 0 && !slots_alone() && i < DEATHS_MAX; i++) {
		processes_pause(TRY_NS);
		reaper_reap();
	}
}

void
reaper_prove(unsigned int slot, bool look)
{
	struct order order = { .kind = look ? ORDER_ANSWER : ORDER_RETURN,
			       .ended = n_ends < ENDS_MAX ? (uint32_t)n_ends : ENDS_MAX };
	struct pollfd answer = { .fd = slot_head(slot).line, .events = POLLIN };
	struct report report;
	int n = -1;

	memcpy(order.end, child_end, sizeof(order.end));
	n_ends = 0;
	/* The cell may have stopped the process. */
	kill(slot_head(slot).pid, SIGCONT);
	if (slot_send(slot, &order, NULL, 0) == 0) {
		if (look)
			return;
		stall_rest();
		do
			n = poll(&answer, 1, ANSWER_MS);
		while (n < 0 && errno == EINTR);
		stall_turn();
	}
	if (n <= 0 || slots_receive(answer.fd, &report) <= 0 || report.kind != REPORT_HERE)
		slot_empty(slot);
}

void
reaper_spend(pid_t copy)
{
	spent = copy;
}

void
reaper_await_spent(void)
{
	processes_await_end(spent);
}
