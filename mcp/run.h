/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a tool, a read or a prompt, which may outlive the request that started it: as
 * a task, while its client looks for answers to its questions, or because it must not be
 * run twice. Those who hold it keep it alive; without holders it is cancelled. Those who
 * want to hear of it join it as audience, which is holding too.
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
struct mcp_run;
struct mcp_task;

/* Members that are NULL are of no interest. */
struct mcp_audience_type {
	void (*on_output)(struct mcp_audience *audience, enum stream stream,
			  const char *bytes, size_t len);
	void (*on_progress)(struct mcp_audience *audience,
			    const struct tool_progress *progress);
	void (*on_log)(struct mcp_audience *audience, const struct tool_log *log);
	/* The run has open questions. Of several audiences the youngest is asked. */
	void (*on_ask)(struct mcp_audience *audience);
	/* The run has become a task; of those only who can take one. */
	void (*on_task)(struct mcp_audience *audience, struct mcp_task *task);
	/* Its end: one of the two is not NULL. The audience has left already. */
	void (*on_end)(struct mcp_audience *audience, const struct tool_answer *answer,
		       const struct tool_failure *failure);
};

/* Embedded in the object that listens. */
struct mcp_audience {
	const struct mcp_audience_type *type;
	unsigned int abilities;		/* enum client_ability, of the client behind it */
	struct mcp_run *run;		/* the run's own, as is the link; NULL: has not joined */
	LIST_ENTRY(mcp_audience) link;
};

/* A run that has not started, with one holder. The tenant is held meanwhile. */
struct mcp_run *mcp_run_new(struct mcp *mcp, struct tenant *tenant, const struct tool *tool,
			    enum mcp_method method);

void mcp_run_hold(struct mcp_run *run);

/* reason: of the cancellation, if this was the last one. */
void mcp_run_release(struct mcp_run *run, enum cancel_reason reason);

/* The audience hears of it from now on; its abilities count for questions from now on. */
void mcp_run_join(struct mcp_run *run, struct mcp_audience *audience);

/* Fine when it has not joined. */
void mcp_run_leave(struct mcp_audience *audience, enum cancel_reason reason);

/* Its script may call these tools of its client; before the start. They are held. */
void mcp_run_set_client_tools(struct mcp_run *run, struct client_tools *tools);

/* arguments: an object, borrowed for now. on_end may come from within. */
void mcp_run_start(struct mcp_run *run, const json_t *arguments, bool wants_output);

/* Keeps what it ends with for mcp_run_outcome; before the end. */
void mcp_run_keep(struct mcp_run *run);
bool mcp_run_is_kept(const struct mcp_run *run);

/* Has it asked before anything was done, so that the call can as well be made again? */
bool mcp_run_asks_first(const struct mcp_run *run);

/* Does it wait for its client's consent? Then it has not started. */
bool mcp_run_asks_consent(const struct mcp_run *run);

/* Answers that came with the request before anything was asked: an object, copied; others
 * are ignored. They count for the first ask. */
void mcp_run_set_early(struct mcp_run *run, const json_t *responses);

/* As if the tool had called on_task. */
int mcp_run_become_task(struct mcp_run *run, const char *status);

/* What its script uses now. False: none runs. */
bool mcp_run_uses(const struct mcp_run *run, struct execution_now *now_r);

bool mcp_run_is_over(const struct mcp_run *run);

/* Of a run that is over and was kept: one of the two is not NULL. They live as long as the
 * run. bytes_r: about what they take; NULL: not wanted. */
void mcp_run_outcome(const struct mcp_run *run, const struct tool_answer **answer_r,
		     const struct tool_failure **failure_r, size_t *bytes_r);

unsigned int mcp_run_abilities(const struct mcp_run *run);	/* of its youngest audience */
struct mcp *mcp_run_mcp(const struct mcp_run *run);
struct tenant *mcp_run_tenant(const struct mcp_run *run);
const struct tool *mcp_run_tool(const struct mcp_run *run);
enum mcp_method mcp_run_method(const struct mcp_run *run);

/* The task that it has become; NULL: none. Set by tasks alone. */
struct mcp_task *mcp_run_task(const struct mcp_run *run);
void mcp_run_set_task(struct mcp_run *run, struct mcp_task *task);

/* How many of its audiences have a client behind them. */
size_t mcp_run_askers(const struct mcp_run *run);

LIST_HEAD(mcp_runs, mcp_run);

/* Cancels and frees all that are left, held or not: at the end of the process. */
void mcp_runs_free(struct mcp_runs *runs);

/* ---- its open questions ---- */

/* The questions of the open ask; *n_r is 0 when there is none. */
const struct mcp_question *mcp_run_questions(const struct mcp_run *run, size_t *n_r);

/* Those that are not answered, as an inputRequests object. */
void mcp_run_write_questions(const struct mcp_run *run, const struct revision *revision,
			     struct jsonout *out);

/* How many of them are not answered. */
size_t mcp_run_unanswered(const struct mcp_run *run);

/* result: what the client sent in reply, of any shape. False: it is no reply to this
 * question, which stays open. The tool hears of it once all are answered. */
bool mcp_run_reply(struct mcp_run *run, size_t i, const json_t *result);

/* Its questions wait outside of any audience; else they are asked again, of another one,
 * when the one that was asked leaves, or given up. */
void mcp_run_set_parked(struct mcp_run *run, bool parked);

/* No answer will come: the open questions, or just one, count as cancelled by the user. */
void mcp_run_give_up(struct mcp_run *run);
void mcp_run_give_up_one(struct mcp_run *run, size_t i);

#endif
