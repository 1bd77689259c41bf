/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of an execution, for the engine's other modules. No file outside of engine/ includes
 * it.
 */
#ifndef ENGINE_EXECUTION_PARTS_H
#define ENGINE_EXECUTION_PARTS_H

#include <stddef.h>
#include <sys/queue.h>

#include <event2/event_struct.h>

#include "base/rota.h"
#include "engine/execution_mounts.h"
#include "engine/execution_waits.h"
#include "engine/execution_request.h"
#include "engine/execution_results.h"
#include "engine/execution_usage.h"
#include "engine/observer.h"
#include "engine/output.h"
#include "engine/repl_stage.h"
#include "engine/request.h"
#include "engine/scheduler.h"
#include "engine/verdict.h"
#include "proto/frame.h"

struct engine;
struct execution_files;
struct execution_modules;
struct execution_tools;
struct msg_cell_ended;
struct tenant;
struct why;
struct worker;

enum execution_state {
	EXECUTION_WAITING,	/* in its tenant's queue */
	EXECUTION_RUNNING,	/* has a worker; engine->running */
	EXECUTION_DUE,		/* it has ended, or never ran: in engine->due, or just answered */
	EXECUTION_STATE_COUNT
};

/* How far an execution has been stopped. */
enum stopping {
	GOES_ON,
	INTERRUPTED,		/* it got KeyboardInterrupt, and has some time left */
	KILLED,			/* init has the order to kill it, and reports the files */
};

struct execution {
	struct sched_item item;			/* WAITING; item.kind is a kind of workers, or
						 * SCHED_CELLS */
	TAILQ_ENTRY(execution) link;		/* RUNNING, DUE */
	struct engine *engine;
	struct tenant *tenant;
	struct execution_watcher watcher;
	enum execution_state state;
	unsigned int profile;
	uint64_t named;				/* modules that it imports (policy/learnable.h) */
	uint64_t serial;
	char id[32];
	struct request_copy request;
	struct limits limits;
	bool observed;				/* the engine's observer was told */
	struct engine_hold hold;		/* what it waits for, by the observer's will */
	/* Of a cell. */
	struct repl *repl;			/* NULL: none, or it is over */
	struct repl_job job;			/* WAITING */
	enum outcome_state became;
	uint32_t processes_ended;		/* processes that cells had started and that ended
						 * with this cell */
	bool fell;				/* the process with the state ended before the cell
						 * began */
	int fell_status;			/* how that process ended, as wait(2) gives it */
	bool held_up;				/* the process with the state did not answer when
						 * the cell should begin */
	bool not_made;				/* no process could be made for the cell */
	struct frame stake;			/* its AT_STAKE, kept for the texts in it */
	struct output background;		/* output of threads and processes of earlier cells
						 */
	/* While it runs. */
	struct worker *worker;
	enum stopping stopping;
	struct event deadline;			/* the end of its wall time, or the next look at its
						 * processor time */
	struct egress_grant *grant;		/* NULL: it has no network */
	bool listens;				/* its LISTENER came */
	bool network_lost;			/* the proxy has ended while it ran */
	bool made_ready;			/* its worker was (ready.h) */
	bool is_first;				/* of the session's cells, apart from looks */
	struct execution_usage usage;
	struct execution_waits prompts;
	struct execution_modules *modules;	/* NULL: it may ask for no module */
	struct execution_tools *tools;		/* NULL: it may call no tool */
	struct execution_waits consents;	/* for people's consent to calls of tools; several
						 * at a time count as one */
	struct execution_waits offers;		/* for the store, which keeps one file at a time */
	size_t burst;				/* bytes read since the last pause in reading */
	struct rota_entry turn;			/* DUE, with a long answer */
	struct output output;
	size_t spilled;				/* bytes charged to the tenant and the engine */
	struct frame done;			/* its DONE, kept for the texts in it */
	struct frame where;			/* its WHERE, kept for the text in it */
	struct execution_results results;
	struct execution_files *files;		/* NULL: no file was offered */
	struct execution_mounts mounts;
	struct outcome_facts facts;
	uint32_t retry_after_ms;
	char jail_text[512];
};

/* The execution of a queue's item. */
static inline struct execution *
execution_of(struct sched_item *item)
{
	return (struct execution *)(void *)((char *)item - offsetof(struct execution, item));
}

/* Gives it a warm worker and runs it. 0; -EAGAIN: the worker failed and was ended, so another one
 * may be tried; any other -errno: it cannot be run at all. */
int execution_lease(struct execution *execution, struct worker *worker);

/* The parts of a run. For a cell the session calls them (repl_cell.c): it builds and sends the
 * messages, then calls execution_begin, and then reports what the worker says of the cell. */
void execution_grant_network(struct execution *execution);
struct msg_run execution_run_message(const struct execution *execution);
int execution_make_stdin(const struct execution *execution);	/* a descriptor or -errno */
void execution_begin(struct execution *execution, struct worker *worker);
void execution_keep_done(struct execution *execution, struct frame *frame);
/* Takes AT_STAKE: 0, and the frame is emptied; or -EBADMSG: it belongs to another execution, or is
 * the second. */
int execution_keep_stake(struct execution *execution, struct frame *frame);
/* Takes WHERE: as execution_keep_stake. */
int execution_on_where(struct execution *execution, struct frame *frame);
void execution_on_cell_ended(struct execution *execution, enum outcome_state became,
			     const struct msg_cell_ended *ended);

/* Ends the execution at once, together with its worker. The reason counts only if the execution was
 * not being stopped before. */
void execution_lose(struct execution *execution, enum stop_reason reason);

/* Ends a waiting execution because the jail of its profile cannot be built. text names the wall. */
void execution_fail(struct execution *execution, const char *text);

/* Ends a waiting execution as overloaded: the service has too little of something now. text: says
 * of what. */
void execution_refuse(struct execution *execution, const char *text);

/* Does an error of a system call mean that the service has no descriptor or memory left for what a
 * call needs? Then nothing is wrong with the worker. */
bool execution_lacks(int error);

/* Events of its worker. All except the first end the execution. */
void execution_on_output(struct execution *execution, enum stream stream,
			 const void *bytes, size_t len);
void execution_on_done(struct execution *execution, struct frame *frame);
void execution_on_exited(struct execution *execution, int wait_status);
void execution_on_died(struct execution *execution, int wait_status);	/* the worker's init */
void execution_on_broken(struct execution *execution);

/* Takes LISTENER: 0, and the frame is emptied; or -EBADMSG: the execution may have no listener, or
 * has one already. */
int execution_on_listener(struct execution *execution, struct frame *frame);

/* ---- execution_message.c ---- */

/* The user of a worker that runs a script. */
extern const struct worker_user execution_user;

/* Takes a message that a script or a cell sends before DONE: a request (for an answer to a prompt,
 * a module or a tool), the stacks of its threads, or results. 0 or -EBADMSG. */
int execution_take(struct execution *execution, struct frame *frame);

/* Stops an execution in any state, for this reason. */
void execution_stop(struct execution *execution, enum stop_reason reason);

/* Delivers the outcomes that are due. */
void execution_deliver(struct engine *engine);

void execution_free(struct execution *execution);

/* ---- execution_answer.c ---- */

/* Asks the engine's observer whether the execution may run. 0, or -errno with why_r. */
int execution_announce(struct execution *execution, struct why *why_r);

/* Gives the outcome to the observer and to its watcher. */
void execution_answer(struct execution *execution);

#endif
