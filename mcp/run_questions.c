/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * A run's questions and their addressees. Replies reach the tool from the loop, never from
 * within one of its own calls.
 * Reads:   replies of clients, in any shape. */
#include "mcp/run_parts.h"

#include <assert.h>

#include "base/jsonout.h"
#include "base/xalloc.h"
#include "mcp/question.h"

/* The youngest audience that can be asked all of it. */
static struct mcp_audience *
whom_to_ask(struct mcp_run *run)
{
	unsigned int needs = mcp_ask_needs(&run->ask);
	struct mcp_audience *audience;

	LIST_FOREACH(audience, &run->audience, link)
		if (audience->type->on_ask && (audience->abilities & needs) == needs)
			return audience;
	return NULL;
}

static void
give_replies(struct mcp_run *run)
{
	struct tool_reply reply[QUESTIONS_MAX];
	struct mcp_ask ask = run->ask;

	run->ask = (struct mcp_ask){ .n = 0 };
	for (size_t i = 0; i < ask.n; i++)
		reply[i] = (struct tool_reply){ .key = ask.question[i].key,
						.action = ask.question[i].action,
						.content = ask.question[i].content };
	run_enter(run);
	if (run->permission)
		run_take_permission(run, &reply[0]);
	else
		run->tool->reply(run->tool_run, reply, ask.n, ask.state);
	run_leave(run);
	mcp_ask_clear(&ask);
}

static void
take_early(struct mcp_run *run)
{
	json_t *early = run->early;

	run->early = NULL;
	for (size_t i = 0; early && i < run->ask.n; i++)
		/* A call has no result before it was made. */
		if (run->ask.question[i].kind != QUESTION_TOOL)
			(void)mcp_run_reply(run, i, json_object_get(early,
								    run->ask.question[i].key));
	json_decref(early);
}

void
run_go_on_asking(struct mcp_run *run)
{
	struct mcp_audience *audience;

	if (run->is_over || run->ask.n == 0)
		return;
	if (mcp_run_unanswered(run) == 0) {
		give_replies(run);
		return;
	}
	if (!run->ask_is_new)
		return;
	run->ask_is_new = false;
	/* An answer from before the question does not count if a person must have seen the
	 * question. */
	if (!run->permission)
		take_early(run);
	if (mcp_run_unanswered(run) == 0)
		return;			/* the loop calls again for the replies */
	audience = whom_to_ask(run);
	run->asked = audience;
	if (audience)
		audience->type->on_ask(audience);
	else
		mcp_run_give_up(run);
}

const struct mcp_question *
mcp_run_questions(const struct mcp_run *run, size_t *n_r)
{
	*n_r = run->ask.n;
	return run->ask.question;
}

void
mcp_run_write_questions(const struct mcp_run *run, const struct revision *revision,
			struct jsonout *out)
{
	jsonout_open(out, '{');
	for (size_t i = 0; i < run->ask.n; i++) {
		const struct mcp_question *question = &run->ask.question[i];

		if (question->answered)
			continue;
		jsonout_key(out, question->key);
		jsonout_open(out, '{');
		mcp_question_write(question, revision, out);
		jsonout_close(out, '}');
	}
	jsonout_close(out, '}');
}

size_t
mcp_run_unanswered(const struct mcp_run *run)
{
	size_t n = 0;

	for (size_t i = 0; i < run->ask.n; i++)
		n += !run->ask.question[i].answered;
	return n;
}

bool
mcp_run_reply(struct mcp_run *run, size_t i, const json_t *result)
{
	assert(i < run->ask.n);
	if (!mcp_question_answer(&run->ask.question[i], result))
		return false;
	if (mcp_run_unanswered(run) == 0)
		run_wake(run);
	return true;
}

void
mcp_run_give_up_one(struct mcp_run *run, size_t i)
{
	struct mcp_question *question = &run->ask.question[i];

	if (i >= run->ask.n || question->answered)
		return;
	question->answered = true;
	question->action = REPLY_CANCEL;
	if (mcp_run_unanswered(run) == 0)
		run_wake(run);
}

void
mcp_run_give_up(struct mcp_run *run)
{
	for (size_t i = 0; i < run->ask.n; i++)
		mcp_run_give_up_one(run, i);
}

bool
mcp_run_asks_consent(const struct mcp_run *run)
{
	return run->permission && run->ask.n > 0;
}

bool
mcp_run_asks_first(const struct mcp_run *run)
{
	return run->tool->asks_first || mcp_run_asks_consent(run);
}

void
mcp_run_set_early(struct mcp_run *run, const json_t *responses)
{
	if (json_is_object(responses) && run->tool->reply)
		run->early = xalloc_check(json_deep_copy(responses));
}

size_t
mcp_run_askers(const struct mcp_run *run)
{
	const struct mcp_audience *audience;
	size_t n = 0;

	LIST_FOREACH(audience, &run->audience, link)
		n += audience->type->on_ask != NULL;
	return n;
}
