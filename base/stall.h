/* A guard against waits in the middle of a turn of an event loop.
 *
 * A process that receives a descriptor may have to wait when it closes it: a TCP socket with
 * SO_LINGER and unsent data keeps close(2) for as long as its maker chose, and the kernel closes
 * what came with a message for the one who reads it, or who closes the socket that it lies in. So
 * no loop that hears strangers may rely on its calls not to wait.
 *
 * A timer sends the loop's thread a signal when a turn has lasted for STALL_MS, and goes on doing
 * so until the loop turns again. The handler does nothing, but the signal ends every wait that a
 * signal can end; the call that waited comes back, with EINTR where it could do nothing at all.
 *
 *   stall_rest();  wait for events  stall_turn();  handle them      and so on
 *
 * All calls in a guarded process must cope with EINTR. What has to wait, and cannot, is between
 * stall_pause() and stall_turn().
 *
 * One thread of a process can be guarded. A fork has no guard (see stall_forget).
 */
#ifndef BASE_STALL_H
#define BASE_STALL_H

#include <stdbool.h>

#define STALL_MS 50		/* the longest turn that is left alone, about */
#define STALL_SIGNAL SIGALRM	/* nothing else in these programs uses it */

/* Guards the calling thread from its next turn on. slow, if not NULL, is called by stall_rest()
 * after a turn in which the signal came, with the length of the turn. 0 or -errno. */
int stall_guard(void (*slow)(unsigned int milliseconds));

/* In a fork of a guarded process, which has no timer: gives the signal its default action, as a
 * program expects it. */
void stall_forget(void);

/* The loop waits for events from here on; and a turn begins. A wait is interrupted at most once,
 * within STALL_MS: a loop that has nothing to do does nothing. Both cost no system call but for one
 * timer_settime(2) in 10 ms, and two after each turn that is followed by a long wait. Without a
 * guard they do nothing. */
void stall_rest(void);
void stall_turn(void);

/* No signal comes from here to the next turn. For libraries that would take EINTR for a failure. */
void stall_pause(void);

/* Begins to watch what a stranger's bytes do, with one getrusage(2). */
void stall_watch(void);

/* Ends the watch. True: since it began the guard has ended a wait of this thread, which no call on
 * a non-blocking descriptor makes by itself. From then on turns are cut after a much shorter time
 * for a while. False when there was no watch. */
bool stall_waited(void);

#endif
