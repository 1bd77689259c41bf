/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks: runs that outlive the request that started them, in the modern era. Each belongs to
 * a tenant, is named by something unguessable, and is kept for a time after its beginning,
 * with what it ended with.
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

/* A task of the run, which it holds; mcp_run_set_task() tells the run. status: a text
 * for people, copied; NULL: none. 0, or -EBUSY: the tenant has too many. */
int mcp_task_new(struct mcp_run *run, const char *status);

/* NULL: there is none of this id, or it is another tenant's. */
struct mcp_task *mcp_task_find(struct mcp_tasks *tasks, const struct tenant *tenant,
			       const char *id);

const char *mcp_task_id(const struct mcp_task *task);
void mcp_task_set_status(struct mcp_task *task, const char *status);	/* NULL: none */

/* The result of the request that it was made for. */
void mcp_task_write_created(const struct mcp_task *task, const struct revision *revision,
			    struct jsonout *out);

/* The members of a task as it is now, with its questions, its result or its error. */
void mcp_task_write(const struct mcp_task *task, const struct revision *revision,
		    struct jsonout *out);

/* Its client was sent that: one that is over may now be forgotten before others. */
void mcp_task_seen(struct mcp_task *task);

/* inputResponses of a client: an object; what fits no open question is ignored. */
void mcp_task_update(struct mcp_task *task, const json_t *responses);

/* Nothing happens to one that is over. */
void mcp_task_cancel(struct mcp_task *task);

/* A watcher: told of each change, and (gone) that it is forgotten: then the watch has
 * ended. Embedded; ended by mcp_task_unwatch. */
struct mcp_task_watch {
	void (*on_change)(struct mcp_task_watch *watch, const struct mcp_task *task, bool gone);
	struct mcp_task *task;		/* the task's own; NULL: watches none */
	LIST_ENTRY(mcp_task_watch) link;
};

void mcp_task_watch(struct mcp_task *task, struct mcp_task_watch *watch);
void mcp_task_unwatch(struct mcp_task_watch *watch);

#endif
