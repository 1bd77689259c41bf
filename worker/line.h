/* What a session's init and the processes that hold its states say to each other, over a
 * seqpacket socket for each of them. A cell's process is a script's: init believes it only
 * what concerns its own session.
 */
#ifndef WORKER_LINE_H
#define WORKER_LINE_H

#include <stdint.h>

#include "worker/jail.h"

#define JAIL_LINE (JAIL_CONTROL - 1)	/* where a snapshot's process has its end */

enum order_kind {
	ORDER_COPY,	/* fork; fd: the line of the new one, which waits */
	ORDER_CELL,	/* fork; fds: its line, its control socket; it runs a cell */
};

struct order {
	uint32_t kind;
	uint32_t port;		/* of a cell: where its proxy listens; 0: it has none */
};

enum report_kind {
	REPORT_FORKED,		/* from what was ordered, before anything else: its pid */
	REPORT_REFUSED,		/* there is none; value: errno */
	REPORT_COMMITTED,	/* from the cell's process, value: its pid; it waits for orders */
	REPORT_ENDED,		/* from where it was forked, value: its wait status */
};

struct report {
	uint32_t kind;
	int32_t value;
};

#endif
