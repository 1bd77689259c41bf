/* SPDX-License-Identifier: Apache-2.0 */
/* A guard against waits in the middle of a turn of an event loop.
 *
 * A process that receives a descriptor may have to wait when it closes it: a TCP socket with
 * SO_LINGER and unsent data blocks close(2) for as long as its maker chose. The kernel closes a
 * descriptor that came with a message if the receiver does not take it, or if the receiver closes
 * the socket before it reads the message. So a loop that reads from strangers can block in any call
 * that reads or closes.
 *
 * A timer sends the loop's thread a signal when a turn has lasted for STALL_MS, and again until the
 * loop's next turn. The handler does nothing, but the signal interrupts the call that waits; the
 * call returns, with EINTR if it has done nothing.
 *
 *   stall_rest();  wait for events  stall_turn();  handle them      and so on
 *
 * All calls in a guarded process must cope with EINTR. A call that has to wait and cannot cope with
 * EINTR must be made between stall_pause() and stall_turn().
 *
 * One thread of a process can be guarded; in all others these functions do nothing. A fork has no
 * guard (see stall_forget).
 */
#ifndef BASE_STALL_H
#define BASE_STALL_H

#include <stdbool.h>
#include <stdint.h>

#define STALL_MS 50		/* a turn that lasts longer is interrupted */
#define BRIEF_MS 2		/* the same for calls that concern a suspect */
#define STALL_SIGNAL SIGALRM	/* these programs use it for nothing else */

/* Guards the calling thread from its next turn on. slow: stall_rest() calls it after a turn in
 * which the signal came, with the length of the turn; NULL: not called. 0 or -errno. */
int stall_guard(void (*slow)(unsigned int milliseconds));

/* From now on no peer is blamed for a wait in which the process was stopped and continued, as by an
 * operator with a debugger. To be called once, after stall_guard, in processes that no stranger can
 * send SIGCONT: it would excuse the stranger's own waits. */
void stall_excuse_stops(void);

/* To be called in a fork of a guarded process, which has no timer: gives the signal its default
 * action, which the program that the fork executes expects. */
void stall_forget(void);

/* stall_rest: to be called when the loop begins to wait for events. stall_turn: when a turn begins.
 * A wait for events is interrupted at most once, in its first STALL_MS, so an idle loop costs
 * nothing. A busy loop makes one timer_settime(2) in 10 ms. A long wait costs two more. Without a
 * guard the functions do nothing. */
void stall_rest(void);
void stall_turn(void);

/* Stops the signals until the next turn, for libraries that treat EINTR as a failure. */
void stall_pause(void);

/* From now on a close is interrupted after BRIEF_MS: no socket can refuse descriptors here, and
 * those that lie unread in a socket are closed with it. stall_close: before a close, and after. */
void stall_hurry(void);
void stall_close(bool begins);

/* What one stranger's waits have cost. Zeroed: nothing. It is paid off by time alone. */
struct stall_debt {
	uint64_t at_ms;
	uint32_t us;		/* at that time */
};

bool stall_is_in_debt(const struct stall_debt *debt);

/* Begins to watch a call for waits that a stranger causes. If the stranger is in debt, the call is
 * interrupted after BRIEF_MS. Costs getrusage(2) and a clock, and for debtors two timer_settime. */
void stall_watch(const struct stall_debt *debt);

enum stall {
	STALL_NONE,		/* no wait, or no watch */
	STALL_EXCUSED,		/* the thread has waited; it may have been by chance */
	STALL_PROVEN,		/* that is more than chance: the stranger is to be ended */
};

/* Ends the watch, and adds to the debt how long the thread has waited in this time: a call on a
 * non-blocking descriptor waits for a stranger, or by chance (for memory, or for a lock of the
 * kernel). Processor time does not count, nor a wait that is longer than the guard lets it be. */
enum stall stall_waited(struct stall_debt *debt);

/* A debt that leaves no excuse. */
void stall_owe(struct stall_debt *debt);

#endif
