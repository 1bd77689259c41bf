/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: jobs, from their start until they are forgotten.
 * A running job is charged with the most output that may be kept of it, so that its output need not
 * be counted while it writes. An ended job is charged with the output that it has. */
#include "tools/job/background.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "base/clock.h"
#include "base/handle.h"
#include "base/kept.h"
#include "base/log.h"
#include "base/utf8.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/output.h"
#include "mcp/context.h"
#include "mcp/outcome.h"
#include "mcp/repeat.h"
#include "mcp/run.h"
#include "policy/config.h"

struct job {
	struct kept kept;			/* in use while it runs */
	char handle[HANDLE_MAX + 1];
	struct tenant *tenant;
	const struct config *config;		/* held: the configuration in force for its
						 * tenant */
	const struct tool *tool;
	struct tool_run *run;			/* NULL: not started, or ended, or an audience */
	struct mcp_audience audience;		/* of a run that has begun as a call */
	char *waits;				/* what it waits for; NULL: see the run */
	const struct tool_host *caller;		/* set while it starts */
	enum job_state state;
	uint64_t started_ms, ended_ms;
	double most_seconds;			/* it may run so long; 0: as its call might */
	struct evbuffer *output;		/* its newest output */
	uint64_t written, passed;
	size_t output_most;
	struct mcp_outcome *outcome;		/* NULL: none */
	LIST_HEAD(, job_watch) watches;
};

static void background_drop(struct kept *kept);

static struct kept_store jobs = KEPT_STORE(jobs, background_drop);

/* ---- news ---- */

static void
background_tell(struct job *job)
{
	struct job_watch *watch, *next;

	for (watch = LIST_FIRST(&job->watches); watch; watch = next) {
		next = LIST_NEXT(watch, link);
		watch->on_news(watch);
	}
}

void
background_watch(struct job *job, struct job_watch *watch)
{
	watch->job = job;
	LIST_INSERT_HEAD(&job->watches, watch, link);
}

void
background_unwatch(struct job_watch *watch)
{
	if (watch->job)
		LIST_REMOVE(watch, link);
	watch->job = NULL;
}

/* ---- life ---- */

/* No callback comes for it any more. */
static void
free_job(struct job *job)
{
	struct job_watch *watch;

	while ((watch = LIST_FIRST(&job->watches))) {
		background_unwatch(watch);
		watch->on_news(watch);
	}
	mcp_outcome_free(job->outcome);
	free(job->waits);
	evbuffer_free(job->output);
	tenant_release(job->tenant);
	config_free(job->config);
	free(job);
}

static void
background_stop(struct job *job, enum cancel_reason reason)
{
	struct mcp_run *begun = job->audience.run;
	struct tool_run *run = job->run;

	job->run = NULL;
	if (run)
		job->tool->cancel(run, reason);
	if (!begun)
		return;
	mcp_repeat_drop(begun->mcp->tables.repeats, begun);
	mcp_run_leave(&job->audience, reason);
}

static void
background_drop(struct kept *kept)
{
	struct job *job = (struct job *)kept;

	kept_remove(&job->kept);
	background_stop(job, CANCEL_SHUTDOWN);
	free_job(job);
}

void
background_count(const struct tenant *tenant, unsigned int *running_r, unsigned int *kept_r)
{
	kept_count(&jobs, tenant, running_r, kept_r);
}

void
background_forget(void)
{
	while (!TAILQ_EMPTY(&jobs.list))
		background_drop(TAILQ_FIRST(&jobs.list));
}

/* The charge of a job that has ended, in bytes. */
static size_t
charge_of(const struct job *job)
{
	const struct tool_failure *failure;
	const struct tool_answer *answer;
	size_t bytes = 0;

	if (job->outcome)
		mcp_outcome_read(job->outcome, &answer, &failure, &bytes);
	return bytes + evbuffer_get_length(job->output);
}

static const char *const state_names[] = {
	[JOB_RUNNING] = "running", [JOB_DONE] = "done", [JOB_FAILED] = "failed",
	[JOB_CANCELLED] = "cancelled",
};

static void
come_to_end(struct job *job, enum job_state state)
{
	struct kept *kept = &job->kept;

	job->run = NULL;
	job->state = state;
	job->ended_ms = clock_ms();
	kept->in_use = false;
	kept_charge(kept, charge_of(job));
	kept_expire(kept, job->config->mcp.job_seconds);
	log_line(LOG_INFO, "job-end", "tenant=%s tool=%s state=%s ms=%llu",
		 tenant_principal(job->tenant), job->tool->name, state_names[state],
		 (unsigned long long)(job->ended_ms - job->started_ms));
	kept_make_room(&jobs, job->tenant, kept, UINT32_MAX, job->config->mcp.job_bytes);
	background_tell(job);
}

/* ---- events of the run ---- */

