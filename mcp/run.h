/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a tool, a read or a prompt. A run may outlive the request that has started it: because
 * it is a task, because it waits for answers to its questions, or because its call has a key
 * (mcp/repeat.h). A run exists as long as it has holders; without one it is cancelled. An object
 * that wants the events of a run joins it as an audience. An audience is a holder, too.
 */
#ifndef MCP_RUN_H
#define MCP_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include <jansson.h>

#include "mcp/question.h"
#include "mcp/revision.h"
#include "mcp/tool.h"

struct client_tools;
struct mcp;
struct mcp_audience;
struct mcp_outcome;
struct mcp_run;
struct mcp_task;
struct permission;

/* Members may be NULL. */
struct mcp_audience_type {
	void (*on_output)(struct mcp_audience *audience, enum stream stream,
			  const char *bytes, size_t len);
	void (*on_progress)(struct mcp_audience *audience,
			    const struct tool_progress *progress);
	void (*on_log)(struct mcp_audience *audience, const struct tool_log *log);
	/* The run has open questions. If there are several audiences, only the youngest one is
	 * called. */
	void (*on_ask)(struct mcp_audience *audience);
	/* The question with this key is not open any more: its tool has withdrawn it. */
	void (*on_withdraw)(struct mcp_audience *audience, const char *key);
	/* The run has become a task; called only if the audience can take one. */
	void (*on_task)(struct mcp_audience *audience, struct mcp_task *task);
	/* The run has ended. One of answer and failure is not NULL. The audience has left already.
	 */
	void (*on_end)(struct mcp_audience *audience, const struct tool_answer *answer,
		       const struct tool_failure *failure);
};

/* Embedded in the object that listens. */
struct mcp_audience {
	const struct mcp_audience_type *type;
	unsigned int abilities;		/* enum client_ability, of the client behind it */
	bool text_alone;		/* it has no use for structured content */
	struct mcp_run *run;		/* set by the run, like the link; NULL: has not joined */
	LIST_ENTRY(mcp_audience) link;
};

/* Read by all that know the run; only the files of mcp/run_parts.h write it, except for the members
 * that name another writer. */
struct mcp_run {
	LIST_ENTRY(mcp_run) link;
	struct mcp *mcp;
	struct tenant *tenant;
	const struct tool *tool;
	enum mcp_method method;
	size_t bytes;			/* of its request */
	struct tool_run *tool_run;	/* NULL: not started, or over */
	unsigned int holders;		/* written by each holder */
	unsigned int depth;		/* of calls into the tool and from it */
	unsigned int abilities;		/* of its youngest audience */
	enum cancel_reason reason;	/* for its end, when it has no holder any more */
	bool is_over, keeps;
	bool parked;			/* written by mcp/parking.c. The questions of a parked run
					 * wait without an audience. If a run is not parked and the
					 * audience that was asked leaves, another one is asked, or
					 * the questions are given up */
	LIST_HEAD(, mcp_audience) audience;	/* the youngest first */
	struct mcp_task *task;		/* written by mcp/task.c; NULL: none */
	struct mcp_outcome *outcome;	/* NULL: not over, or not kept */
	struct mcp_ask ask;
	bool ask_is_new;		/* at least one question was not sent to a client yet */
	struct mcp_audience *asked;	/* the audience that was asked; NULL: none, or it left */
	json_t *early;			/* answers that came before a question; NULL: none */
	const struct config *config;	/* held since it started; NULL: not started */
	struct permission *permission;	/* the permission that it waits for; NULL: none */
	struct client_tools *client_tools;	/* held; NULL: none. Written before
						 * mcp_run_start */
	struct mcp_audience *job;	/* the job that it has become; NULL: none */
	const char *job_handle;		/* borrowed from the job */
	char *waits;			/* what the job waits for; NULL: see the tool */
	bool stays;			/* it is not to become a job */
	struct event *soon;
	struct event *long_now;		/* the time when it becomes a task; NULL: it does not */
};

/* Bytes of the requests of a tenant's runs that are not over. A run with an idempotency key, a task
 * and one that waits for answers may outlive their client. */
