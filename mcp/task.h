/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks: runs that outlive the request that has started them, in the modern era. A task belongs to
 * a tenant, and has an id that cannot be guessed. A task and its result are kept for a limited
 * time, which is counted from the creation of the task.
 */
#ifndef MCP_TASK_H
#define MCP_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include <jansson.h>

struct jsonout;
struct mcp;
struct mcp_run;
struct mcp_task;
struct mcp_tasks;
struct revision;
struct tenant;

struct mcp_tasks *mcp_tasks_new(struct mcp *mcp);
void mcp_tasks_free(struct mcp_tasks *tasks);	/* cancels all; NULL is fine */

/* Makes a task of the run, holds the run, and sets its task. status: a text for people,
 * copied; NULL: none. 0, or -EBUSY: the tenant has too many tasks. */
int mcp_task_new(struct mcp_run *run, const char *status);

/* The task with this id. NULL: there is none, or it belongs to another tenant. */
struct mcp_task *mcp_task_find(struct mcp_tasks *tasks, const struct tenant *tenant,
			       const char *id);

const char *mcp_task_id(const struct mcp_task *task);
void mcp_task_set_status(struct mcp_task *task, const char *status);	/* NULL: none */

/* Writes the result of the request that the task was made for. */
void mcp_task_write_created(const struct mcp_task *task, const struct revision *revision,
			    struct jsonout *out);

/* Writes the members of a task in its current state, with its questions, its result or its error.
 */
void mcp_task_write(const struct mcp_task *task, const struct revision *revision,
		    struct jsonout *out);

/* Notes that the client has seen the task. If the task has ended, it is now dropped before others.
 */
void mcp_task_seen(struct mcp_task *task);

/* Takes the inputResponses of a client: an object; members that fit no open question are ignored.
 */
void mcp_task_update(struct mcp_task *task, const json_t *responses);

/* Cancels the task. Does nothing if it has ended. */
void mcp_task_cancel(struct mcp_task *task);

/* A watch of a task, embedded in another object. on_change is called at each change. gone: the task
 * is being dropped, and the watch has ended. mcp_task_unwatch ends a watch, too. */
struct mcp_task_watch {
	void (*on_change)(struct mcp_task_watch *watch, const struct mcp_task *task, bool gone);
	struct mcp_task *task;		/* set by the task; NULL: it watches none */
	LIST_ENTRY(mcp_task_watch) link;
};

void mcp_task_watch(struct mcp_task *task, struct mcp_task_watch *watch);
void mcp_task_unwatch(struct mcp_task_watch *watch);

#endif
