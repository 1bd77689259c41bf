/* Sessions as the engine's other modules see them.
 */
#ifndef ENGINE_REPL_PARTS_H
#define ENGINE_REPL_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <event2/event_struct.h>

#include "engine/execution_mounts.h"
#include "engine/repl.h"
#include "proto/frame.h"

struct execution;
struct share;
struct worker;

enum repl_phase {
	REPL_NEW,
	REPL_WAITING,		/* in its share's list, for a worker */
	REPL_OPENING,		/* the worker makes its first snapshot */
	REPL_IDLE,
	REPL_CELL,		/* repl->execution runs */
	REPL_COPY,		/* the first job is a copy that was asked for */
	REPL_ENDED,
	REPL_PHASE_COUNT
};

#define CELL_ROOM (16U << 20)		/* for a cell in a session whose memory is used up */

/* What happens in a session, in the order of asking. That of a cell is part of its execution,
 * the others are the repl's own. */
struct repl_job {
	TAILQ_ENTRY(repl_job) link;
	enum { JOB_CELL, JOB_COPY, JOB_DROP } kind;
	struct execution *execution;
	unsigned int from, to;
	bool adds;		/* to held no state before it */
	void (*on_copied)(void *arg, int error);
	void *arg;
	int error;		/* once it is to be answered */
};

/* What an execution asks of the session that it is a cell of. */
struct repl_stage {
	/* May a cell be started in it? 0, or -ESRCH with why_r. */
	int (*admits)(const struct repl *repl, struct why *why_r);
	/* Appends the job of an execution that waits in its tenant's queue, and looks what is
	 * next. */
	void (*enqueue)(struct repl *repl, struct execution *execution);
	void (*dequeue)(struct repl *repl, struct execution *execution);
	/* Tells the cell that runs something on its own socket. fd: passed with it; -1: none. 0 or
	 * -errno. */
	int (*send)(struct repl *repl, const struct msg *msg, int fd);
	/* repl_mount, for the cell that runs. */
	int (*mount)(struct repl *repl, const char *environment,
		     void (*mounted)(void *arg, int error), void *arg,
		     struct mounting **mounting_r);
	/* Stops it, with interrupt by KeyboardInterrupt; with where it may first tell where it is.
	 * False: it is to be ended with its worker, at once. */
	bool (*stop)(struct repl *repl, bool interrupt, bool where);
	/* It is over: its socket is closed. */
	void (*close)(struct repl *repl);
};

struct repl {
	const struct repl_stage *stage;
	LIST_ENTRY(repl) link;			/* of the engine */
	TAILQ_ENTRY(repl) waiting_link;		/* of its share, WAITING */
	struct engine *engine;
	struct tenant *tenant;
	struct share *share;
	struct repl_watcher watcher;
	uint64_t memory_bytes;
	char environment[ENVIRONMENT_NAME + 1];	/* mounted last; "": none */
	struct mount_places places;
	struct mounting *mounting;		/* of what it begins with; NULL: not now */
	enum repl_phase phase;
	struct worker *worker;			/* from OPENING on, until ENDED */
	bool has_snapshot;				/* the first one was made */
	uint32_t snapshots;			/* that hold a state, as init has told */
	bool frozen;
	bool adopted;				/* from the supervisor before this one */
	bool held;				/* its init has stopped all, or is about to */
	uint32_t holds, holds_heard;		/* asked for, and answered */
	uint64_t uncounted_most;		/* private bytes that no controller counts any
						 * more */
	uint64_t uncounted;			/* of them, when last looked at */
	uint64_t uncounted_lasting;		/* beside them */
	bool was_looked_at;			/* since it is */
	uint64_t idle_since_ms;
	uint64_t idle_cpu_us;			/* used until then; while not frozen */
	uint64_t looked_cpu_us;			/* ... until the last look */
	TAILQ_HEAD(repl_jobs, repl_job) jobs, answers;
	struct event timer;			/* of what the worker has to answer */
	struct event tell;			/* answers, and on_end */
	bool end_untold;
	char end_text[256];
	/* While a cell runs: its own socket, over which it gets its code and gives its results. */
	struct execution *execution;
	int channel;
	bool may_pass;				/* descriptors, on it */
	struct frame_reader reader;
	struct frame_writer writer;
	struct event readable, writable;
	bool ready;				/* it has come to its end; init was answered */
};

/* ---- repl.c ---- */

/* The one way from a phase to another, and into and out of the list of those that wait. Aborts
 * if there is no such way. */
void repl_set_phase(struct repl *repl, enum repl_phase phase);

/* A warm worker for it. 0, or -EAGAIN: the worker was no good, and has been ended. */
int repl_lease(struct repl *repl, struct worker *worker);

/* Does what is next. */
void repl_turn(struct repl *repl);

/* Of a worker that is a session's. */
extern const struct worker_user repl_user;

/* Ends it, with what its clients are told. */
void repl_end(struct repl *repl, const char *text);

/* Its worker is no more: ENDING, or about to be. A cell that ran has been closed already. */
void repl_on_worker_gone(struct repl *repl, const char *text);

/* Forgets it without a word. */
void repl_free(struct repl *repl);

/* Sends a message on the control socket of its worker. The descriptor (-1: none) is the
 * worker's from now on. -errno: the worker is of no use. */
int repl_send(struct repl *repl, const struct msg *msg, int fd);

/* It has nothing to do. */
void repl_rest(struct repl *repl);

/* A NEW one. */
struct repl *repl_make(struct engine *engine, struct tenant *tenant, unsigned int profile,
		       uint64_t memory_bytes, const struct repl_watcher *watcher);

/* ---- repl_usage.c ---- */

/* Called each second: an idle one is frozen, and has to be within its memory then. */
void repl_look_after(struct repl *repl);

/* Looks at the memory of its worker where no controller counts it, if it may be more than limit.
 * True: that is known now. False: looked(repl) is called when it is, unless the worker is sent
 * something or ends before. */
bool repl_look(struct repl *repl, uint64_t limit, void (*looked)(void *arg));

/* Is it within its limit, by the last look? */
bool repl_fits_memory(struct repl *repl);

/* ---- repl_keep.c ---- */

/* Has init stop all that is in it until something is sent again. */
void repl_hold(struct repl *repl);
int repl_on_held(struct repl *repl, const struct msg_held *held);

/* Has it a state that can be kept, once it has come to rest? */
bool repl_may_stay(const struct repl *repl);

/* Has it come to rest, so that it can outlive this process? */
bool repl_is_still(const struct repl *repl);

/* Bytes of an adopted one that were charged before the controllers were enabled again. */
uint64_t repl_uncounted(struct repl *repl);

/* ---- repl_cell.c ---- */

/* Runs the cell of the first job, which is taken out. */
void repl_start_cell(struct repl *repl, struct execution *execution);

/* As struct repl_stage has them. */
int repl_send_cell(struct repl *repl, const struct msg *msg, int fd);
bool repl_stop_cell(struct repl *repl, bool interrupt, bool where);

/* CELL_READY; CELL_ENDED, and what init tells of files before it. */
int repl_on_cell_ready(struct repl *repl, const struct msg_cell_ready *ready);
int repl_on_cell_ended(struct repl *repl, const struct msg_cell_ended *ended);
int repl_on_left(struct repl *repl, struct frame *frame);

/* LISTENER, which init has made for the cell. */
int repl_on_listener(struct repl *repl, struct frame *frame);

/* Closes its socket. */
void repl_close_channel(struct repl *repl);

#endif
