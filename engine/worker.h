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

#include "engine/output.h"
#include "host/cgroup.h"
#include "host/watchdog.h"
#include "proto/frame.h"

struct cgroup_leaf;
struct engine;
struct recipe;
struct repl;
struct share;
struct worker;
struct worker_bounds;

enum worker_state {
	WORKER_STARTING,	/* the zygote was asked for it; it is in no list */
	WORKER_WARM,		/* ready and unused: in its share's list and in the pool's */
	WORKER_LEASED,		/* it belongs to a session, and no cell runs; or to ready.h */
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
	void (*on_ending)(struct worker *worker);	/* it is ENDING; NULL: not called */
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
	const struct worker_user *user;		/* NULL: it has no user yet, or no more */
	struct execution *execution;		/* RUNNING: belongs to the user */
	struct repl *repl;			/* the session that uses it; NULL: it runs one
						 * script */
	struct recipe *recipe;			/* LEASED: it is made ready, or is ready (ready.h)
						 */
	char made_ready[ENVIRONMENT_NAME + 1];	/* it was taken from there, with this set mounted;
						 * "": it was not, or the session has begun */
	enum worker_state state;
	uint64_t serial;
	uint64_t generation;			/* of the zygote's process that made it */
	bool is_stale;				/* STARTING or WARM, and that process was replaced
						 */
	uint64_t started_ms;			/* when the zygote was asked for it */
	uint32_t slot;				/* its uid in the outer namespace */
	pid_t pid;				/* of its init; 0: the zygote has not said it yet */
	int pidfd, control, pipe[STREAM_COUNT];
	bool is_ready;				/* READY came */
	bool kept;				/* it outlives this process */
	bool throttled;				/* its pipes are not read until the timer fires */
	struct cgroup_leaf *leaf;		/* NULL: no cgroups */
	struct watchdog_usage baseline;		/* at READY */
	struct watchdog_seen seen;
	struct watchdog_look look;		/* the exact measurement of its memory */
	bool has_volume;			/* no look is made: it would wait for a page fault
						 * on the volume, which waits for the volume's
						 * server */
	struct cgroup_counters before;		/* at the start of a session's cell, or of a script
						 * in a worker that was made ready */
	uint64_t cpu_baseline_us;
	uint32_t sockets, tasks;		/* at the last sample; see tables.h */
	struct frame_reader reader;
	struct frame_writer writer;
	bool may_pass;			/* it may pass descriptors on its socket */
	struct event readable, writable, ended, timer, output[STREAM_COUNT];
};

/* Notes what the worker takes of tables.h, also in the sums of its tenant; 0 once it is ended. */
void worker_note_tables(struct worker *worker, uint32_t sockets, uint32_t tasks);

/* Makes a worker for share and asks the zygote for it. 0, or -errno with *step_r (static): the step
 * that failed. */
int worker_start(struct engine *engine, struct share *share, const char **step_r);

/* The zygote's answers. */
void worker_on_spawned(struct worker *worker, pid_t pid, int pidfd);
void worker_on_spawn_failed(struct worker *worker, const char *text);

/* The zygote has ended without an answer about this worker. If its process exists,
 * worker_adopt_strays finds it. */
void worker_on_orphaned(struct worker *worker);

/* What is sent for a run: the files, then RUN. Everything is borrowed except the descriptors. */
struct worker_load {
	const struct worker_user *user;
	struct execution *execution;
	const struct msg_input *input;
	size_t n_inputs;
	const struct msg_run *run;
	const int *fd;				/* belong to the worker from now on */
	size_t n_fds;
};

/* Sends the files and RUN; the worker is RUNNING then. 0, or -errno: it is ENDING. */
int worker_run(struct worker *worker, const struct worker_load *load);

/* The most bytes that RUN and the files before it take. */
#define WORKER_WRITER_MAX (FRAME_MAX + 4096 + INPUTS_BYTES_MAX + \
			   FILE_PLACES * 4 * PATH_TEXT_MAX + \
	INPUTS_MAX * (PATH_TEXT_MAX + 1024))

