/* SPDX-License-Identifier: Apache-2.0 */
/* See test_catalog.h. */
#include "tests/unit/mcp/test_catalog.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "mcp/catalog.h"

#define FORM "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"," \
	"\"maxLength\":5}},\"required\":[\"name\"]}"

struct tool_run {
	struct tool_run *next;
	struct tool_host host;
	const char *tool;
	struct event *soon;
	char first[128];
};

static struct test_catalog_record record;
static struct tool_run *runs;

const struct test_catalog_record *
test_catalog_record(void)
{
	return &record;
}

void
test_catalog_reset(void)
{
	memset(&record, 0, sizeof(record));
}

static void
forget(struct tool_run *run)
{
	struct tool_run **link = &runs;

	while (*link != run)
		link = &(*link)->next;
	*link = run->next;
	if (run->soon)
		event_free(run->soon);
	free(run);
	record.alive--;
}

static void
say(struct tool_run *run, const char *text, bool is_error)
{
	struct tool_host host = run->host;
	struct tool_answer answer = { .text = text, .text_len = strlen(text),
				      .is_error = is_error };

	forget(run);
	host.on_answer(host.arg, &answer);
}

static void
fail_with(struct tool_run *run, const struct tool_failure *failure)
{
	struct tool_host host = run->host;

	forget(run);
	host.on_fail(host.arg, failure);
}

void
test_catalog_finish(void)
{
	while (runs)
		say(runs, "finished", false);
}

static struct tool_run *
make(const struct tool_host *host, const char *tool)
{
	struct tool_run *run = calloc(1, sizeof(*run));

	run->host = *host;
	run->tool = tool;
	run->next = runs;
	runs = run;
	record.started++;
	record.alive++;
	return run;
}

static void
cancel(struct tool_run *run, enum cancel_reason reason)
{
	(void)reason;
	record.cancelled++;
	forget(run);
}

static void
describe_as(const char *name, enum tool_task task, struct tool_description *description_r)
{
	*description_r = (struct tool_description){
		.name = name,
		.description = strdup("for tests"),
		.input_schema = strdup("{\"type\":\"object\"}"),
		.task = task,
	};
}

/* ---- questions ---- */

static int
ask_name(struct tool_run *run, const char *key, const char *state)
{
	const struct tool_question question = { .key = key, .message = "Who?",
						.schema = FORM };

	return run->host.on_ask(run->host.arg, &question, 1, state);
}

static struct tool_run *
start_ask(const struct tool_host *host, const char *name)
{
	struct tool_run *run = make(host, name);

	if (ask_name(run, "name", NULL) == 0)
		return run;
	if (strcmp(name, "insist") == 0)
		fail_with(run, &(struct tool_failure){ .kind = FAIL_CLIENT_LACKS,
						       .lacks = CLIENT_ELICITS });
	else
		say(run, "refused", true);
	return NULL;
}

static struct tool_run *
start_ask2(const struct tool_host *host)
{
	struct tool_run *run = make(host, "ask2");
	const struct tool_question question[] = {
		{ .key = "a", .message = "Who?", .schema = FORM },
		{ .key = "b", .kind = QUESTION_ROOTS },
	};

	if (host->on_ask(host->arg, question, 2, "s1") == 0)
		return run;
	say(run, "refused", true);
	return NULL;
}

static const char *
name_in(const struct tool_reply *reply)
{
	return json_string_value(json_object_get(reply->content, "name"));
}

static void calls_reply(struct tool_run *run, const struct tool_reply *said, size_t n);

static void
reply(struct tool_run *run, const struct tool_reply *reply, size_t n, const char *state)
{
	char text[256];

	if (strcmp(run->tool, "calls") == 0) {
		calls_reply(run, reply, n);
		return;
	}
	if (strcmp(run->tool, "ask2") == 0 && n == 2) {
		snprintf(run->first, sizeof(run->first), "%s %zu %s", name_in(&reply[0]),
			 json_array_size(json_object_get(reply[1].content, "roots")), state);
		ask_name(run, "more", "s2");
		return;
	}
	snprintf(text, sizeof(text), "%s%shello %s%s%s", run->first, *run->first ? " " : "",
		 reply->action == REPLY_ACCEPT ? name_in(reply)
		 : reply->action == REPLY_DECLINE ? "declined" : "cancelled",
		 state ? " " : "", state ? state : "");
	say(run, text, false);
}

/* ---- calls of the client's tools ---- */

static int
ask_call(struct tool_run *run, const char *key)
{
	const struct tool_question question = { .key = key, .kind = QUESTION_TOOL, .most = 100,
						.params = "{\"name\":\"t\"}" };

	return run->host.on_ask(run->host.arg, &question, 1, NULL);
}

