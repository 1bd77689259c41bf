/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: calls that wait for news of a job.
 * Reads:   handles of clients. A handle of another tenant is treated as unknown. */
#include "tools/shared/tools.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/jsonout.h"
#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "tools/job/background.h"
#include "tools/job/schema/job_input.h"
#include "tools/job/schema/job_output.h"
#include "tools/shared/argument_map.h"
#include "tools/shared/readable.h"
#include "tools/shared/resources.h"

#define JOB_WAIT_MAX 300		/* seconds */
#define JOB_WAIT_STANDARD 20
#define JOB_OUTPUT_MAX 65536		/* bytes of output in one answer */
#define NEWS_BYTES 1024			/* bytes of output that are looked at for its newest line */

enum action { ACTION_STATUS, ACTION_OUTPUT, ACTION_WAIT, ACTION_CANCEL, ACTION_LIST, ACTION_COUNT };

static const char *const action_names[ACTION_COUNT] = {
	[ACTION_STATUS] = "status", [ACTION_OUTPUT] = "output", [ACTION_WAIT] = "wait",
	[ACTION_CANCEL] = "cancel", [ACTION_LIST] = "list",
};

struct arguments {
	const char *id;
	enum action action;
	double wait_seconds;		/* < 0: not given */
	uint64_t offset;
};

struct tool_run {
	struct tool_host host;
	struct job_watch watch;
	struct event *timer;		/* at the end of the wait, or at once for news */
	char *id;
	enum action action;
	uint64_t offset, until_ms, shown;	/* shown: output up to there was progress */
};

/* ---- arguments ---- */

static int
read_action(const struct argument *a, const json_t *value, struct reading *in)
{
	const char *name = json_string_value(value);

	for (int i = 0; name && i < ACTION_COUNT; i++)
		if (strcmp(name, action_names[i]) == 0) {
			*ARGUMENT_MEMBER(enum action, a, in) = (enum action)i;
			return 0;
		}
	return why_say(in->why, -EINVAL, a->name,
		       "action must be one of status, output, wait, cancel, list");
}

static int
read_wait(const struct argument *a, const json_t *value, struct reading *in)
{
	return argument_number(a, value, a->most, ARGUMENT_MEMBER(double, a, in), in->why);
}

static int
read_offset(const struct argument *a, const json_t *value, struct reading *in)
{
	double number = json_number_value(value);

	if (!json_is_number(value) || number < 0 || number != floor(number) || number > 0x1p53)
		return why_say(in->why, -EINVAL, a->name, "offset must be a whole number from 0 on");
	*ARGUMENT_MEMBER(uint64_t, a, in) = (uint64_t)number;
	return 0;
}

static const struct argument map[] = {
	{ "id", argument_string, .at = offsetof(struct arguments, id) },
	{ "action", read_action, .at = offsetof(struct arguments, action) },
	{ "wait_seconds", read_wait, .at = offsetof(struct arguments, wait_seconds),
	  .most = JOB_WAIT_MAX },
	{ "offset", read_offset, .at = offsetof(struct arguments, offset) },
};

static int
job_read_arguments(const json_t *json, struct arguments *to, struct why *why_r)
{
	struct reading in = { job_tool.name, .to = to, .why = why_r };

	if (argument_map_read(map, 4, json, &in) < 0)
		return -EINVAL;
	if (to->action == ACTION_COUNT)
		to->action = to->id ? ACTION_STATUS : ACTION_LIST;
	if (!to->id && to->action != ACTION_LIST)
		return why_say(why_r, -EINVAL, "id", "id is required: the handle of a job; action "
			       "list needs none");
	return 0;
}

/* ---- answers ---- */

/* The content of one answer. */
struct look {
	struct job_view view;
	bool has_output;
	bool is_rest;		/* the output is what was not passed on before the answer */
	char *output;
	size_t output_len;
	uint64_t offset, missed;
	const struct tool_answer *answer;	/* included too; NULL: not now */
};

static void
write_view(struct jsonout *out, const struct job_view *view)
{
	jsonout_member_text(out, "job", view->handle);
	jsonout_member_text(out, "tool", view->tool);
	jsonout_member_text(out, "state", view->state_name);
	if (*view->waits)
		jsonout_member_text(out, "waits", view->waits);
	jsonout_member_uint(out, "elapsed_ms", view->elapsed_ms);
	jsonout_member_known(out, "kept_seconds", view->state != JOB_RUNNING, view->kept_seconds);
	jsonout_member_uint(out, "output_bytes", view->written);
}

static void
write_look(struct jsonout *out, const struct look *look)
{
	jsonout_open(out, '{');
	write_view(out, &look->view);
	jsonout_key(out, "output");
	if (look->has_output) {
		jsonout_open(out, '{');
		jsonout_member_string(out, "text", look->output, look->output_len);
		jsonout_member_uint(out, "offset", look->offset);
		jsonout_member_uint(out, "next_offset", look->offset + look->output_len);
		jsonout_member_uint(out, "missed", look->missed);
		jsonout_close(out, '}');
	} else {
		jsonout_null(out);
	}
	jsonout_key(out, "answer");
	if (look->answer && look->answer->structured)
		jsonout_raw(out, look->answer->structured, look->answer->structured_len);
	else
		jsonout_null(out);
	jsonout_close(out, '}');
}

