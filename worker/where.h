/* Where a script is: the stack of each of its Python threads, told to the supervisor when the
 * script's process crashes, or when its init asks because its time is over. The handlers of
 * signals that do it are installed once, in the zygote; a run that ends well calls none of them.
 * The script sees the default actions in Python, may replace the handlers, and then tells nothing.
 */
#ifndef WORKER_WHERE_H
#define WORKER_WHERE_H

#include <stdint.h>
#include <sys/types.h>

struct msg_str;

/* In the zygote, on its only thread, once Python is started. 0, or -errno. */
int where_prepare(void);

/* In the script's process: the run begins, and ends. id: of RUN; cell: its number, 0 of a script.
 * name: of the script's file in tracebacks; NULL: script.py. Processes that it forks tell
 * nothing. */
void where_begin(uint64_t id, unsigned int cell, const struct msg_str *name);
void where_end(void);

/* Around each message that the script's process sends meanwhile: nothing is told in the middle of
 * a frame. */
void where_hold(void);
void where_release(void);

/* In init: has the script's process tell where it is, and end itself. It may do neither. */
void where_ask(pid_t script);

#define WHERE_WAIT_MS 500	/* then init ends it */

#endif
