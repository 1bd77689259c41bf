/* Runs in: the supervisor.   Owns: nothing. The prompts of scripts, from PROMPT to the answer.
 * The time in which a person thinks does not count against the script's wall clock, up to a
 * bound.
 * Reads:   PROMPT from a script's process, hostile: an honest worker sends no more than it may,
 * one at a time, and numbers them. */
#include "engine/execution_parts.h"

#include <errno.h>

#include "base/clock.h"
#include "engine/engine_parts.h"
#include "engine/observer.h"
#include "engine/worker.h"

static uint64_t
smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The part of the waiting time that does not count. */
static uint64_t
excused_us(const struct execution *e, uint64_t now_us)
{
	uint64_t waited = e->waited_us;

	if (e->prompt_us != 0 && now_us > e->prompt_us)
		waited += now_us - e->prompt_us;
	return smaller(waited, (uint64_t)e->prompt_ms * 1000);
}

uint64_t
execution_wall_us(const struct execution *e)
{
	uint64_t now_us = e->end_us != 0 ? e->end_us : clock_us();
	uint64_t excused = excused_us(e, now_us);

	return now_us - e->start_us > excused ? now_us - e->start_us - excused : 0;
}

uint64_t
execution_patience_ms(const struct execution *e)
{
	if (e->prompt_us == 0)
		return 0;
	return e->prompt_ms - excused_us(e, clock_us()) / 1000;
}

int
execution_on_prompt(struct execution *e, const struct frame *frame)
{
	const struct msg_prompt *prompt = &frame->msg.prompt;

	if (prompt->id != e->serial || e->prompt_us != 0 ||
	    prompt->number != e->prompt + 1 || prompt->number > e->prompts_max)
		return -EBADMSG;
	e->prompt = prompt->number;
	e->prompt_us = clock_us();
	if (e->stopping != GOES_ON || e->watcher.on_prompt == NULL)
		execution_answer_prompt(e, NULL, 0);
	else
		e->watcher.on_prompt(e->watcher.arg, prompt->number, prompt->text.at,
				       prompt->text.len);
	return 0;
}

void
execution_answer_prompt(struct execution *e, const char *line, size_t len)
{
	struct msg msg = { .type = MSG_ANSWER, .answer.number = e->prompt };

	if (e->state != EXECUTION_RUNNING || e->prompt_us == 0)
		return;
	e->waited_us += clock_us() - e->prompt_us;
	e->prompt_us = 0;
	msg.answer.has_line = line != NULL;
	msg.answer.line = (struct msg_str){ .at = line, .len = len };
	/* A failed send means that the process has ended; its end is reported elsewhere. */
	if (e->repl != NULL)
		(void)e->repl->stage->send(e->repl, &msg);
	else
		(void)worker_send(e->worker, &msg, -1);
	execution_look_at_clocks(e);
}

void
engine_tell_input(const struct engine *engine, enum engine_input what)
{
	const struct engine_observer *observer = engine->options.observer;

	if (observer != NULL && observer->on_input != NULL)
		observer->on_input(observer->arg, what);
}