static void
say_output(FILE *to, const struct look *look)
{
	const struct readable text = { .text = look->output, .len = look->output_len,
				       .folds = true };
	size_t len = 0;
	own_mem char *said = readable_make(&text, 0, NULL, &len);

	fwrite(said, 1, len, to);
	if (len > 0 && said[len - 1] != '\n')
		fputc('\n', to);
}

/* The answer, without the output that was passed on before. */
static void
say_answer(FILE *to, const struct look *look)
{
	const struct tool_answer *answer = look->answer;
	size_t at = answer->output_at, end = at + answer->output_len;

	if (!look->is_rest) {
		fwrite(answer->text, 1, answer->text_len, to);
		return;
	}
	fwrite(answer->text, 1, at, to);
	say_output(to, look);
	fwrite(answer->text + end, 1, answer->text_len - end, to);
}

static void
say_line(FILE *to, const struct job_view *view)
{
	if (*view->waits)
		fprintf(to, "(it %s)\n", view->waits);
	fprintf(to, "[job %s: %s, %llu ms, %llu bytes of output", view->handle,
		view->state_name, (unsigned long long)view->elapsed_ms,
		(unsigned long long)view->written);
}

static void
say_look(FILE *to, const struct look *look)
{
	const struct job_view *view = &look->view;

	if (look->missed)
		fprintf(to, "(%llu bytes before this are not kept any more)\n",
			(unsigned long long)look->missed);
	if (look->answer)
		say_answer(to, look);
	else
		say_output(to, look);
	if (view->failure)
		fprintf(to, "%s\n", view->failure->text);
	say_line(to, view);
	if (look->has_output)
		fprintf(to, ", next offset %llu",
			(unsigned long long)(look->offset + look->output_len));
	fputs("]\n", to);
}

/* Lists the jobs of the tenant. */
static void
write_jobs(const struct tool_host *host, FILE *to, struct jsonout *out)
{
	struct job *job = NULL;
	struct job_view view;

	jsonout_open(out, '{');
	jsonout_member_open(out, "jobs", '[');
	while ((job = background_next(host->tenant, job))) {
		background_view(job, &view);
		jsonout_open(out, '{');
		write_view(out, &view);
		jsonout_close(out, '}');
		say_line(to, &view);
		fprintf(to, ", %s]\n", view.tool);
	}
	jsonout_close(out, ']');
	jsonout_close(out, '}');
	if (!background_next(host->tenant, NULL))
		fputs("There are no jobs.\n", to);
}

/* look NULL: a list of all jobs. */
static void
job_give(const struct tool_host *host, const struct look *look)
{
	struct tool_writer w;

	tool_write(&w, host);
	if (look) {
		say_look(w.text, look);
		if (w.for_programs)
			write_look(&w.structured, look);
	} else {
		write_jobs(host, w.text, &w.structured);
	}
	if (look && look->answer) {
		w.answer.content = look->answer->content;
		w.answer.n_content = look->answer->n_content;
		w.answer.is_error = look->answer->is_error;
	}
	tool_give(&w);
}

/* ---- looking ---- */

static void
job_read_output(const struct job *job, uint64_t offset, struct look *look)
{
	const struct job_view *view = &look->view;

	look->has_output = true;
	look->output = xrealloc(look->output, JOB_OUTPUT_MAX);
	look->offset = offset > view->written ? view->written : offset;
	if (look->offset < view->oldest) {
		look->missed = view->oldest - look->offset;
		look->offset = view->oldest;
	}
	look->output_len = background_output(job, look->offset, look->output,
					     JOB_OUTPUT_MAX);
}

/* Includes the answer, and in place of its output the part that was not passed on yet, if a part
 * was and the rest is still there. */
static void
read_answer(struct job *job, struct look *look)
{
	const struct job_view *view = &look->view;

	look->answer = view->answer;
	background_seen(job);
	if (!view->answer || view->passed == 0 || view->passed < view->oldest ||
	    view->written - view->passed > JOB_OUTPUT_MAX)
		return;
	job_read_output(job, view->passed, look);
	look->has_output = false;
	look->is_rest = true;
	background_passed(job, look->offset, look->output_len);
}

/* Has what the call waits for happened? Output is collected until an answer is full of it. */
static bool
is_due(const struct job_view *view, enum action action, uint64_t offset)
{
	return view->state != JOB_RUNNING ||
	       (action == ACTION_OUTPUT &&
		(offset < view->oldest || view->written >= offset + JOB_OUTPUT_MAX));
}

/* Answers the call if it is due, if there is no such job, or with at_once in any case. False: the
 * call has to wait. */