#define RUNS_BYTES_MAX (256 * 1024 * 1024)
#define RUN_LONG 65536		/* bytes; shorter requests are not added up */

/* May the tenant have one more run, whose request has so many bytes? */
bool mcp_run_has_room(struct tenant *tenant, size_t bytes);

/* Makes a run that has not started, with one holder. The run holds the tenant. bytes: of its
 * request. */
struct mcp_run *mcp_run_new(struct mcp *mcp, struct tenant *tenant, const struct tool *tool,
			    enum mcp_method method, size_t bytes);

/* Releases one holder. reason: of the cancellation, if this was the last holder. */
void mcp_run_release(struct mcp_run *run, enum cancel_reason reason);

/* From now on the audience gets the events of the run, and the abilities of this audience decide
 * which questions the run may ask. */
void mcp_run_join(struct mcp_run *run, struct mcp_audience *audience);

/* Ends what mcp_run_join has begun. reason: as for mcp_run_release. Does nothing if the audience
 * has not joined. */
void mcp_run_leave(struct mcp_audience *audience, enum cancel_reason reason);

/* Starts the tool, or first asks for a person's permission. arguments: an object, borrowed for this
 * call. on_end may be called from within. */
void mcp_run_start(struct mcp_run *run, const json_t *arguments, bool wants_output);

/* Makes the run keep its result (mcp_outcome_read). To be called before it ends. */
void mcp_run_keep(struct mcp_run *run);

/* Has the run asked its question before it did anything, so that the call can simply be made again?
 */
bool mcp_run_asks_first(const struct mcp_run *run);

/* Does the run wait for the consent of the client's user? If so, the tool has not started. */
bool mcp_run_asks_consent(const struct mcp_run *run);

/* Sets answers that came with the request, before any question: an object, copied; other values are
 * ignored. They are used for the first questions. */
void mcp_run_set_early(struct mcp_run *run, const json_t *responses);

/* Makes the run a task, as if the tool had called on_task. The result is as for on_task. */
int mcp_run_become_task(struct mcp_run *run, const char *status);

/* Makes the run a job, as if the tool had called on_job. The result is as for on_job. */
int mcp_run_become_job(struct mcp_run *run, const char *waits);

/* Answers the calls of a run that has become a job, which goes on. False: it is no job. */
bool mcp_run_answer_job(struct mcp_run *run);

/* The resources that the script of the run uses now. False: no script runs. */
bool mcp_run_uses(const struct mcp_run *run, struct execution_now *now_r);

/* What the run waits for, as in struct tool. False: for nothing. */
bool mcp_run_waits(const struct mcp_run *run, char *text_r, size_t size);

/* The number of its audiences whose client can be asked questions. */
size_t mcp_run_askers(const struct mcp_run *run);

struct mcp_runs;

/* Cancels and frees all remaining runs, even if they are held: at the end of the process. */
void mcp_runs_free(struct mcp_runs *runs);

/* ---- its open questions ---- */

/* The array of questions, in which some places may be free. *n_r 0: there is no question. */
struct mcp_question *mcp_run_questions(struct mcp_run *run, size_t *n_r);

/* Writes the questions that are not answered, as an inputRequests object. From now on they count as
 * sent. */
void mcp_run_write_questions(struct mcp_run *run, const struct revision *revision,
			     struct jsonout *out);

/* How many questions are not answered. */
size_t mcp_run_unanswered(const struct mcp_run *run);

/* Takes a reply to a question. result: the client's value, of any shape. False: it is not a valid
 * reply, and the question stays open; or there is no such question. */
bool mcp_run_reply(struct mcp_run *run, const char *key, const json_t *result);

/* Takes all members of an inputResponses object, of any shape, as replies. */
void mcp_run_take_responses(struct mcp_run *run, const json_t *responses);

/* Give up the open questions, or one of them: they count as cancelled by the user. why: as of
 * mcp_question_give_up. */
void mcp_run_give_up(struct mcp_run *run);
void mcp_run_give_up_one(struct mcp_run *run, const char *key, const char *why);

#endif
