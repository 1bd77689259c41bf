/* Executions as the engine's other modules see them.
 */
#ifndef ENGINE_EXECUTION_PARTS_H
#define ENGINE_EXECUTION_PARTS_H

#include <stddef.h>
#include <sys/queue.h>

#include <event2/event_struct.h>

#include "engine/execution.h"
#include "engine/execution_results.h"
#include "engine/outcome.h"
#include "engine/output.h"
#include "engine/repl_parts.h"
#include "engine/scheduler.h"
#include "host/watchdog.h"
#include "proto/frame.h"

struct engine;
struct why;
struct tenant;
struct worker;

enum execution_state {
	EXECUTION_WAITING,	/* in its tenant's queue */
	EXECUTION_RUNNING,	/* has a worker; engine->running */
	EXECUTION_DUE,		/* it is over, or it never ran: engine->due */
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
	/* Copies of the request. */
	char *script, *stdin_text;
	size_t script_len, stdin_len, n_args;
	struct msg_str *args;
	char *args_text;
	struct msg_str *imports;		/* NULL: any */
	size_t n_imports;
	char *imports_text;
	bool tell_names;
	struct msg_input *input;		/* what they point to is in input_bytes */
	size_t n_inputs;
	char *input_bytes;
	char environment[ENVIRONMENT_NAME + 1];	/* "": none */
	int channel;				/* -1: none, or given away */
	struct limits limits;
	uint64_t memory_max;			/* the watchdog's: limits.memory_bytes, or some
						 * more */
	bool internal, observed;
	struct msg_egress_open *network;	/* NULL: none is allowed */
	/* Of a cell. */
	struct repl *repl;			/* NULL: none, or it is over */
	struct repl_job job;			/* WAITING */
	unsigned int snapshot, cell;
	enum outcome_state became;
	uint32_t left_behind;			/* processes that were ended with it */
	/* While it runs. */
	struct worker *worker;
	enum stopping stopping;
	struct event deadline;			/* of the wall clock, or a look at cpu time */
	struct watchdog_link watchdog;
	struct egress_grant *grant;		/* NULL: it has no network */
	bool listens;				/* its LISTENER came */
	uint64_t asked_us;			/* when it was made */
	uint64_t start_us, end_us;
	uint32_t prompts_max, prompt_ms;	/* see execution_request */
	uint32_t prompt;			/* number of the last one; 0: none */
	uint64_t prompt_us;			/* since when its answer is waited for; 0: it has
						 * one */
	uint64_t waited_us;			/* for the answers before that one */
	size_t burst;				/* read since the last rest */
	struct output output;
	size_t spilled;				/* bytes charged to the tenant and the engine */
	struct frame done;			/* its DONE, kept for the texts in it */
	struct execution_results results;
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
void execution_on_cell_ended(struct execution *execution, enum outcome_state became,
			     const struct msg_cell_ended *ended);

/* It ends at once, and its worker with it. The reason counts when there was none before. */
void execution_lose(struct execution *execution, enum stop_reason reason);

/* The profile of a request, within what its tenant may have. */
int execution_choose_profile(const struct tenant *tenant, const char *name,
			     unsigned int *index_r, struct why *why_r);

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

/* ---- execution_prompts.c ---- */

/* Its script asks. 0 or -EBADMSG. */
int execution_on_prompt(struct execution *execution, const struct frame *frame);

/* The time on its wall clock: since its start, but for what it has waited for answers. */
uint64_t execution_wall_us(const struct execution *execution);

/* For how much longer the wait that goes on does not count; 0: it does, or there is none. */
uint64_t execution_patience_ms(const struct execution *execution);

/* Ends it by force, with the reason. */
void execution_stop(struct execution *execution, enum stop_reason reason);

/* ---- execution_usage.c ---- */

/* Writes what it has used into its facts: at its end. */
void execution_count(struct execution *execution);

/* The processor time that it has used until now. */
uint64_t execution_cpu_ms(struct execution *execution);

/* The watchdog's look at a running one. */
void execution_check(struct execution *execution);

/* Is it within its limit, where no controller counts memory? By the last look at its worker, if
 * each process by its own count has more. */
bool execution_fits_memory(struct execution *execution);

/* Delivers the outcomes that are due. */
void execution_deliver(struct engine *engine);

/* Copies the request; its deadline is still to be assigned. */
struct execution *execution_new(struct engine *engine, struct tenant *tenant,
				const struct execution_request *request,
				const struct execution_watcher *watcher,
				unsigned int profile);
void execution_free(struct execution *execution);

/* Asks the engine's observer whether it may be. */
int execution_announce(struct execution *execution, struct why *why_r);

/* Tells the observer and its watcher of the outcome. */
void execution_answer(struct execution *execution);

#endif
