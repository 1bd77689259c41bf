/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a session, for the engine's other modules. No file outside of engine/ includes it.
 */
#ifndef ENGINE_REPL_PARTS_H
#define ENGINE_REPL_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <event2/event_struct.h>

#include "engine/execution_mounts.h"
#include "engine/repl.h"
#include "engine/repl_stage.h"
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
	REPL_COPY,		/* init makes the copy that is the first job */
	REPL_ENDED,
	REPL_PHASE_COUNT
};

#define CELL_ROOM (16U << 20)		/* for a cell in a session whose memory is used up */

struct repl {
	LIST_ENTRY(repl) link;			/* of the engine */
	TAILQ_ENTRY(repl) waiting_link;		/* of its share, WAITING */
	struct engine *engine;
	struct tenant *tenant;
	struct share *share;
	struct repl_watcher watcher;
	uint64_t memory_bytes;
	uint64_t memory_most;		/* if no controller counts memory, its processes cannot
					 * have a higher limit */
	char environment[ENVIRONMENT_NAME + 1];	/* mounted last; "": none */
	struct mount_places places;
	struct mounting *mounting;		/* of the packages that it begins with; NULL: they
						 * are not being mounted */
	enum repl_phase phase;
	struct worker *worker;			/* from OPENING until ENDED */
	bool has_snapshot;				/* the first snapshot was made */
	uint32_t snapshots;			/* bit n: snapshot n holds a state, as init has
						 * reported */
	bool frozen;
	bool alone;				/* as in repl_options */
	uint32_t pids_max;		/* the most processes that one of its cells may have */
	bool has_begun;			/* a cell that is no look has run */
	bool adopted;				/* from the supervisor before this one */
	bool held;				/* its init has stopped its processes, or is
						 * about to */
	uint32_t holds, holds_heard;		/* orders to stop the processes; answers to them */
	/* Of an adopted session: memory from before the adoption, which no controller counts. */
	uint64_t uncounted_most;		/* private bytes when it was adopted */
	uint64_t uncounted;			/* private bytes at the last look */
	uint64_t uncounted_lasting;		/* files, and kernel memory: cannot be measured
						 * again */
	bool was_looked_at;			/* its memory was measured since it was frozen */
	uint64_t rests_with;			/* bytes of memory, as init has reported; 0:
						 * unknown */
	uint64_t spare_bytes;			/* as init has reported */
	uint64_t idle_since_ms;
	struct {				/* threads and processes between cells */
		bool runs;
		bool is_heard;			/* the last cell was committed: what its processes
						 * write afterwards is reported */
		uint64_t until_ms;
		uint64_t cpu_us;		/* what the worker had used when last counted */
		uint64_t untold_us;		/* used, but not charged yet: less than a
						 * millisecond */
		uint64_t cpu_left_us;		/* what it may still use */
	} background;
	uint64_t idle_cpu_us;			/* what the worker had used at the first look while
						 * idle; 0: no look yet */
	uint64_t looked_cpu_us;			/* what it had used at the last look */
	TAILQ_HEAD(repl_jobs, repl_job) jobs, answers;
	struct event timer;			/* for the answers of the worker */
	struct event tell;			/* answers, and on_end */
	bool end_untold;
	char end_text[256];
	/* While a cell runs: its own socket, over which it gets its code and gives its results. */
	struct execution *execution;
	int channel;
	bool may_pass;				/* the cell may pass descriptors on its socket */
	struct frame_reader reader;
	struct frame_writer writer;
	struct event readable, writable;
	bool ready;				/* CELL_READY came: the cell has ended by itself,
						 * and waits */
};

/* ---- repl.c ---- */

/* Changes the phase, and enters or leaves the list of waiting sessions. Every change goes through
 * here. Aborts if the change is not allowed. */
void repl_set_phase(struct repl *repl, enum repl_phase phase);

/* Makes a session in phase WAITING wait in another share. */
void repl_change_share(struct repl *repl, struct share *share);

/* Gives the session a warm worker. 0, or -EAGAIN: the worker failed and was ended. */
int repl_lease(struct repl *repl, struct worker *worker);

