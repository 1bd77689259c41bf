/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: runs of tools that continue after their call was answered.
 *
 * A tool with the argument "background" passes its call to background_start and answers with the
 * job's handle. The tool "job" (tools/job/job.c) follows the job. A job belongs to its tenant;
 * other tenants cannot use its handle. While a job runs, its newest output is kept; after its end
 * its answer is kept for a time. The bounds are [mcp] jobs_per_tenant, job_seconds and job_bytes.
 * The usual limits of a run apply to the run of a job, too.
 */
#ifndef TOOLS_JOB_BACKGROUND_H
#define TOOLS_JOB_BACKGROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <jansson.h>

#include "base/why.h"
#include "mcp/catalog.h"
#include "mcp/tool.h"

enum job_state {
	JOB_RUNNING,
	JOB_DONE,		/* it ended with an answer that is no error */
	JOB_FAILED,		/* it ended with an error, or with a failure of the protocol */
	JOB_CANCELLED,
};

struct job;

/* Is the argument given and true? The tool refuses a value that is not a boolean. */
bool background_wanted(const json_t *arguments);

/* The arguments for a run that is a job from its beginning; for the caller to release. */
json_t *background_arguments(const struct tool_host *host, const json_t *arguments);

/* Starts the tool with the arguments, except "background". 0 and *handle_r, borrowed until the next
 * turn of the loop; 1: the tool has answered host at once, and there is no job; -EBUSY with why_r:
 * the tenant has too many jobs. */
int background_start(const struct tool_host *host, const struct tool *tool,
		     const json_t *arguments, const char **handle_r, struct why *why_r);

/* Makes a job of a run that has begun as a call, and that waits for a person: mcp/catalog.h. */
adopt_run background_adopt;

/* The tenant's job with this handle; NULL: there is none. Valid until the next turn of the loop. */
struct job *background_find(const struct tenant *tenant, const char *handle);

/* The run of a job, for the tool that has started it; NULL: it has ended. */
struct tool_run *background_run(const struct job *job);

/* Stops a job, if it runs. */
void background_cancel(struct job *job);

/* ---- looking ---- */

struct job_view {
	const char *handle, *tool;
	enum job_state state;
	const char *state_name;
	uint64_t elapsed_ms;			/* the duration of its run so far */
	double most_seconds;			/* it may run so long; 0: as its call might */
	uint64_t kept_seconds;			/* how much longer a job that has ended is kept */
	uint64_t written;			/* bytes of output so far, both streams */
	uint64_t oldest;			/* offset of the first kept byte */
	uint64_t passed;			/* the first bytes of output that were passed on */
	char waits[TOOL_WAITS_MAX];		/* what it waits for, for people; "": for nothing */
	const struct tool_answer *answer;	/* NULL: it runs, or see failure */
	const struct tool_failure *failure;	/* of the protocol; NULL: none */
};

void background_view(const struct job *job, struct job_view *view_r);

/* The tenant's job after this one, oldest first; after NULL: the first one. NULL: no more. */
struct job *background_next(const struct tenant *tenant, const struct job *after);

/* To be called when output was passed on: len bytes from offset. */
void background_passed(struct job *job, uint64_t offset, size_t len);

/* To be called when the answer of a job was fetched: the job may now be dropped to make room. */
void background_seen(struct job *job);

/* Copies at most size bytes of output, beginning at offset, which is between oldest and written.
 * The copy ends between characters, unless no more output will follow. Returns the number of bytes.
 */
size_t background_output(const struct job *job, uint64_t offset, char *to, size_t size);

/* A watch of a job, embedded in the object that waits. on_news may be called from within any
 * function, and must not use the job: it has to look for it again in the next turn of the loop. */
struct job_watch {
	void (*on_news)(struct job_watch *watch);
	struct job *job;			/* set by the job, like the link; NULL: none */
	LIST_ENTRY(job_watch) link;
};

void background_watch(struct job *job, struct job_watch *watch);
void background_unwatch(struct job_watch *watch);	/* does nothing if it does not watch */

/* The numbers of running jobs and of kept answers; tenant NULL: of all tenants. */
void background_count(const struct tenant *tenant, unsigned int *running_r,
		      unsigned int *kept_r);

/* Cancels and frees all jobs, before the engine is freed. */
void background_forget(void);

#endif
