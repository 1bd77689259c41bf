/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between a session's init and each process that holds a state, over a seqpacket
 * socket. A cell's process runs hostile code, so its messages can affect only its own session.
 */
#ifndef WORKER_LINE_H
#define WORKER_LINE_H

#include <stdint.h>

#include "worker/jail.h"

#define JAIL_LINE (JAIL_CONTROL - 1)	/* the descriptor of the line in a snapshot's process */

enum order_kind {
	ORDER_COPY,	/* fork; fd: the line of the new process, which waits */
	ORDER_CELL,	/* fork; fds: the line of the copy, which waits; the control socket of a
			 * cell, which the process itself runs */
	ORDER_LOOK,	/* fork; fds: as ORDER_CELL, but the copy looks at the state and ends, and
			 * the process itself waits */
	ORDER_RUN,	/* no fork; fd: the control socket of a cell. A copy exists already, or the
			 * session makes none */
	ORDER_BEGIN,	/* no fd, after ORDER_CELL, ORDER_LOOK or ORDER_RUN: the cell may begin. Its
			 * weight is set: if memory is short, the kernel ends it before any state */
	ORDER_ANSWER,	/* no fd: the process answers REPORT_HERE */
	ORDER_RETURN,	/* no fd: this copy is the state now; it answers REPORT_HERE */
};

#define ENDS_MAX 64

struct order {
	uint32_t kind;
	uint32_t number;	/* repeated in reports about the order */
	uint32_t port;		/* of a cell: the port of its proxy; 0: it has none */
	uint32_t ended;		/* ORDER_RETURN: the number of elements in end: the last children
				 * of the lost process that had ended by themselves */
	struct child_end {
		int32_t pid;
		int32_t status;	/* as wait(2) gives it */
	} end[ENDS_MAX];
	uint32_t slot;		/* ORDER_COPY: 1 + the slot of the copy; 0: it is a spare */
	uint32_t goes_on;	/* of a cell: threads that it leaves run after its end, too */
};

enum report_kind {
	REPORT_FORKED,		/* on the copy's line, before anything else: its pid */
	REPORT_REFUSED,		/* the copy was not made; value: errno */
	REPORT_COMMITTED,	/* the cell has ended by itself, and its process waits for orders;
				 * value: 1 if its event loop has tasks, else 0 */
	REPORT_HERE,		/* in answer to ORDER_ANSWER and ORDER_RETURN */
};

/* In place of the first report, after OPEN with prepare: one byte, and the trouble of PREPARED. */
#define PREPARED_MOST (1 + PREPARED_TROUBLE_MAX)

struct report {
	uint32_t kind;
	uint32_t number;	/* of the order */
	int32_t value;
};

#endif
