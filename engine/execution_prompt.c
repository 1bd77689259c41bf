/* Runs in: the supervisor.   Owns: nothing. What a script asks, until it has its answer. That
 * time is a person's: up to a bound it does not count against the script's wall clock.
 * Reads: QUESTION from a script's process, hostile: our own worker asks no more than it may, one
 * at a time, and numbers them. */
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

/* How long it has waited, as far as that does not count. */
static uint64_t
excused_us(const struct execution *e, uint64_t now_us)
{
	uint64_t waited = e->waited_us;

	if (e->question_us != 0 && now_us > e->question_us)
		waited += now_us - e->question_us;
	return smaller(waited, (uint64_t)e->question_ms * 1000);
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
	if (e->question_us == 0)
		return 0;
	return e->question_ms - excused_us(e, clock_us()) / 1000;
}

int
execution_on_question(struct execution *e, const struct frame *frame)
{
	const struct msg_question *question = &frame->msg.question;

	if (question->id != e->serial || e->question_us != 0 ||
	    question->number != e->question + 1 || question->number > e->questions_max)
		return -EBADMSG;
	e->question = question->number;
	e->question_us = clock_us();
	if (e->stopping != GOES_ON || e->watcher.on_question == NULL)
		execution_answer_question(e, NULL, 0);
	else
		e->watcher.on_question(e->watcher.arg, question->number, question->prompt.at,
				       question->prompt.len);
	return 0;
}

void
execution_answer_question(struct execution *e, const char *line, size_t len)
{
	struct msg msg = { .type = MSG_ANSWER, .answer.number = e->question };

	if (e->state != EXECUTION_RUNNING || e->question_us == 0)
		return;
	e->waited_us += clock_us() - e->question_us;
	e->question_us = 0;
	msg.answer.has_line = line != NULL;
	msg.answer.line = (struct msg_str){ .at = line, .len = len };
	/* An error: it is gone, and its end tells. */
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
