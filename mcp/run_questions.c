/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * The questions of a run, and the audiences that they are sent to. The tool gets replies from the
 * loop, never from within a function that it has called.
 * Reads:   replies of clients, in any shape. */
#include "mcp/run_parts.h"

#include "base/jsonout.h"
#include "base/xalloc.h"
#include "mcp/run.h"

/* The youngest audience that can be asked all open questions. */
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
give_replies(struct mcp_run *run, struct mcp_ask *taken)
{
	struct tool_reply reply[QUESTIONS_MAX];

	for (size_t i = 0; i < taken->n; i++)
		reply[i] = (struct tool_reply){ .key = taken->question[i].key,
						.action = taken->question[i].action,
						.content = taken->question[i].content };
	/* New questions are sent in a later turn of the loop. */
	if (run->ask_is_new)
		run_wake(run);
	run_enter(run);
	if (run->permission)
		run_take_permission(run, &reply[0]);
	else
		run->tool->reply(run->tool_run, reply, taken->n, taken->state);
	run_leave(run);
	mcp_ask_clear(taken);
}

void
run_go_on_asking(struct mcp_run *run)
{
	struct mcp_audience *audience;
	struct mcp_ask taken;

	if (run->is_over || run->ask.n == 0)
		return;
	if (mcp_ask_take(&run->ask, &taken)) {
		give_replies(run, &taken);
		return;
	}
	/* The questions of a parked run are sent to the client that takes it up. */
	if (!run->ask_is_new || run->parked)
		return;
	run->ask_is_new = false;
	/* An answer that came before the question does not count if a person must see the question
	 * first. */
	if (!run->permission) {
		json_auto_t *early = run->early;

		run->early = NULL;
		mcp_run_take_responses(run, early);
	}
	if (mcp_run_unanswered(run) == 0)
		return;			/* a later turn of the loop gives the replies */
	audience = whom_to_ask(run);
	run->asked = audience;
	if (audience)
		audience->type->on_ask(audience);
	else
		mcp_run_give_up(run);
}

void
run_ask_again(struct mcp_run *run)
{
	if (run->ask.n == 0)
		return;
	for (size_t i = 0; i < run->ask.n; i++)
		if (run->ask.question[i].state == QUESTION_TOLD)
			run->ask.question[i].state = QUESTION_NEW;
	run->ask_is_new = true;
	run_wake(run);
}

bool
run_withdraw(struct mcp_run *run, const char *key)
{
	struct mcp_question *question = mcp_ask_find(&run->ask, key);
	struct mcp_audience *asked = run->asked;
	bool told;

	if (!question)
		return false;
	told = question->state != QUESTION_NEW;
	mcp_ask_drop(&run->ask, question);
	if (asked && asked->type->on_withdraw)
		asked->type->on_withdraw(asked, key);
	return told;
}

struct mcp_question *
mcp_run_questions(struct mcp_run *run, size_t *n_r)
{
	*n_r = run->ask.n;
	return run->ask.question;
}

void
mcp_run_write_questions(struct mcp_run *run, const struct revision *revision,
			struct jsonout *out)
{
	jsonout_open(out, '{');
	for (size_t i = 0; i < run->ask.n; i++) {
		struct mcp_question *question = &run->ask.question[i];

		if (!mcp_question_is_open(question))
			continue;
		jsonout_member_open(out, question->key, '{');
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
		n += mcp_question_is_open(&run->ask.question[i]);
	return n;
}

bool
mcp_run_reply(struct mcp_run *run, const char *key, const json_t *result)
{
	struct mcp_question *question = mcp_ask_find(&run->ask, key);

	if (!question || !mcp_question_answer(question, result))
		return false;
	run_wake(run);
	return true;
}

void
mcp_run_take_responses(struct mcp_run *run, const json_t *responses)
{
	for (size_t i = 0; i < run->ask.n; i++) {
		const char *key = run->ask.question[i].key;

		(void)mcp_run_reply(run, key, json_object_get(responses, key));
	}
}

void
mcp_run_give_up_one(struct mcp_run *run, const char *key, const char *why)
{
	struct mcp_question *question = mcp_ask_find(&run->ask, key);

	if (!question || !mcp_question_is_open(question))
		return;
	mcp_question_give_up(question, why);
	run_wake(run);
}

void
mcp_run_give_up(struct mcp_run *run)
{
	for (size_t i = 0; i < run->ask.n; i++)
		mcp_run_give_up_one(run, run->ask.question[i].key, NULL);
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