static bool
answer_now(const struct tool_host *host, const char *id, enum action action,
	   uint64_t offset, bool at_once)
{
	struct job *job = background_find(host->tenant, id);
	struct look look = { .has_output = false };

	if (!job) {
		tool_refuse(host, "there is no such job: its time is over, or the service was restarted, which "
			    "ends all jobs");
		return true;
	}
	background_view(job, &look.view);
	if (!at_once && !is_due(&look.view, action, offset))
		return false;
	if (action == ACTION_OUTPUT)
		job_read_output(job, offset, &look);
	if (action == ACTION_OUTPUT)
		background_passed(job, look.offset, look.output_len);
	if (action == ACTION_WAIT && look.view.state != JOB_RUNNING)
		read_answer(job, &look);
	job_give(host, &look);
	free(look.output);
	return true;
}

/* ---- the run ---- */

static uint64_t
job_left_ms(const struct tool_run *run)
{
	uint64_t now = clock_ms();

	return run->until_ms > now ? run->until_ms - now : 0;
}

static void
wake_in(struct tool_run *run, uint64_t ms)
{
	const struct timeval wait = { .tv_sec = (time_t)(ms / 1000),
				      .tv_usec = (suseconds_t)(ms % 1000 * 1000) };

	evtimer_add(run->timer, &wait);
}

static void
job_free_run(struct tool_run *run)
{
	background_unwatch(&run->watch);
	event_free(run->timer);
	free(run->id);
	free(run);
}

static void
on_news(struct job_watch *watch)
{
	wake_in((struct tool_run *)((char *)watch - offsetof(struct tool_run, watch)), 0);
}

/* The newest output of the job is the progress of the call that waits for it. */
static void
show_news(struct tool_run *run)
{
	const struct job *job = background_find(run->host.tenant, run->id);
	char news[NEWS_BYTES];
	struct job_view view;
	uint64_t from;

	if (!job || !run->host.on_output)
		return;
	background_view(job, &view);
	from = view.written > run->shown + NEWS_BYTES ? view.written - NEWS_BYTES : run->shown;
	if (from < view.oldest)
		from = view.oldest;
	run->host.on_output(run->host.arg, STREAM_STDOUT, news,
			    background_output(job, from, news, NEWS_BYTES));
	run->shown = view.written;
}

/* There is news, or the time is over. */
static void
job_on_timer(evutil_socket_t, short, void *arg)
{
	struct tool_run *run = arg;
	uint64_t left = job_left_ms(run);

	show_news(run);
	if (answer_now(&run->host, run->id, run->action, run->offset, left == 0))
		job_free_run(run);
	else
		wake_in(run, left);
}

static struct tool_run *
wait_for_news(const struct tool_host *host, const struct arguments *arguments,
	      double seconds)
{
	struct tool_run *run = xcalloc(1, sizeof(*run));
	struct job_view view;

	run->host = *host;
	run->id = xstrdup(arguments->id);
	run->action = arguments->action;
	run->offset = arguments->offset;
	run->until_ms = clock_ms() + (uint64_t)(seconds * 1000);
	run->watch.on_news = on_news;
	run->timer = xalloc_check(evtimer_new(host->base, job_on_timer, run));
	background_watch(background_find(host->tenant, run->id), &run->watch);
	background_view(run->watch.job, &view);
	run->shown = view.written;
	wake_in(run, job_left_ms(run));
	return run;
}

static struct tool_run *
job_start(const struct tool_host *host, const json_t *json)
{
	struct arguments arguments = { .action = ACTION_COUNT, .wait_seconds = -1 };
	struct why why = { .field = "" };
	double seconds;
	struct job *job;

	if (job_read_arguments(json, &arguments, &why) < 0) {
		tool_refuse(host, why.text);
		return NULL;
	}
	if (arguments.action == ACTION_LIST) {
		job_give(host, NULL);
		return NULL;
	}
	job = background_find(host->tenant, arguments.id);
	if (job && arguments.action == ACTION_CANCEL)
		background_cancel(job);
	seconds = arguments.wait_seconds >= 0 ? arguments.wait_seconds
		: arguments.action == ACTION_WAIT ? JOB_WAIT_STANDARD : 0;
	if (arguments.action == ACTION_STATUS || arguments.action == ACTION_CANCEL)
		seconds = 0;
	if (answer_now(host, arguments.id, arguments.action, arguments.offset, seconds <= 0))
		return NULL;
	return wait_for_news(host, &arguments, seconds);
}

static void
job_cancel(struct tool_run *run, enum cancel_reason)
{
	job_free_run(run);
}

const struct tool job_tool = {
	.name = "job",
	.view = VIEW_URI,
	.says = {
		.title = "Follow a background job",
		.icon = ICON_JOB,
		.hint = "What takes minutes is started with background: true and followed by job.",
		.description =
			"Follow a call that is a job: one with background: true, or that waits for an "
			"approval. status: does it still run; "
			"output: what it wrote from offset (next_offset of the last answer), "
			"collected for wait_seconds; wait: its answer, once it has ended; cancel: "
			"stops it; list, or no arguments: all jobs.",
		.input_schema = job_input_schema,
		.output_schema = job_output_schema,
	},
	.start = job_start,
	.cancel = job_cancel,
};
