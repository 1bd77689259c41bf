/* SPDX-License-Identifier: Apache-2.0 */
/* The slots of a session, for its init. A slot is the place of a snapshot. Its head is the process
 * that holds the state. A cell runs in the head of its slot; meanwhile the slot has the copy of
 * that process (unless the session is alone), until the cell has ended by itself. Processes that
 * cells have started belong to the slot of the cell (processes.h). They are stopped while no cell
 * of that slot runs, unless their cell lets them go on after its end. A slot whose processes go on
 * in this way is awake.
 *
 * One more slot is for the spare (spare.h).
 */
#ifndef WORKER_SLOTS_H
#define WORKER_SLOTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/message.h"
#include "worker/line.h"

#define SLOT_SPARE REPL_SNAPSHOTS_MAX
#define SLOTS (SLOT_SPARE + 1)
#define SLOTS_LISTED (SLOTS + 1)	/* the heads and one more process */

struct head {
	pid_t pid;		/* 0: there is none */
	int line;		/* the socket to it */
};

/* memory_counted: a controller counts memory, so sampling is not needed. alone: no copies are made,
 * and the state ends with its process. */
void slots_init(bool memory_counted, bool alone);
bool slots_memory_counted(void);
bool slots_alone(void);

/* ---- heads ---- */

struct head slot_head(unsigned int slot);

/* Gives the slot another head. Returns the former head, which continues. */
struct head slot_exchange(unsigned int slot, struct head head);

/* As slot_exchange, but the former head is killed. Returns its pid; 0: there was none. */
pid_t slot_put(unsigned int slot, struct head head);

/* Kills the head. Returns its pid; 0: there was none. */
pid_t slot_empty(unsigned int slot);

/* A process was reaped: if it is a head, its slot is empty. status: as wait(2) gives it. */
void slots_reaped(pid_t pid, int status);

/* How the slot's last head has ended; SIGKILL, if init has ended it. */
int slot_end(unsigned int slot);

/* Writes the pids of the heads, and the pid "one", to list_r. Returns their number. */
size_t slots_list(pid_t list_r[SLOTS_LISTED], pid_t one);

/* ---- what runs ---- */

/* Lists the processes that were made since the last call as those of the slot, except the heads and
 * the process "one". Returns how many were killed because the list is full. */
unsigned int slot_list_new(unsigned int slot, pid_t one);

/* Sends a signal to the head and the processes of a slot. A timer of a stopped process can continue
 * it, so the supervisor watches the processor time of idle sessions. */
void slot_signal(unsigned int slot, int signal);

/* Stops the head and the processes of a slot, and all new processes except the process "one". Must
 * not be called while an intermediate process makes a copy (fork_state): while that process is
 * stopped, the end of the copy would not be seen. */
void slot_halt(unsigned int slot, pid_t one);

/* As slot_halt, after a copy of the slot's head was made. */
void slot_halt_copied(unsigned int slot, pid_t copy);

/* The slot whose head and processes run although there is no operation: its last cell may leave
 * them running. -1: none. Processes that they have started since that cell are not listed yet. */
int slots_awake(void);

/* From now on the slot is awake; -1: none. Signals nothing. */
void slots_set_awake(int slot);

/* Stops the slot that is awake, until an operation needs it. Returns that slot; -1: none. */
int slots_rest(void);

/* To be called after an operation: continues the slot that slots_rest() has returned before it. */
void slots_wake(int slot);

/* ---- memory ---- */

/* Sets the weight of a process (processes_weigh), but only if memory can run short in the worker's
 * own cgroup. If it can run short only on the whole machine, all processes of the worker must end
 * before any process of the host. */
void slots_weigh(pid_t pid, const char *weight);

/* The memory of init, of the states and of the processes that outlived their cells. The spare is
 * left out, because it shares its memory with the state. */
uint64_t slots_memory(void);

/* ---- orders and reports ---- */

/* Makes a new line; *theirs_r is the other end. 0 or -errno. */
int slots_make_line(int *ours_r, int *theirs_r);

/* Numbers the order and sends it to the slot's head. 0 or -errno. */
int slot_send(unsigned int slot, struct order *order, const int *fd, size_t n_fds);

/* Sends an order. 0; -ENOENT: the slot holds no state, or its head has closed the line or does not
 * read it, and is ended; or another -errno. */
int slot_order(unsigned int slot, struct order *order, const int *fd, size_t n_fds);

/* As slot_order, with two descriptors: the other end of a new line; and "more", if it is not -1.
 * After a success *line_r is this end of the line, which the caller owns. */
int slot_order_fork(unsigned int slot, struct order *order, int more, int *line_r);

/* Reads a message of at most size bytes from a line. Its length; 0: there is none now; -EPIPE: the
 * other end is closed; or -EBADMSG. */
int slots_read(int line, void *bytes_r, size_t size);

/* Reads a report. 1: *report_r has it; 0: there is none now; -EPIPE: the other end is closed; or
 * -EBADMSG. */
int slots_receive(int line, struct report *report_r);

#endif