/* Leases a warm worker, and sends the message with a descriptor (-1: none), which belongs to the
 * worker from now on. repl: NULL: the user is no session. 0, or -errno: it is ENDING. */
int worker_lease(struct worker *worker, const struct worker_user *user, struct repl *repl,
		 const struct msg *msg, int fd);

/* Makes a warm worker one of a session, by OPEN. prepare: PREPARE will follow. user, repl and the
 * result as for worker_lease. */
int worker_lease_session(struct worker *worker, const struct worker_bounds *bounds, bool prepare,
			 const struct worker_user *user, struct repl *repl);

/* The processor time that its processes have used. */
uint64_t worker_cpu_us(struct worker *worker);

/* Makes the struct worker for a running worker, which belongs to a session that an earlier
 * supervisor has left. slot is reserved already. The descriptors belong to the worker from now on.
 * pipe: -1: this pipe does not exist. leaf may be NULL. */
struct worker *worker_adopt(struct engine *engine, struct share *share, uint64_t serial,
			    uint32_t slot, pid_t pid, int pidfd, int control,
			    const int pipe[STREAM_COUNT], struct cgroup_leaf *leaf);

/* Sets whether the worker may pass descriptors. Only its message LISTENER has any. 0 or -errno:
 * it may not. */
int worker_pass_descriptors(struct worker *worker, bool may);

/* Sends a message to a session's worker. The descriptor (-1: none) belongs to the worker from now
 * on. 0, or -errno: the worker cannot be used any more. */
int worker_send(struct worker *worker, const struct msg *msg, int fd);

/* Set the state of a session's worker: RUNNING, when it begins to run a cell; LEASED, when the cell
 * has ended. */
void worker_run_cell(struct worker *worker, struct execution *execution);
void worker_rest(struct worker *worker);

/* Stops reading the worker's output for this time. */
void worker_throttle(struct worker *worker, uint32_t ms);

/* worker_output.c: standard output and standard error of a worker. */

/* Makes the pipes. theirs_r gets the worker's end of each, which belongs to the caller, also after
 * a failure (-1: not made). 0 or -errno. */
int worker_output_make(struct worker *worker, int theirs_r[STREAM_COUNT]);

/* Assigns the events of the pipes, once the pipes are made or could not be made. */
void worker_output_assign(struct worker *worker);

/* Start and stop reading the pipes. */
void worker_output_listen(struct worker *worker);
void worker_output_mute(struct worker *worker);

/* Reads the bytes that are in the pipes now, at most the size of the pipes. */
void worker_drain(struct worker *worker);

/* Reads the bytes that are in the pipes now, and drops them. */
void worker_output_discard(struct worker *worker);

void worker_output_close(struct worker *worker);

/* Makes the worker's init interrupt the script; or end all other processes and report files; then
 * EXITED follows. Not for a session's worker. 0, or -ESRCH: the worker is gone. */
enum worker_end {
	WORKER_INTERRUPT,	/* KeyboardInterrupt: the script may still end by itself */
	WORKER_WHERE,		/* it first reports its stacks, which takes a moment */
	WORKER_KILL,
};

int worker_stop(struct worker *worker, enum worker_end how);

/* Sends SIGKILL without any change of state. */
void worker_kill(struct worker *worker);

/* To be called when the worker's execution has ended and will be answered next: the worker becomes
 * SPENT. The pool ends it later, in a quiet moment. */
void worker_spend(struct worker *worker);

/* To be called after the answer, before the loop continues: from now on the messages of a spent
 * worker are ignored. */
void worker_ignore(struct worker *worker);

/* Kills the worker in any state. Safe to call twice. The worker is freed when it is reaped. */
void worker_end(struct worker *worker);

/* Frees the worker at once, reaped or not. Only when the engine is freed. */
void worker_free(struct worker *worker);

/* Opens the kernel's list of the children of this thread, for reading. To be called before the
 * supervisor enters its fence, which does not allow it. The descriptor or -errno. */
int worker_open_children(void);

/* Kills and reaps children of this process that are neither in the pool nor zygotes. */
void worker_adopt_strays(struct engine *engine);
void worker_forget_strays(struct engine *engine);	/* waits for them */

#endif
