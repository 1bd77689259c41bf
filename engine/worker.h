/* One worker as the supervisor sees it, from the request to the zygote until it is
 * reaped: its state, its descriptors, its leaf and its uid. A worker runs once, or cells of
 * one session, and is thrown away.
 */
#ifndef ENGINE_WORKER_H
#define ENGINE_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <event2/event_struct.h>

#include "engine/execution.h"
#include "host/cgroup.h"
#include "host/watchdog.h"
#include "proto/frame.h"

struct cgroup_leaf;
struct engine;
struct repl;
struct share;
struct worker;

enum worker_state {
	WORKER_STARTING,	/* asked for; no list */
	WORKER_WARM,		/* ready, waits: its share's warm list and the pool's */
	WORKER_LEASED,		/* a session's, and nothing runs in it */
	WORKER_RUNNING,		/* has an execution, which points back at it */
	WORKER_SPENT,		/* its execution is answered: the pool's list, to be ended soon */
	WORKER_ENDING,		/* killed; waits to be reaped, holds leaf and uid until then */
	WORKER_STATE_COUNT
};

const char *worker_state_name(enum worker_state state);
bool worker_may_move(enum worker_state from, enum worker_state to);

/* What a worker is leased for: an execution, or a session. It hears what the worker says and how
 * it ends, from worker_run or worker_lease on. */
struct worker_user {
	/* The frame may be taken. 0, or -EBADMSG: it may not say that, or not now. */
	int (*on_message)(struct worker *worker, struct frame *frame);
	void (*on_output)(struct worker *worker, enum stream stream, const void *bytes,
			  size_t len);
	void (*on_broken)(struct worker *worker);	/* while it runs: the protocol */
	void (*on_died)(struct worker *worker, int wait_status);	/* while it runs */
	void (*on_ending)(struct worker *worker);	/* it is ENDING; NULL: of no interest */
};

/* What becomes of all workers, for the pool that has them. */
struct worker_owner {
	void (*on_made)(struct worker *worker);		/* STARTING, or LEASED: adopted */
	void (*on_state)(struct worker *worker, int from, int to);	/* enum worker_state */
	void (*on_warm)(struct worker *worker);
	void (*on_failed)(struct worker *worker, const char *text);	/* it was new */
	void (*on_gone)(struct worker *worker);		/* reaped; about to be freed */
	void (*on_freed)(struct engine *engine);	/* a worker, or a stray process */
};

struct worker {
	TAILQ_ENTRY(worker) warm_link;		/* of its share, WARM */
	TAILQ_ENTRY(worker) age_link;		/* of the pool, WARM or SPENT, oldest first */
	LIST_ENTRY(worker) all_link;		/* of the pool, by serial */
	struct engine *engine;
	struct share *share;
	const struct worker_user *user;		/* NULL: not leased yet, or no more */
	struct execution *execution;		/* RUNNING; the user's */
	struct repl *repl;			/* the user's; NULL: it runs once */
	enum worker_state state;
	uint64_t serial;
	uint64_t generation;			/* of the zygote's process that it came from */
	bool is_stale;				/* STARTING or WARM, and that was replaced */
	uint64_t started_ms;			/* when the zygote was asked for it */
	uint32_t slot;				/* its uid in the outer namespace */
	pid_t pid;				/* of its init; 0: not told yet */
	int pidfd, control, pipe[STREAM_COUNT];
	bool is_ready;				/* READY came */
	bool kept;				/* it outlives this process */
	bool throttled;				/* pipes are not read until the timer fires */
	struct cgroup_leaf *leaf;		/* NULL: no cgroups */
	struct watchdog_usage baseline;		/* at READY */
	struct watchdog_seen seen;
	struct watchdog_look look;		/* at its memory */
	struct cgroup_counters before;		/* a session's, at the start of the cell */
	uint64_t cpu_baseline_us;
	struct frame_reader reader;
	struct frame_writer writer;
	bool may_pass;			/* descriptors, on its socket */
	struct event readable, writable, ended, timer, output[STREAM_COUNT];
};

/* Makes one for share and asks the zygote for it. 0 or -errno; step_r is what could not be done
 * then, a constant text. */
int worker_start(struct engine *engine, struct share *share, const char **step_r);

/* The zygote's answers. */
void worker_on_spawned(struct worker *worker, pid_t pid, int pidfd);
void worker_on_spawn_failed(struct worker *worker, const char *text);

/* The zygote is gone and did not answer for this one. If its process exists, it is
 * found by worker_adopt_strays. */
void worker_on_orphaned(struct worker *worker);