static struct tool_run *
start_calls(const struct tool_host *host)
{
	struct tool_run *run = make(host, "calls");
	char key[8];

	for (int i = 1; i <= QUESTIONS_MAX; i++) {
		snprintf(key, sizeof(key), "c%d", i);
		if (ask_call(run, key) < 0) {
			say(run, "refused", true);
			return NULL;
		}
	}
	/* There is no place left, nor may a form be asked beside them. */
	if (ask_call(run, "more") == -EINVAL && ask_name(run, "form", NULL) == -EINVAL)
		return run;
	say(run, "taken", true);
	return NULL;
}

/* When the first call has its result, the others are taken back but the third, and one more is
 * made, whose result ends the run. */
static void
calls_reply(struct tool_run *run, const struct tool_reply *said, size_t n)
{
	char *at = run->first, key[8], text[512];
	int told = 0;

	for (size_t i = 0; i < n; i++) {
		json_int_t status = json_integer_value(json_object_get(said[i].content, "status"));

		at = run->first + strlen(run->first);
		snprintf(at, sizeof(run->first) - (size_t)(at - run->first), "%s=%d ", said[i].key,
			 said[i].action == REPLY_ACCEPT ? (int)status : -1);
		if (strcmp(said[i].key, "last") == 0) {
			snprintf(text, sizeof(text), "%s%s", run->first,
				 json_string_value(json_object_get(said[i].content, "body")));
			say(run, text, false);
			return;
		}
		if (strcmp(said[i].key, "c1") != 0)
			continue;
		for (int j = 1; j <= QUESTIONS_MAX; j++) {
			snprintf(key, sizeof(key), "c%d", j);
			if (j != 3)
				told += run->host.on_withdraw(run->host.arg, key);
		}
		snprintf(at + strlen(at), sizeof(run->first) - strlen(run->first), "told=%d ", told);
		ask_call(run, "last");
	}
}

/* ---- the others ---- */

static struct tool_run *
start_content(const struct tool_host *host)
{
	static const struct content blocks[] = {
		{ .kind = CONTENT_TEXT, .text = "t", .text_len = 1 },
		{ .kind = CONTENT_IMAGE, .data = "\x89PNG", .data_len = 4, .mime_type = "image/png" },
		{ .kind = CONTENT_AUDIO, .data = "R", .data_len = 1, .mime_type = "audio/wav" },
		{ .kind = CONTENT_RESOURCE, .uri = "test://r", .mime_type = "text/plain",
		  .text = "x", .text_len = 1 },
		{ .kind = CONTENT_RESOURCE, .uri = "test://b", .data = "ab", .data_len = 2 },
		{ .kind = CONTENT_LINK, .uri = "test://l", .name = "l", .size = 7 },
	};
	const struct tool_answer answer = { .content = blocks, .n_content = 6 };

	host->on_answer(host->arg, &answer);
	return NULL;
}

static struct tool_run *
start_talk(const struct tool_host *host)
{
	static const double steps[] = { 0, 50, 50, 100 };
	const struct tool_log quiet = { LEVEL_DEBUG, NULL, "1" };
	const struct tool_log loud = { LEVEL_ERROR, "test", "{\"a\":1}" };
	const struct tool_answer answer = { .text = "done", .text_len = 4 };

	for (size_t i = 0; i < 4; i++)
		host->on_progress(host->arg, &(struct tool_progress){
			.progress = steps[i], .total = 100, .message = "at" });
	host->on_log(host->arg, &quiet);
	host->on_log(host->arg, &loud);
	host->on_answer(host->arg, &answer);
	return NULL;
}

static void
on_soon(evutil_socket_t fd, short what, void *arg)
{
	struct tool_run *run = arg;

	(void)fd;
	(void)what;
	say(run, "done", true);
}

static struct tool_run *
start_job(const struct tool_host *host)
{
	static const struct timeval now;
	struct tool_run *run = make(host, "job");

	run->soon = evtimer_new(host->base, on_soon, run);
	evtimer_add(run->soon, &now);
	return run;
}

#define TOOL(title, rule, ...)                                                           \
	static struct tool_run *title##_start(const struct tool_host *host,              \
					      const json_t *arguments)                   \
	{                                                                                \
		(void)arguments;                                                         \
		__VA_ARGS__;                                                             \
	}                                                                                \
	static void title##_describe(const struct config *config,                        \
				     struct tool_description *description_r)             \
	{                                                                                \
		(void)config;                                                            \
		describe_as(#title, rule, description_r);                                \
	}                                                                                \
	static const struct tool title##_tool = {                                        \
		.name = #title, .describe = title##_describe, .start = title##_start,    \
		.cancel = cancel, .reply = reply,                                        \
	}