static void
background_on_output(void *arg, enum stream, const char *bytes, size_t len)
{
	struct job *job = arg;
	size_t kept;

	job->written += len;
	if (len > job->output_most) {
		bytes += len - job->output_most;
		len = job->output_most;
	}
	xassert(evbuffer_add(job->output, bytes, len) == 0);
	kept = evbuffer_get_length(job->output);
	if (kept > job->output_most)
		evbuffer_drain(job->output, kept - job->output_most);
	background_tell(job);
}

static void
background_on_progress(void *, const struct tool_progress *)
{
}

static void
on_log(void *, const struct tool_log *)
{
}

static int
background_on_ask(void *, const struct tool_question *, size_t, const char *)
{
	return -EOPNOTSUPP;		/* no user can be asked */
}

static bool
background_on_withdraw(void *, const char *)
{
	return false;
}

static int
on_task(void *, const char *)
{
	return -EOPNOTSUPP;
}

static int
background_on_job(void *arg, const char *waits)
{
	struct job *job = arg;

	free(job->waits);
	job->waits = waits ? xstrdup(waits) : NULL;
	return 0;
}

static void
background_on_end(struct job *job, const struct tool_answer *answer,
		  const struct tool_failure *failure)
{
	const struct tool_host *caller = job->caller;

	if (caller) {
		job->caller = NULL;
		if (answer)
			caller->on_answer(caller->arg, answer);
		else
			caller->on_fail(caller->arg, failure);
		return;
	}
	job->outcome = mcp_outcome_new(answer, failure);
	come_to_end(job, answer && !answer->is_error ? JOB_DONE : JOB_FAILED);
}

static void
background_on_answer(void *arg, const struct tool_answer *answer)
{
	background_on_end(arg, answer, NULL);
}

static void
on_fail(void *arg, const struct tool_failure *failure)
{
	background_on_end(arg, NULL, failure);
}

/* ---- start ---- */

bool
background_wanted(const json_t *arguments)
{
	return json_is_true(json_object_get(arguments, BACKGROUND_ARGUMENT));
}

static struct job *
new_job(const struct tool_host *host, const struct tool *tool)
{
	struct job *job = xcalloc(1, sizeof(*job));

	handle_new('j', job->handle);
	job->tenant = host->tenant;
	tenant_hold(job->tenant);
	job->config = config_hold(host->config);
	job->tool = tool;
	job->started_ms = clock_ms();
	job->output = xalloc_check(evbuffer_new());
	job->output_most = host->config->limits.standard.output_bytes;
	job->kept.in_use = true;
	job->kept.charge = job->output_most;
	LIST_INIT(&job->watches);
	return job;
}

/* From now on the reports of the run go to the job. */
static void
take_host(struct job *job, struct tool_host *host)
{
	host->job = job->handle;
	host->client = 0;
	host->client_tools = NULL;
	host->on_output = background_on_output;
	host->on_progress = background_on_progress;
	host->on_log = on_log;
	host->on_ask = background_on_ask;
	host->on_withdraw = background_on_withdraw;
	host->on_task = on_task;
	host->on_job = background_on_job;
	host->wants_structured = NULL;
	host->on_answer = background_on_answer;
	host->on_fail = on_fail;
	host->arg = job;
}

json_t *
background_arguments(const struct tool_host *host, const json_t *arguments)
{
	json_t *own = xalloc_check(json_copy((json_t *)arguments));

	json_object_del(own, BACKGROUND_ARGUMENT);
	/* Nobody waits for it: it has the time that the operator allows, not that of a call. */
	if (!json_object_get(own, "timeout_seconds"))
		json_object_set_new(own, "timeout_seconds",
				    json_real(host->config->limits.cap.wall_ms / 1000.0));
	return own;
}

/* Starts the run without its caller. False: the caller has its answer already. */
static bool
start_run(struct job *job, const struct tool_host *host, const json_t *arguments)
{
	json_t *own = background_arguments(host, arguments);
	struct tool_host self = *host;

	take_host(job, &self);
	job->most_seconds = json_number_value(json_object_get(own, "timeout_seconds"));
	job->caller = host;
	job->run = job->tool->start(&self, own);
	json_decref(own);
	if (!job->caller)
		return false;
	job->caller = NULL;
	return true;
}

static int
background_make_room(const struct tool_host *host, struct why *why_r)
{
	const struct config *config = host->config;
	uint64_t own = config->limits.standard.output_bytes, most = config->mcp.job_bytes;

	if (config->mcp.jobs_per_tenant > 0 && own <= most &&
	    kept_make_room(&jobs, host->tenant, NULL, config->mcp.jobs_per_tenant - 1, most - own))
		return 0;
	return why_say(why_r, -EBUSY, BACKGROUND_ARGUMENT, "background: as many jobs run as may; wait "
		       "for one with the tool job, or cancel one");
}

/* ---- a run that has begun as a call ---- */