/* Starts the next job, if it can. */
void repl_turn(struct repl *repl);

/* The interface for cells. */
extern const struct repl_stage repl_stage;

/* The user of a worker that a session has leased. */
extern const struct worker_user repl_user;

/* Ends the session; text is the sentence for its clients. */
void repl_end(struct repl *repl, const char *text);

/* To be called when the session's worker is ENDING, or about to be. A running cell was closed
 * before. */
void repl_on_worker_gone(struct repl *repl, const char *text);

/* Frees the session without any callback. */
void repl_free(struct repl *repl);

/* Sends a message on the control socket of the session's worker. fd (-1: none) belongs to the
 * worker from now on. 0, or -errno: the worker cannot be used any more. */
int repl_send(struct repl *repl, const struct msg *msg, int fd);

/* To be called when a job is done: the session is idle, and starts its next job if there is one. */
void repl_rest(struct repl *repl);

/* Makes a session in phase NEW. Arguments as in repl_open. */
struct repl *repl_make(struct engine *engine, struct tenant *tenant, unsigned int profile,
		       uint64_t memory_bytes, const struct repl_watcher *watcher);

/* ---- repl_usage.c ---- */

/* Called each second. Freezes an idle session, and ends it if it uses more memory or processor time
 * than it may while idle. */
void repl_look_after(struct repl *repl);

/* Measures the memory of the session's worker exactly, if no controller counts it and it may be
 * above limit. True: the result is known now. False: looked(repl) is called when the result is
 * known, unless the worker gets a message or ends before. */
bool repl_look(struct repl *repl, uint64_t limit, void (*looked)(void *arg));

/* To be called when a cell has ended: notes whether threads and processes continue, for how long,
 * and how much processor time they may use. */
void repl_background_begin(struct repl *repl, const struct execution *cell,
			   const struct msg_cell_ended *ended);

/* Charges the processor time that threads and processes between cells have used since the last
 * count, if there are any. False: they may use no more, or there are none. */
bool repl_background_count(struct repl *repl);

/* Is the session within its memory limit, by the last measurement? */
bool repl_fits_memory(struct repl *repl);

/* ---- repl_keep.c ---- */

/* repl_hold makes init stop all other processes of the session until the next message. The kind
 * says what else init does. */
enum hold_kind {
	HOLD_RESTS,	/* nothing */
	HOLD_STAYS,	/* it does not end with the supervisor, but when its socket is closed */
	HOLD_UNDO,	/* it undoes what threads and processes have done since the last cell: they
			 * end, and the state is as it was at the end of that cell */
};
void repl_hold(struct repl *repl, enum hold_kind kind);
int repl_on_held(struct repl *repl, const struct msg_held *held);

/* Can the session outlive this process once it is at rest? */
bool repl_may_stay(const struct repl *repl);

/* Is the session at rest, so that it can outlive this process now? */
bool repl_is_still(const struct repl *repl);

/* Bytes of an adopted session that no controller counts, because they were allocated before the
 * controllers were enabled again. */
uint64_t repl_uncounted(struct repl *repl);

/* ---- repl_cell.c ---- */

/* Runs a cell whose job was taken out of the list. 0; or -errno: what it needs could not be made,
 * and nothing has changed. */
int repl_start_cell(struct repl *repl, struct execution *execution);

/* Members of struct repl_stage. */
int repl_send_cell(struct repl *repl, const struct msg *msg, int fd);
bool repl_stop_cell(struct repl *repl, bool interrupt, bool where);

/* Take messages of init: CELL_READY, CELL_ENDED, and before CELL_ENDED the reports of files. 0 or
 * -EBADMSG. */
int repl_on_cell_ready(struct repl *repl, const struct msg_cell_ready *ready);
int repl_on_cell_ended(struct repl *repl, const struct msg_cell_ended *ended);
int repl_on_left(struct repl *repl, struct frame *frame);

/* Takes LISTENER, whose socket init has made for the cell. 0 or -EBADMSG. */
int repl_on_listener(struct repl *repl, struct frame *frame);

/* Closes the cell's socket. */
void repl_close_channel(struct repl *repl);

#endif