TOOL(ask, TOOL_TASK_NEVER, return start_ask(host, "ask"));
TOOL(insist, TOOL_TASK_NEVER, return start_ask(host, "insist"));
TOOL(ask2, TOOL_TASK_NEVER, return start_ask2(host));
TOOL(calls, TOOL_TASK_NEVER, return start_calls(host));
TOOL(content, TOOL_TASK_NEVER, return start_content(host));
TOOL(talk, TOOL_TASK_NEVER, return start_talk(host));
TOOL(hang, TOOL_TASK_NEVER, return make(host, "hang"));
TOOL(job, TOOL_TASK_MUST, return start_job(host));
TOOL(job_ask, TOOL_TASK_MUST, return start_ask(host, "job_ask"));
TOOL(fail, TOOL_TASK_NEVER,
     fail_with(make(host, "fail"),
	       &(struct tool_failure){ .code = -1234, .text = "broken", .data = "[1]" });
     return NULL);

static const char *
once_key(const json_t *arguments)
{
	return json_string_value(json_object_get(arguments, "key"));
}

static struct tool_run *
once_start(const struct tool_host *host, const json_t *arguments)
{
	(void)arguments;
	return make(host, "once");
}

static void
once_describe(const struct config *config, struct tool_description *description_r)
{
	(void)config;
	describe_as("once", TOOL_TASK_MAY, description_r);
}

static const struct tool once_tool = {
	.name = "once", .describe = once_describe, .start = once_start, .cancel = cancel,
	.once = once_key,
};

/* ---- resources: test://000 to test://249, of which each tenant reads the even ones ---- */

static bool
next(struct tenant *tenant, const char *after, struct resource *resource_r)
{
	static char uri[32];

	(void)tenant;
	for (int i = 0; i < 250; i++) {
		snprintf(uri, sizeof(uri), "test://%03d", i);
		if (strcmp(uri, after) <= 0)
			continue;
		resource_r->uri = uri;
		resource_r->name = uri + 7;
		resource_r->title = "a title";
		resource_r->size = (uint64_t)i;
		return true;
	}
	return false;
}

static bool
next_template(struct tenant *tenant, const char *after, struct resource *template_r)
{
	(void)tenant;
	template_r->uri = "test://{n}";
	template_r->name = "n";
	return strcmp(after, template_r->uri) < 0;
}

static struct tool_run *
read_start(const struct tool_host *host, const json_t *arguments)
{
	const char *uri = json_string_value(json_object_get(arguments, "uri"));
	const struct content block = { .kind = CONTENT_RESOURCE, .uri = uri,
				       .mime_type = "text/plain", .text = "hi", .text_len = 2 };
	const struct tool_answer answer = { .content = &block, .n_content = 1 };

	if (strcmp(uri, "test://002") == 0)
		host->on_answer(host->arg, &answer);
	else
		host->on_fail(host->arg, &(struct tool_failure){ .kind = FAIL_NO_RESOURCE,
								 .text = uri });
	return NULL;
}

static const struct tool reader = { .name = "resources/read", .start = read_start,
				    .cancel = cancel };

static const struct resource_provider resources = {
	.next = next, .next_template = next_template, .read = &reader, .subscribes = true,
};

/* ---- a prompt, which asks ---- */

static struct tool_run *
get_start(const struct tool_host *host, const json_t *arguments)
{
	(void)arguments;
	return start_ask(host, "get");
}

static void
get_reply(struct tool_run *run, const struct tool_reply *said, size_t n, const char *state)
{
	struct tool_host host = run->host;
	char text[64];
	const struct content block = { .kind = CONTENT_TEXT, .text = text,
				       .text_len = (size_t)snprintf(text, sizeof(text), "I am %s",
								    name_in(said)),
				       .role = "assistant" };
	const struct tool_answer answer = { .text = "about", .text_len = 5, .content = &block,
					    .n_content = 1 };

	(void)n;
	(void)state;
	forget(run);
	host.on_answer(host.arg, &answer);
}

static const struct tool getter = { .name = "prompts/get", .start = get_start,
				    .cancel = cancel, .reply = get_reply };
static const struct prompt_argument prompt_arguments[] = { { "who", "whom", true } };
static const struct prompt prompts[] = { { "greet", "Greet", "greets", prompt_arguments, 1 } };
static const struct prompt_provider prompt_provider = { prompts, 1, &getter };

static bool
complete(struct tenant *tenant, const struct completion_request *request,
	 struct completion *completion_r)
{
	(void)tenant;
	if (!request->prompt || strcmp(request->prompt, "greet") != 0)
		return false;
	completion_r->value[completion_r->n++] = "world";
	completion_r->total = 1;
	return true;
}

const struct catalog test_catalog = {
	.tool = { &ask_tool, &insist_tool, &ask2_tool, &content_tool, &talk_tool, &fail_tool,
		  &hang_tool, &job_tool, &job_ask_tool, &once_tool, &calls_tool },
	.n_tools = 11,
	.resources = &resources,
	.prompts = &prompt_provider,
	.complete = complete,
	.logging = true,
};
