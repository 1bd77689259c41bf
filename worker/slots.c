/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a session's init.
 * Owns:    for each slot, the process that holds its state, and the line to it; the numbers of
 * orders; which slot is awake.
 * Reads:   reports of processes that run scripts. One that breaks the protocol loses its state. */
#include "worker/slots.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/stall.h"
#include "proto/fdpass.h"
#include "proto/frame.h"
#include "worker/processes.h"

#define STALE_MAX 256		/* the most late reports that are accepted after one order */

static struct slot {
	struct head head;
	int end;		/* slot_end() */
} slots[SLOTS];

static struct {
	bool memory_counted, alone;
	int awake;		/* slots_awake() */
	uint32_t orders;	/* the number of the last one */
	unsigned int stale;	/* how many reports about earlier orders came since then */
} slots_all = { .awake = -1 };

void
slots_init(bool memory_counted, bool alone)
{
	slots_all.memory_counted = memory_counted;
	slots_all.alone = alone;
}

bool
slots_memory_counted(void)
{
	return slots_all.memory_counted;
}

bool
slots_alone(void)
{
	return slots_all.alone;
}

/* ---- heads ---- */

struct head
slot_head(unsigned int slot)
{
	return slots[slot].head;
}

struct head
slot_exchange(unsigned int slot, struct head head)
{
	struct head former = slots[slot].head;

	slots[slot] = (struct slot){ .head = head, .end = SIGKILL };
	return former;
}

pid_t
slot_put(unsigned int slot, struct head head)
{
	struct head former = slot_exchange(slot, head);

	if (former.pid > 0) {
		kill(former.pid, SIGKILL);
		close(former.line);
	}
	return former.pid;
}

pid_t
slot_empty(unsigned int slot)
{
	return slot_put(slot, (struct head){ 0 });
}

void
slots_reaped(pid_t pid, int status)
{
	for (unsigned int i = 0; i < SLOTS; i++)
		if (slots[i].head.pid == pid) {
			close(slots[i].head.line);
			slots[i] = (struct slot){ .end = status };
		}
}

int
slot_end(unsigned int slot)
{
	return slots[slot].end;
}

size_t
slots_list(pid_t list_r[SLOTS_LISTED], pid_t one)
{
	size_t n = 0;

	for (unsigned int i = 0; i < SLOTS; i++)
		if (slots[i].head.pid > 0)
			list_r[n++] = slots[i].head.pid;
	list_r[n++] = one;
	return n;
}

/* ---- what runs ---- */

unsigned int
slot_list_new(unsigned int slot, pid_t one)
{
	pid_t keep[SLOTS_LISTED];

	return processes_leave(keep, slots_list(keep, one), slot);
}

void
slot_signal(unsigned int slot, int signal)
{
	if (slots[slot].head.pid > 0)
		kill(slots[slot].head.pid, signal);
	processes_signal_left(slot, signal);
}

/* A process may have made another one just before it was stopped; the new one is met in the next
 * turn of the loop. */
void
slot_halt(unsigned int slot, pid_t one)
{
	size_t met;

	do {
		met = processes_met();
		slot_signal(slot, SIGSTOP);
		slot_list_new(slot, one);
	} while (processes_met() != met);
}

void
slot_halt_copied(unsigned int slot, pid_t copy)
{
	if (processes_becomes_child(copy))
		slot_halt(slot, copy);
	else
		slot_signal(slot, SIGSTOP);
}

int
slots_awake(void)
{
	return slots_all.awake;
}

void
slots_set_awake(int slot)
{
	slots_all.awake = slot;
}

int
slots_rest(void)
{
	int was = slots_all.awake;

	slots_all.awake = -1;
	if (was >= 0)
		slot_halt((unsigned int)was, 0);
	if (was >= 0)
		processes_await_stop(slots[was].head.pid, (unsigned int)was);
	return was;
}

void
slots_wake(int slot)
{
	slots_all.awake = slot >= 0 && slots[slot].head.pid > 0 ? slot : -1;
	if (slots_all.awake >= 0)
		slot_signal((unsigned int)slot, SIGCONT);
}

/* ---- memory ---- */

void
slots_weigh(pid_t pid, const char *weight)
{
	if (slots_all.memory_counted)
		processes_weigh(pid, weight);
}

uint64_t
slots_memory(void)
{
	uint64_t bytes = processes_memory(getpid()) + processes_left_memory();

	for (unsigned int i = 0; i < REPL_SNAPSHOTS_MAX; i++)
		if (slots[i].head.pid > 0)
			bytes += processes_memory(slots[i].head.pid);
	return bytes;
}

/* ---- orders and reports ---- */

int
slots_make_line(int *ours_r, int *theirs_r)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	*ours_r = pair[0];
	*theirs_r = pair[1];
	return 0;
}

int
slot_send(unsigned int slot, struct order *order, const int *fd, size_t n_fds)
{
	ssize_t n;

	order->number = ++slots_all.orders;
	slots_all.stale = 0;
	n = fdpass_send_patiently(slots[slot].head.line, order, sizeof(*order), fd, n_fds,
				  MSG_DONTWAIT);
	if (n == (ssize_t)sizeof(*order))
		return 0;
	return n < 0 ? (int)n : -EIO;
}

int
slot_order(unsigned int slot, struct order *order, const int *fd, size_t n_fds)
{
	int r;

	if (slots[slot].head.pid == 0)
		return -ENOENT;
	r = slot_send(slot, order, fd, n_fds);
	if (r != -EPIPE && r != -ECONNRESET && r != -EAGAIN)
		return r;
	slot_empty(slot);
	return -ENOENT;
}

int
slot_order_fork(unsigned int slot, struct order *order, int more, int *line_r)
{
	int fd[2] = { -1, more }, r = slots_make_line(line_r, &fd[0]);

	if (r < 0)
		return r;
	r = slot_order(slot, order, fd, more < 0 ? 1 : 2);
	close(fd[0]);
	if (r < 0)
		close(*line_r);
	return r;
}

/* Is this a late report about an earlier order? A process whose threads have kept it from reading
 * its orders reports when the operation is over. */
static bool
is_stale(const struct report *report)
{
	return (report->kind == REPORT_REFUSED || report->kind == REPORT_HERE) &&
	       report->number != slots_all.orders && slots_all.stale++ < STALE_MAX;
}

int
slots_read(int line, void *bytes_r, size_t size)
{
	static struct stall_debt debt;		/* of all processes of this session */
	ssize_t n;

	/* A message may bring a descriptor that takes long to close. If that happens again and
	 * again, the message is refused. */
	stall_watch(&debt);
	n = recv(line, bytes_r, size, MSG_DONTWAIT | MSG_TRUNC);
	if (stall_waited(&debt) == STALL_PROVEN)
		return -EBADMSG;
	if (n < 0 && frame_is_transient(-errno))
		return 0;
	return n == 0 ? -EPIPE : n < 0 || (size_t)n > size ? -EBADMSG : (int)n;
}

int
slots_receive(int line, struct report *report_r)
{
	int n = slots_read(line, report_r, sizeof(*report_r));

	if (n <= 0)
		return n;
	return n != (int)sizeof(*report_r) ? -EBADMSG : is_stale(report_r) ? 0 : 1;
}
