/* SPDX-License-Identifier: Apache-2.0 */
/* Executions as the engine's other modules see them.
 */
#ifndef ENGINE_EXECUTION_PARTS_H
#define ENGINE_EXECUTION_PARTS_H

#include <stddef.h>
#include <sys/queue.h>

#include <event2/event_struct.h>

#include "engine/execution.h"
#include "engine/execution_files.h"
#include "engine/execution_modules.h"
#include "engine/execution_mounts.h"
#include "engine/execution_prompts.h"
#include "engine/execution_request.h"
#include "engine/execution_results.h"
#include "engine/execution_tools.h"
#include "engine/execution_usage.h"
#include "engine/outcome.h"
#include "engine/output.h"
#include "engine/repl_parts.h"
#include "engine/scheduler.h"
#include "proto/frame.h"

struct engine;
struct why;
struct tenant;
struct worker;

enum execution_state {
	EXECUTION_WAITING,	/* in its tenant's queue */
	EXECUTION_RUNNING,	/* has a worker; engine->running */
	EXECUTION_DUE,		/* it is over, or it never ran: engine->due, or just answered */
	EXECUTION_STATE_COUNT
};

/* One that is to end. */
enum stopping {
	GOES_ON,
	INTERRUPTED,		/* a cell, by KeyboardInterrupt; has some time left */
	KILLED,			/* init was told so, and tells of the files */
};

struct execution {
	struct sched_item item;			/* WAITING; item.kind is the profile, or
						 * SCHED_CELLS */
	TAILQ_ENTRY(execution) link;		/* RUNNING, DUE */
	struct engine *engine;
	struct tenant *tenant;
	struct execution_watcher watcher;
	enum execution_state state;
	unsigned int profile;
	uint64_t serial;
	char id[32];
	struct request_copy request;
	struct limits limits;
	bool observed;				/* the engine's observer knows of it */
	/* Of a cell. */
	struct repl *repl;			/* NULL: none, or it is over */
	struct repl_job job;			/* WAITING */
	enum outcome_state became;
	uint32_t processes_ended;		/* of earlier cells, with it */
	bool fell;				/* what held the state, before it */
	int fell_status;			/* how its process ended, as wait(2) gives it */
	bool held_up;				/* it did not answer when the cell was to begin */
	struct frame stake;			/* its AT_STAKE, kept for the texts in it */
	struct output background;		/* of threads of earlier cells */
	/* While it runs. */
	struct worker *worker;
	enum stopping stopping;
	struct event deadline;			/* of the wall clock, or a look at cpu time */
	struct egress_grant *grant;		/* NULL: it has no network */
	bool listens;				/* its LISTENER came */
	struct execution_usage usage;
	struct execution_prompts prompts;
	struct execution_modules modules;
	struct execution_tools tools;
	struct execution_prompts consents;	/* about calls of tools; one is as good as many */
	size_t burst;				/* read since the last rest */
	struct output output;
	size_t spilled;				/* bytes charged to the tenant and the engine */
	struct frame done;			/* its DONE, kept for the texts in it */
	struct frame where;			/* its WHERE, likewise */
	struct execution_results results;
	struct execution_files files;
	struct execution_mounts mounts;
	struct outcome_facts facts;
	uint32_t retry_after_ms;
	char jail_text[512];
};

/* The execution that a queue's item is of. */
static inline struct execution *
execution_of(struct sched_item *item)
{
	return (struct execution *)(void *)((char *)item - offsetof(struct execution, item));
}

/* Gives it a warm worker, and it runs. -EAGAIN: the worker was no good and has been
 * ended, another one may do. Any other -errno: this cannot be run at all. */
int execution_lease(struct execution *execution, struct worker *worker);

/* Runs in a session: after its message was sent execution_begin, and what ends it. */
void execution_grant_network(struct execution *execution);
struct msg_run execution_run_message(const struct execution *execution);
int execution_make_stdin(const struct execution *execution);	/* a descriptor or -errno */
void execution_begin(struct execution *execution, struct worker *worker);
void execution_look_at_clocks(struct execution *execution);	/* they go on otherwise than
								 * before */
void execution_keep_done(struct execution *execution, struct frame *frame);
/* 0, or -EBADMSG: of another one, or the second. */
int execution_keep_stake(struct execution *execution, struct frame *frame);
/* 0, or -EBADMSG: it said so before, or says it of another one. */
int execution_on_where(struct execution *execution, struct frame *frame);
void execution_on_cell_ended(struct execution *execution, enum outcome_state became,
			     const struct msg_cell_ended *ended);

/* It ends at once, and its worker with it. The reason counts when there was none before. */
void execution_lose(struct execution *execution, enum stop_reason reason);

/* It cannot run: its profile's jail cannot be built. text says which wall. */
void execution_fail(struct execution *execution, const char *text);

/* What its worker says, or what is seen of it. All but the first end it. */
void execution_on_output(struct execution *execution, enum stream stream,
			 const void *bytes, size_t len);
void execution_on_done(struct execution *execution, struct frame *frame);
void execution_on_exited(struct execution *execution, int wait_status);
void execution_on_died(struct execution *execution, int wait_status);	/* its init */
void execution_on_broken(struct execution *execution);

/* Its listener: 0, and the frame is emptied; or -EBADMSG: it may have none, or has one. */
int execution_on_listener(struct execution *execution, struct frame *frame);

/* ---- execution_message.c ---- */

/* Of a worker that runs a script. */
extern const struct worker_user execution_user;

/* What a script or a cell says before DONE: a question, where it is, or results. 0 or -EBADMSG. */
int execution_take(struct execution *execution, struct frame *frame);

/* Ends it by force, with the reason. */
void execution_stop(struct execution *execution, enum stop_reason reason);

/* Delivers the outcomes that are due. */
void execution_deliver(struct engine *engine);

void execution_free(struct execution *execution);

/* ---- execution_answer.c ---- */

/* Asks the engine's observer whether it may be. */
int execution_announce(struct execution *execution, struct why *why_r);

/* Tells the observer and its watcher of the outcome. */
void execution_answer(struct execution *execution);

#endif
