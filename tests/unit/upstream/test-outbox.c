/* SPDX-License-Identifier: Apache-2.0 */
/* Results that the supervisor does not read: calls fail one by one, and the program goes on. */
#include "upstream/outbox.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#define CALLS 100
#define BODY (1 << 20)

static struct control control;
static int supervisor;

static void
on_frame(void *arg, struct frame *frame)
{
	(void)arg;
	(void)frame;
	fail();
}

static int
set_up(void **state)
{
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	supervisor = fcntl(pair[0], F_DUPFD_CLOEXEC, CONTROL_FD + 2);
	close(pair[0]);
	if (pair[1] != CONTROL_FD) {
		assert_int_equal(dup2(pair[1], CONTROL_FD), CONTROL_FD);
		close(pair[1]);
	}
	assert_int_equal(fcntl(supervisor, F_SETFL, O_NONBLOCK), 0);
	frame_reader_init(&control.reader, FROM_SUPERVISOR);
	frame_writer_init(&control.writer, OUTBOX_MAX);
	assert_int_equal(control_start(&control, event_base_new(), on_frame, NULL), 0);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	control_stop(&control);
	event_base_free(control.base);
	frame_writer_done(&control.writer);
	close(supervisor);
	close(CONTROL_FD);
	return 0;
}

static void
answer(uint64_t call, const char *body, size_t len)
{
	const struct msg msg = { .type = MSG_TOOLS_RESULT, .tools_result = {
		.call = call, .status = TOOL_RETURNED, .body = { body, len } } };

	assert_int_equal(outbox_send(&control, &msg), 0);
}

/* Reads a message as the supervisor does, while the loop writes. */
static void
read_one(struct frame_reader *reader, struct frame *frame)
{
	for (int r = 0; r != 1;) {
		event_base_loop(control.base, EVLOOP_NONBLOCK);
		r = frame_reader_read(reader, supervisor, frame);
		assert_true(r >= 0);
	}
}

static void
each_call_has_one_answer(void **state)
{
	char *body = malloc(BODY);
	struct frame_reader reader;
	struct frame last = { 0 };
	size_t whole = 0;

	(void)state;
	memset(body, 'x', BODY);
	assert_false(outbox_is_full(&control));
	for (uint64_t call = 1; call <= CALLS; call++)
		answer(call, body, BODY);
	assert_true(outbox_is_full(&control));
	frame_reader_init(&reader, FROM_TOOLS);
	for (uint64_t call = 1; call <= CALLS; call++) {
		struct frame frame = { 0 };
		const struct msg_tools_result *result = &frame.msg.tools_result;

		read_one(&reader, &frame);
		assert_int_equal(frame.msg.type, MSG_TOOLS_RESULT);
		assert_int_equal(result->call, call);
		if (result->status == TOOL_RETURNED) {
			assert_int_equal(result->body.len, BODY);
			assert_int_equal(++whole, call);
		} else {
			assert_int_equal(result->status, TOOL_FAILED);
			assert_memory_equal(result->body.at, "the results of other calls", 26);
		}
		frame_done(&frame);
	}
	assert_true(whole > 60 && whole < 66);
	/* What was read makes room. */
	assert_false(outbox_is_full(&control));
	answer(CALLS + 1, body, BODY);
	read_one(&reader, &last);
	assert_int_equal(last.msg.tools_result.status, TOOL_RETURNED);
	frame_done(&last);
	frame_reader_done(&reader);
	free(body);
}

static void
progress_is_dropped_and_sentences_come(void **state)
{
	char *body = malloc(BODY);
	const struct msg progress = { .type = MSG_TOOLS_PROGRESS, .tools_progress = {
		.call = 1, .text = msg_str("half") } };
	size_t before;

	(void)state;
	memset(body, 'x', BODY);
	assert_int_equal(outbox_send(&control, &progress), 0);
	for (uint64_t call = 1; control.writer.bytes <= OUTBOX_RESULTS_MAX; call++) {
		before = control.writer.bytes;
		answer(call, body, BODY);
		if (control.writer.bytes - before < BODY)
			answer(call, body, 64);
	}
	before = control.writer.bytes;
	assert_int_equal(outbox_send(&control, &progress), 0);
	assert_int_equal(control.writer.bytes, before);
	answer(CALLS, "short", 5);
	assert_true(control.writer.bytes > before);
	free(body);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_call_has_one_answer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(progress_is_dropped_and_sentences_come, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
