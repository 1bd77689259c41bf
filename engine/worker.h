/* SPDX-License-Identifier: Apache-2.0 */
/* One worker as the supervisor sees it, from the request to the zygote until it is reaped: its
 * state, its descriptors, its leaf and its uid. A worker runs one script, or the cells of one
 * session, and is then ended.
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
	WORKER_LEASED,		/* it belongs to a session, and no cell runs */
	WORKER_RUNNING,		/* it has an execution, which points back at it */
	WORKER_SPENT,		/* its execution was answered: in the pool's list, to be ended soon
				 */
	WORKER_ENDING,		/* killed, not reaped yet; until then it holds leaf and uid */
	WORKER_STATE_COUNT
};

bool worker_may_move(enum worker_state from, enum worker_state to);

/* The user of a worker: an execution or a session. It gets the worker's messages, output and end,
 * from worker_run or worker_lease on. */
struct worker_user {
	/* A message; the frame may be taken. 0, or -EBADMSG: this message is not allowed, or not
	 * now. */
	int (*on_message)(struct worker *worker, struct frame *frame);
	void (*on_output)(struct worker *worker, enum stream stream, const void *bytes,
			  size_t len);
	void (*on_broken)(struct worker *worker);	/* while it runs: it broke the protocol */
	void (*on_died)(struct worker *worker, int wait_status);	/* while it runs */
	void (*on_ending)(struct worker *worker);	/* it is ENDING; NULL: of no interest */
};

/* Changes of all workers, for the pool. */
struct worker_owner {
	void (*on_made)(struct worker *worker);		/* STARTING, or LEASED: adopted */
	void (*on_state)(struct worker *worker, int from, int to);	/* enum worker_state */
	void (*on_warm)(struct worker *worker);
	void (*on_failed)(struct worker *worker, const char *text);	/* before it was warm */
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
	struct repl *repl;			/* the session that uses it; NULL: it runs one
						 * script */
	enum worker_state state;
	uint64_t serial;
	uint64_t generation;			/* of the zygote's process that it came from */
	bool is_stale;				/* STARTING or WARM, and that zygote was replaced */
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
	bool has_volume;			/* then there is no look: a fault on a page of the
						 * volume holds what the look waits for, until
						 * the volume's server has time */
	struct cgroup_counters before;		/* a session's, at the start of the cell */
	uint64_t cpu_baseline_us;
	struct frame_reader reader;
	struct frame_writer writer;
	bool may_pass;			/* descriptors, on its socket */
	struct event readable, writable, ended, timer, output[STREAM_COUNT];
};

/* Makes a worker for share and asks the zygote for it. 0, or -errno with *step_r (static): the step
 * that failed. */
int worker_start(struct engine *engine, struct share *share, const char **step_r);

/* The zygote's answers. */
void worker_on_spawned(struct worker *worker, pid_t pid, int pidfd);
void worker_on_spawn_failed(struct worker *worker, const char *text);

/* The zygote has ended without an answer about this worker. If its process exists,
 * worker_adopt_strays finds it. */
void worker_on_orphaned(struct worker *worker);

/* The messages of one run. Everything is borrowed except the descriptors. */
struct worker_load {
	const struct worker_user *user;
	struct execution *execution;
	const struct msg_input *input;
	size_t n_inputs;
	const struct msg_run *run;
	const int *fd;				/* the worker's from now on */
	size_t n_fds;
};

/* Sends the files and RUN; the worker is RUNNING then. 0, or -errno: it is ENDING. */
int worker_run(struct worker *worker, const struct worker_load *load);

/* Bytes of RUN and the files before it. */
#define WORKER_WRITER_MAX (FRAME_MAX + 4096 + INPUTS_BYTES_MAX + \
			   FILE_PLACES * 4 * PATH_TEXT_MAX + \
	INPUTS_MAX * (PATH_TEXT_MAX + 1024))