/* What a worker is given to run once. All borrowed but the descriptors. */
struct worker_load {
	const struct worker_user *user;
	struct execution *execution;
	const struct msg_input *input;
	size_t n_inputs;
	const struct msg_run *run;
	const int *fd;				/* the worker's from now on */
	size_t n_fds;
};

/* Sends the files and RUN; the worker is RUNNING afterwards. 0 or -errno; then it is ENDING. */
int worker_run(struct worker *worker, const struct worker_load *load);

/* A run, and the files before it. */
#define WORKER_WRITER_MAX (FRAME_MAX + 4096 + INPUTS_BYTES_MAX + \
			   FILE_PLACES * 4 * PATH_TEXT_MAX + \
	INPUTS_MAX * (PATH_TEXT_MAX + 1024))

/* Makes a warm one a session's, with its OPEN. 0 or -errno; then it is ENDING. */
int worker_lease(struct worker *worker, const struct worker_user *user, struct repl *repl,
		 const struct msg *open);

/* Makes one of a session's that another process has left: its profile, serial and slot (which is
 * its own already), its init, and the descriptors, which belong to it from now on; of pipe those
 * that are not -1. leaf may be NULL. */
struct worker *worker_adopt(struct engine *engine, struct share *share, uint64_t serial,
			    uint32_t slot, pid_t pid, int pidfd, int control,
			    const int pipe[STREAM_COUNT], struct cgroup_leaf *leaf);

/* Whether it may send descriptors: none but those of LISTENER are wanted. */
void worker_pass_descriptors(struct worker *worker, bool may);

/* Sends a session's worker a message; the descriptor (-1: none) belongs to the worker from
 * now on. 0 or -errno: it is of no use any more. */
int worker_send(struct worker *worker, const struct msg *msg, int fd);

/* A session's worker runs a cell, or has run it. */
void worker_run_cell(struct worker *worker, struct execution *execution);
void worker_rest(struct worker *worker);

/* Stops reading its output for ms. */
void worker_throttle(struct worker *worker, uint32_t ms);

/* worker_output.c: its standard output and standard error. */

/* Makes the pipes; the ends in theirs_r, one per stream, are the caller's, also those that
 * are there (not -1) when it fails. 0, or a negative errno. */
int worker_output_make(struct worker *worker, int theirs_r[STREAM_COUNT]);

/* Assigns their events, once they are made or known not to be. */
void worker_output_assign(struct worker *worker);

/* Reads them from now on, or no more. */
void worker_output_listen(struct worker *worker);
void worker_output_mute(struct worker *worker);

/* Reads what is in them now, at most what they can hold. */
void worker_drain(struct worker *worker);

/* The same, but tells nobody. */
void worker_output_discard(struct worker *worker);

void worker_output_close(struct worker *worker);

/* Has its init end all other processes and tell of files; EXITED follows. where: first the script
 * may tell where it is, which takes a moment. Not of a session's. 0, or -ESRCH: it is gone. */
int worker_stop(struct worker *worker, bool where);

/* Sends SIGKILL without any change of state. */
void worker_kill(struct worker *worker);

/* Its execution is over, and is about to be answered. It lives until the pool ends it, in a
 * moment of quiet. */
void worker_spend(struct worker *worker);

/* After the answer: nothing that it says is heard any more, if it is spent. To be called
 * before the loop goes on. */
void worker_ignore(struct worker *worker);

/* Kills it, whatever its state. Safe to call twice. It is freed once reaped. */
void worker_end(struct worker *worker);

/* Frees it at once, reaped or not: only when the engine itself goes. */
void worker_free(struct worker *worker);

/* The kernel's list of the children of this thread, for reading; not possible any more once the
 * supervisor is fenced. The descriptor or -errno. */
int worker_open_children(void);

/* Kills and reaps children of this process that are neither in the pool nor zygotes. */
void worker_adopt_strays(struct engine *engine);
void worker_forget_strays(struct engine *engine);	/* waits for them */

/* ---- uids ---- */

/* Ids 1 to count, each held by at most one living worker; given out in turn so that one
 * just given back rests longest. count 0: everybody has id 0. */
struct worker_slots {
	uint16_t *ring;
	uint32_t count, first, free;
};

void worker_slots_init(struct worker_slots *slots, uint32_t count);
void worker_slots_done(struct worker_slots *slots);
int worker_slots_take(struct worker_slots *slots, uint32_t *slot_r);	/* -EAGAIN: all taken */
int worker_slots_reserve(struct worker_slots *slots, uint32_t slot);	/* that one; -EBUSY */
void worker_slots_give(struct worker_slots *slots, uint32_t slot);

#endif