static struct job *
job_of(struct mcp_audience *audience)
{
	return (struct job *)((char *)audience - offsetof(struct job, audience));
}

static void
adopted_on_output(struct mcp_audience *audience, enum stream stream, const char *bytes, size_t len)
{
	background_on_output(job_of(audience), stream, bytes, len);
}

static void
adopted_on_end(struct mcp_audience *audience, const struct tool_answer *answer,
	       const struct tool_failure *failure)
{
	background_on_end(job_of(audience), answer, failure);
}

int
background_adopt(struct mcp_run *run, const struct tool_host *host, const struct tool *tool,
		 struct mcp_audience **audience_r, const char **handle_r)
{
	static const struct mcp_audience_type adopted = { .on_output = adopted_on_output,
							  .on_end = adopted_on_end };
	struct why why = { .field = "" };
	int r = background_make_room(host, &why);
	struct job *job;

	if (r < 0)
		return r;
	job = new_job(host, tool);
	job->audience.type = &adopted;
	mcp_run_join(run, &job->audience);
	kept_add(&jobs, &job->kept, job->tenant, host->base);
	*audience_r = &job->audience;
	*handle_r = job->handle;
	return 0;
}

int
background_start(const struct tool_host *host, const struct tool *tool,
		 const json_t *arguments, const char **handle_r, struct why *why_r)
{
	int r = background_make_room(host, why_r);
	struct job *job;

	if (r < 0)
		return r;
	job = new_job(host, tool);
	if (!start_run(job, host, arguments)) {
		free_job(job);
		return 1;
	}
	kept_add(&jobs, &job->kept, job->tenant, host->base);
	*handle_r = job->handle;
	return 0;
}

/* ---- functions for holders of the handle ---- */

struct job *
background_find(const struct tenant *tenant, const char *handle)
{
	struct kept *kept;

	KEPT_FOREACH(kept, &jobs, tenant)
		if (strcmp(((struct job *)kept)->handle, handle) == 0)
			return (struct job *)kept;
	return NULL;
}

struct job *
background_next(const struct tenant *tenant, const struct job *after)
{
	return (struct job *)(after ? TAILQ_NEXT(&after->kept, of_owner)
				    : kept_first(&jobs, tenant));
}

void
background_passed(struct job *job, uint64_t offset, size_t len)
{
	if (offset <= job->passed && offset + len > job->passed)
		job->passed = offset + len;
}

struct tool_run *
background_run(const struct job *job)
{
	return job->run;
}

void
background_cancel(struct job *job)
{
	if (job->state != JOB_RUNNING)
		return;
	background_stop(job, CANCEL_BY_CLIENT);
	come_to_end(job, JOB_CANCELLED);
}

void
background_view(const struct job *job, struct job_view *view_r)
{
	const uint64_t now = clock_ms(), keep_ms = job->config->mcp.job_seconds * 1000ULL;
	struct job_view view = {
		.handle = job->handle,
		.tool = job->tool->name,
		.state = job->state,
		.state_name = state_names[job->state],
		.elapsed_ms = now - job->started_ms,
		.most_seconds = job->most_seconds,
		.written = job->written,
		.oldest = job->written - evbuffer_get_length(job->output),
		.passed = job->passed,
	};

	if (job->state != JOB_RUNNING) {
		view.elapsed_ms = job->ended_ms - job->started_ms;
		if (now - job->ended_ms < keep_ms)
			view.kept_seconds = (keep_ms - (now - job->ended_ms)) / 1000;
	}
	if (job->outcome)
		mcp_outcome_read(job->outcome, &view.answer, &view.failure, NULL);
	*view_r = view;
	if (job->audience.run)
		(void)mcp_run_waits(job->audience.run, view_r->waits, sizeof(view_r->waits));
	else if ((!job->run || !job->tool->waits ||
		  !job->tool->waits(job->run, view_r->waits, sizeof(view_r->waits))) && job->waits)
		snprintf(view_r->waits, sizeof(view_r->waits), "%s", job->waits);
}

void
background_seen(struct job *job)
{
	job->kept.seen = job->state != JOB_RUNNING;
}

size_t
background_output(const struct job *job, uint64_t offset, char *to, size_t size)
{
	uint64_t oldest = job->written - evbuffer_get_length(job->output);
	bool more_to_come = job->state == JOB_RUNNING || job->written - offset > size;
	struct evbuffer_ptr at;
	ev_ssize_t n;

	if (offset == job->written ||
	    evbuffer_ptr_set(job->output, &at, (size_t)(offset - oldest),
			     EVBUFFER_PTR_SET) < 0)
		return 0;
	n = evbuffer_copyout_from(job->output, &at, to, size);
	if (n <= 0)
		return 0;
	return (size_t)n - (more_to_come
			    ? utf8_begun(to, (size_t)n) : 0);
}