/* Leases a warm worker to a session and sends OPEN. 0, or -errno: it is ENDING. */
int worker_lease(struct worker *worker, const struct worker_user *user, struct repl *repl,
		 const struct msg *open);

/* Makes the worker of a session that an earlier supervisor has left. slot is reserved already. The
 * descriptors belong to the worker from now on; those of pipe that are -1 do not exist. leaf may be
 * NULL. */
struct worker *worker_adopt(struct engine *engine, struct share *share, uint64_t serial,
			    uint32_t slot, pid_t pid, int pidfd, int control,
			    const int pipe[STREAM_COUNT], struct cgroup_leaf *leaf);

/* Sets whether it may send descriptors, which only LISTENER has. */
void worker_pass_descriptors(struct worker *worker, bool may);

/* Sends a message to a session's worker. The descriptor (-1: none) belongs to the worker from now
 * on. 0, or -errno: the worker cannot be used any more. */
int worker_send(struct worker *worker, const struct msg *msg, int fd);

/* A session's worker begins to run a cell; it has ended the cell. */
void worker_run_cell(struct worker *worker, struct execution *execution);
void worker_rest(struct worker *worker);

/* Stops reading its output for ms. */
void worker_throttle(struct worker *worker, uint32_t ms);

/* worker_output.c: its standard output and standard error. */

/* Makes the pipes. theirs_r, one end per stream, belongs to the caller, also after a failure (-1:
 * not made). 0 or -errno. */
int worker_output_make(struct worker *worker, int theirs_r[STREAM_COUNT]);

/* Assigns their events, once the pipes are made or could not be made. */
void worker_output_assign(struct worker *worker);

/* Starts to read them, or stops. */
void worker_output_listen(struct worker *worker);
void worker_output_mute(struct worker *worker);

/* Reads what is in them now, at most the size of the pipes. */
void worker_drain(struct worker *worker);

/* The same, and drops the bytes. */
void worker_output_discard(struct worker *worker);

void worker_output_close(struct worker *worker);

/* Makes its init end all other processes and report files; EXITED follows. where: the script may
 * first report its stacks, which takes a moment. Not for a session's worker. 0, or -ESRCH: it is
 * gone. */
int worker_stop(struct worker *worker, bool where);

/* Sends SIGKILL without any change of state. */
void worker_kill(struct worker *worker);

/* Its execution has ended and will be answered next. The pool ends the worker later, in a quiet
 * moment. */
void worker_spend(struct worker *worker);

/* To be called after the answer, before the loop continues: from now on the messages of a spent
 * worker are ignored. */
void worker_ignore(struct worker *worker);

/* Kills it in any state. Safe to call twice. It is freed when it is reaped. */
void worker_end(struct worker *worker);

/* Frees it at once, reaped or not. Only when the engine is freed. */
void worker_free(struct worker *worker);

/* The kernel's list of the children of this thread, for reading; not possible any more once the
 * supervisor is fenced. The descriptor or -errno. */
int worker_open_children(void);

/* Kills and reaps children of this process that are neither in the pool nor zygotes. */
void worker_adopt_strays(struct engine *engine);
void worker_forget_strays(struct engine *engine);	/* waits for them */

/* ---- uids ---- */

/* Ids 1 to count, each of which at most one live worker has. The id that has been free for longest
 * is used next. count 0: all workers have id 0. */
struct worker_slots {
	uint16_t *ring;
	uint32_t count, first, free;
};

void worker_slots_init(struct worker_slots *slots, uint32_t count);
void worker_slots_done(struct worker_slots *slots);
int worker_slots_take(struct worker_slots *slots, uint32_t *slot_r);	/* -EAGAIN: all taken */
int worker_slots_reserve(struct worker_slots *slots, uint32_t slot);	/* this id; -EBUSY: taken */
void worker_slots_give(struct worker_slots *slots, uint32_t slot);

#endif
