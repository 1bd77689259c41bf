/* SPDX-License-Identifier: Apache-2.0 */
/* Frames over real sockets: whole ones arrive with their own descriptors, a bad header
 * is refused before its body, and what waits to be sent is bounded. */
#include "proto/frame.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "no_memory.h"
#include "sample.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static int pair[2], before;
static struct frame_reader reader;	/* reads pair[1] */

/* ---- tests ---- */

static int
count_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static int
make_pair(void **state)
{
	(void)state;
	before = count_open();
	frame_reader_init(&reader, FROM_ZYGOTE);
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair);
}

static int
close_pair(void **state)
{
	(void)state;
	frame_reader_done(&reader);
	if (pair[0] >= 0)
		close(pair[0]);
	close(pair[1]);
	return count_open() == before ? 0 : -1;
}

static struct msg
spawned(uint64_t worker)
{
	return (struct msg){ .type = MSG_SPAWNED, .spawned = { .worker = worker, .pid = 2 } };
}

static int
open_null(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* ---- receiving ---- */

static void
fed_byte_by_byte_every_message_comes_whole(void **state)
{
	const unsigned int *types;
	size_t n;

	(void)state;
	types = sample_types(&n);
	for (size_t i = 0; i < n; i++) {
		const struct codec_shape *shape = codec_shape(types[i]);
		struct msg msg = { .type = types[i] };
		struct codec_buffer bytes = { 0 };
		struct frame frame = { 0 };
		size_t used;

		if (shape->fds_min > 0)
			continue;	/* memory carries no descriptors */
		sample_fill(shape, &msg.hello, SAMPLE_MIDDLE, true);
		assert_int_equal(frame_encode(&msg, 0, &bytes), 0);
		frame_reader_init(&reader, shape->from);
		for (size_t at = 0; at < bytes.len; at++) {
			int r = frame_reader_feed(&reader, bytes.at + at, 1, &used, &frame);

			assert_int_equal(used, 1);
			assert_int_equal(r, at == bytes.len - 1);
		}
		assert_int_equal(frame.msg.type, types[i]);
		assert_true(sample_equal(shape, &msg.hello, &frame.msg.hello));
		frame_done(&frame);
		codec_free(&msg);
		codec_buffer_done(&bytes);
	}
}

static void
feeding_stops_at_the_end_of_a_frame(void **state)
{
	struct msg msg = { .type = MSG_EXITED, .exited.status = 9 };
	struct codec_buffer bytes = { 0 };
	struct frame frame;
	size_t used, one;

	(void)state;
	frame_reader_init(&reader, FROM_WORKER);
	assert_int_equal(frame_encode(&msg, 0, &bytes), 0);
	one = bytes.len;
	msg.exited.status = 10;
	assert_int_equal(frame_encode(&msg, 0, &bytes), 0);
	assert_int_equal(frame_reader_feed(&reader, bytes.at, bytes.len, &used, &frame), 1);
	assert_int_equal(used, one);
	assert_int_equal(frame.msg.exited.status, 9);
	frame_done(&frame);
	assert_int_equal(frame_reader_feed(&reader, bytes.at + used, bytes.len - used, &used,
					   &frame), 1);
	assert_int_equal(frame.msg.exited.status, 10);
	frame_done(&frame);
	codec_buffer_done(&bytes);
}

#define LENGTH(n) (n) >> 24 & 255, (n) >> 16 & 255, (n) >> 8 & 255, (n) & 255
#define DONE_MAX (5 * VALUE_MAX + 65536)

static const struct header_case {
	const char *name;
	unsigned char header[FRAME_HEADER];
	enum msg_from from;
	int result;
} header_cases[] = {
	{ "plain", { PROTO_VERSION, MSG_DONE, LENGTH(100) }, FROM_WORKER, 0 },
	{ "at its cap", { PROTO_VERSION, MSG_DONE, LENGTH(DONE_MAX) }, FROM_WORKER, 0 },
	{ "above its cap", { PROTO_VERSION, MSG_DONE, LENGTH(DONE_MAX + 1) }, FROM_WORKER, -EBADMSG },
	{ "another's cap", { PROTO_VERSION, MSG_READY, LENGTH(1025) }, FROM_WORKER, -EBADMSG },
	{ "2 GiB", { PROTO_VERSION, MSG_DONE, 0x80, 0, 0, 0 }, FROM_WORKER, -EBADMSG },
	{ "4 GiB less 1", { PROTO_VERSION, MSG_DONE, 255, 255, 255, 255 }, FROM_WORKER, -EBADMSG },
	{ "no body", { PROTO_VERSION, MSG_DONE, LENGTH(0) }, FROM_WORKER, -EBADMSG },
	{ "version 0", { 0, MSG_DONE, LENGTH(100) }, FROM_WORKER, -EBADMSG },
	{ "next version", { PROTO_VERSION + 1, MSG_DONE, LENGTH(100) }, FROM_WORKER, -EBADMSG },
	{ "type 0", { PROTO_VERSION, 0, LENGTH(100) }, FROM_WORKER, -EBADMSG },
	{ "type 255", { PROTO_VERSION, 255, LENGTH(100) }, FROM_WORKER, -EBADMSG },
	{ "zygote's, from a worker", { PROTO_VERSION, MSG_HELLO, LENGTH(100) }, FROM_WORKER, -EBADMSG },
	{ "supervisor's, from a worker", { PROTO_VERSION, MSG_RUN, LENGTH(100) }, FROM_WORKER, -EBADMSG },
	{ "worker's, from a zygote", { PROTO_VERSION, MSG_DONE, LENGTH(100) }, FROM_ZYGOTE, -EBADMSG },
	{ "a child's, from a worker", { PROTO_VERSION, MSG_PONG, LENGTH(8) }, FROM_WORKER, -EBADMSG },
	{ "a child's, from a zygote", { PROTO_VERSION, MSG_PONG, LENGTH(8) }, FROM_ZYGOTE, 0 },
	{ "without its fds", { PROTO_VERSION, MSG_SPAWNED, LENGTH(100) }, FROM_ZYGOTE, -EBADMSG },
};

static void
headers_are_judged_before_any_body(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(header_cases); i++) {
		const struct header_case *c = &header_cases[i];
		struct frame frame;
		size_t used;
		int r;

		frame_reader_init(&reader, c->from);
		assert_int_equal(frame_reader_feed(&reader, c->header, FRAME_HEADER - 1, &used,
						   &frame), 0);
		r = frame_reader_feed(&reader, c->header + FRAME_HEADER - 1, 1, &used, &frame);
		if (r != c->result)
			print_error("%s\n", c->name);
		assert_int_equal(r, c->result);
		/* after an error each call fails; and a false length allocates nothing */
		if (r < 0)
			assert_int_equal(frame_reader_feed(&reader, "x", 1, &used, &frame), r);
		else
			assert_int_equal(frame_reader_feed(&reader, "\x80", 1, &used, &frame), 0);
		assert_true(reader.body_size <= 4096);
		frame_reader_done(&reader);
	}
}

static void
a_bad_body_ends_the_peer(void **state)
{
	static const unsigned char bytes[] = { PROTO_VERSION, MSG_READY, LENGTH(1), 0x80 };
	struct frame frame;
	size_t used;

	(void)state;
	frame_reader_init(&reader, FROM_WORKER);
	assert_int_equal(frame_reader_feed(&reader, bytes, sizeof(bytes), &used, &frame),
			 -EBADMSG);
	assert_int_equal(frame_reader_feed(&reader, bytes, sizeof(bytes), &used, &frame),
			 -EBADMSG);
	assert_int_equal(used, 0);
}

static void
descriptors_stay_with_their_frame(void **state)
{
	struct msg hello = { .type = MSG_HELLO, .hello.build = msg_str("b") };
	struct frame frame;
	struct stat sent[3], got;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct msg msg = spawned((uint64_t)i + 1);
		int ends[2];

		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		assert_int_equal(fstat(ends[0], &sent[i]), 0);
		assert_int_equal(frame_send(pair[0], &hello, NULL, 0), 0);
		assert_int_equal(frame_send(pair[0], &msg, ends, 1), 0);
		close(ends[0]);
		close(ends[1]);
	}
	for (int i = 0; i < 3; i++) {
		int fd;

		assert_int_equal(frame_reader_read(&reader, pair[1], &frame), 1);
		assert_int_equal(frame.msg.type, MSG_HELLO);
		assert_int_equal(frame.fds.n, 0);
		assert_int_equal(frame_take_fd(&frame, 0), -1);
		frame_done(&frame);
		assert_int_equal(frame_reader_read(&reader, pair[1], &frame), 1);
		assert_int_equal(frame.msg.spawned.worker, i + 1);
		assert_int_equal(frame.fds.n, 1);
		fd = frame_take_fd(&frame, 0);
		frame_done(&frame);
		assert_int_equal(fstat(fd, &got), 0);
		assert_int_equal(got.st_ino, sent[i].st_ino);
		close(fd);
	}
	assert_int_equal(frame_reader_read(&reader, pair[1], &frame), 0);
}

/* Sends the bytes of a frame with any number of descriptors on byte number at. */
static void
send_raw(const struct msg *msg, size_t declared, size_t n, size_t at)
{
	struct codec_buffer bytes = { 0 };
	int fds[MSG_FDS_MAX] = { 0 };

	for (size_t i = 0; i < n; i++)
		fds[i] = pair[0];
	assert_int_equal(frame_encode(msg, declared, &bytes), 0);
	if (at > 0)
		assert_int_equal(fdpass_send(pair[0], bytes.at, at, NULL, 0, 0), at);
	assert_int_equal(fdpass_send(pair[0], bytes.at + at, bytes.len - at, fds, n, 0),
			 bytes.len - at);
	codec_buffer_done(&bytes);
}

static void
any_other_number_of_descriptors_is_refused(void **state)
{
	struct msg one = spawned(1), none = { .type = MSG_HELLO, .hello.build = msg_str("b") };
	struct frame frame;

	(void)state;
	for (size_t n = 0; n <= MSG_FDS_MAX; n++) {
		int open_before = count_open();

		for (int i = 0; i < 2; i++) {
			int r, right = i == 0 ? 1 : 0;

			frame_reader_init(&reader, FROM_ZYGOTE);
			send_raw(i == 0 ? &one : &none, (size_t)right, n, 0);
			r = frame_reader_read(&reader, pair[1], &frame);
			assert_int_equal(r, n == (size_t)right ? 1 : -EBADMSG);
			if (r == 1)
				frame_done(&frame);
			else	/* the rest of the frame is freed */
				while (recv(pair[1], &(char[64]){ 0 }, 64, 0) > 0)
					;
			assert_int_equal(count_open(), open_before);
		}
	}
}

static void
descriptors_after_the_first_byte_are_refused(void **state)
{
	static const size_t places[] = { 1, FRAME_HEADER, FRAME_HEADER + 3 };
	struct msg msg = { .type = MSG_HELLO, .hello.build = msg_str("build") };
	struct frame frame;

	(void)state;
	for (size_t i = 0; i < N(places); i++) {
		int open_before = count_open();

		frame_reader_init(&reader, FROM_ZYGOTE);
		send_raw(&msg, 0, 1, places[i]);
		assert_int_equal(frame_reader_read(&reader, pair[1], &frame), -EBADMSG);
		assert_int_equal(count_open(), open_before);
		while (recv(pair[1], &(char[64]){ 0 }, 64, 0) > 0)
			;
	}
}

static void
a_reader_takes_nothing_of_the_next_frame(void **state)
{
	struct frame_reader other;
	struct frame frame;
	struct msg msg = { .type = MSG_ZYGOTE_FAILED,
		.zygote_failed = { .what = msg_str("x"), .error = 1 } };

	(void)state;
	assert_int_equal(frame_send(pair[0], &msg, NULL, 0), 0);
	msg.zygote_failed.error = 2;
	assert_int_equal(frame_send(pair[0], &msg, NULL, 0), 0);
	assert_int_equal(frame_reader_read(&reader, pair[1], &frame), 1);
	frame_done(&frame);
	frame_reader_init(&other, FROM_ZYGOTE);
	assert_int_equal(frame_reader_read(&other, pair[1], &frame), 1);
	assert_int_equal(frame.msg.zygote_failed.error, 2);
	frame_done(&frame);
	frame_reader_done(&other);
}

static void
a_close_between_frames_and_within_one_differ(void **state)
{
	struct msg msg = { .type = MSG_HELLO, .hello.build = msg_str("build") };
	struct codec_buffer bytes = { 0 };
	struct frame frame;

	(void)state;
	assert_int_equal(frame_encode(&msg, 0, &bytes), 0);
	for (size_t len = 0; len < bytes.len; len++) {
		int ends[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
		frame_reader_init(&reader, FROM_ZYGOTE);
		assert_int_equal(send(ends[0], bytes.at, len, 0), len);
		close(ends[0]);
		assert_int_equal(frame_reader_read(&reader, ends[1], &frame),
				 len == 0 ? -EPIPE : -ECONNRESET);
		assert_int_equal(frame_reader_read(&reader, ends[1], &frame),
				 len == 0 ? -EPIPE : -ECONNRESET);
		assert_int_equal(frame_reader_broke_off(&reader), len > 0);
		close(ends[1]);
		frame_reader_done(&reader);
	}
	codec_buffer_done(&bytes);
}

static void
memory_follows_the_bytes_that_came(void **state)
{
	static const unsigned char header[] = { PROTO_VERSION, MSG_DONE, LENGTH(DONE_MAX) };
	static char bytes[100000];
	struct frame frame;

	(void)state;
	frame_reader_init(&reader, FROM_WORKER);
	assert_int_equal(send(pair[0], header, sizeof(header), 0), sizeof(header));
	assert_int_equal(frame_reader_read(&reader, pair[1], &frame), 0);
	assert_true(reader.body_size <= 4096);
	assert_int_equal(send(pair[0], bytes, sizeof(bytes), 0), sizeof(bytes));
	assert_int_equal(frame_reader_read(&reader, pair[1], &frame), 0);
	assert_int_equal(reader.body_len, sizeof(bytes));
	assert_true(reader.body_size <= 2 * sizeof(bytes) + 4096);
}

/* ---- sending ---- */

struct large {
	struct msg msg;
	int result;
};

static void *
send_large(void *arg)
{
	struct large *large = arg;

	large->result = frame_send(pair[0], &large->msg, &(int){ STDIN_FILENO }, 1);
	return NULL;
}

static void
the_largest_script_passes_a_blocking_socket(void **state)
{
	char *script = malloc(SCRIPT_MAX);
	struct large large = { .msg = { .type = MSG_RUN, .run = { .id = 7, .value_max = 4096,
		.has_stdin = true, .script = { script, SCRIPT_MAX } } } };
	struct frame frame;
	pthread_t thread;

	(void)state;
	assert_non_null(script);
	for (size_t i = 0; i < SCRIPT_MAX; i++)
		script[i] = (char)(i * 7);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fcntl(pair[i], F_SETFL, 0), 0);
	frame_reader_init(&reader, FROM_SUPERVISOR);
	assert_int_equal(pthread_create(&thread, NULL, send_large, &large), 0);
	assert_int_equal(frame_reader_read(&reader, pair[1], &frame), 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(large.result, 0);
	assert_int_equal(frame.msg.run.script.len, SCRIPT_MAX);
	assert_memory_equal(frame.msg.run.script.at, script, SCRIPT_MAX);
	assert_int_equal(frame.fds.n, 1);
	frame_done(&frame);
	free(script);
}

static void
a_wrong_message_is_not_sent(void **state)
{
	struct msg msg = spawned(0), right = spawned(1);
	int fds[2] = { pair[0], pair[0] };

	(void)state;
	assert_int_equal(frame_send(pair[0], &msg, fds, 1), -EINVAL);	/* worker 0 */
	assert_int_equal(frame_send(pair[0], &right, fds, 0), -EINVAL);
	assert_int_equal(frame_send(pair[0], &right, fds, 2), -EINVAL);
	assert_int_equal(recv(pair[1], &(char){ 0 }, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
}

static void
a_writer_sends_in_order_through_a_narrow_socket(void **state)
{
	char *script = malloc(300000);
	struct frame_writer writer;
	uint64_t got = 0;
	int size = 4096, r = 1, turns = 0, waited = 0;

	(void)state;
	assert_non_null(script);
	memset(script, 'x', 300000);
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	frame_reader_init(&reader, FROM_SUPERVISOR);
	frame_writer_init(&writer, FRAME_MAX);
	for (uint64_t id = 1; id <= 10; id++) {
		struct msg msg = { .type = MSG_RUN, .run = { .id = id, .value_max = 256,
			.has_stdin = true, .script = { script, 300000 } } };
		int fd = open_null();

		assert_int_equal(frame_writer_put(&writer, &msg, &fd, 1), 0);
	}
	assert_true(frame_writer_waits(&writer));
	while (got < 10 && turns++ < 1000000) {
		struct frame frame;

		if (r > 0)
			r = frame_writer_flush(&writer, pair[0]);
		assert_true(r >= 0);
		waited += r;
		while (frame_reader_read(&reader, pair[1], &frame) == 1) {
			assert_int_equal(frame.msg.run.id, ++got);
			assert_int_equal(frame.fds.n, 1);
			assert_int_equal(frame.msg.run.script.len, 300000);
			frame_done(&frame);
		}
	}
	assert_int_equal(got, 10);
	assert_true(waited > 10);	/* it did not fit in one go */
	assert_int_equal(r, 0);
	assert_false(frame_writer_waits(&writer));
	assert_int_equal(writer.bytes, 0);
	assert_int_equal(writer.fds, 0);
	frame_writer_done(&writer);
	free(script);
}

static void
a_writer_is_bounded_in_bytes(void **state)
{
	struct msg msg = { .type = MSG_READY, .ready.worker = 1 };
	struct codec_buffer bytes = { 0 };
	struct frame_writer writer;
	size_t charge;

	(void)state;
	assert_int_equal(frame_encode(&msg, 0, &bytes), 0);
	charge = bytes.len + FRAME_WRITER_OVERHEAD;
	codec_buffer_done(&bytes);
	frame_writer_init(&writer, 3 * charge);
	for (int i = 0; i < 3; i++)
		assert_int_equal(frame_writer_put(&writer, &msg, NULL, 0), 0);
	assert_int_equal(frame_writer_put(&writer, &msg, NULL, 0), -ENOBUFS);
	assert_int_equal(frame_writer_flush(&writer, pair[0]), 0);
	assert_int_equal(frame_writer_put(&writer, &msg, NULL, 0), 0);
	frame_writer_done(&writer);
	frame_writer_init(&writer, charge - 1);
	assert_int_equal(frame_writer_put(&writer, &msg, NULL, 0), -ENOBUFS);
	frame_writer_done(&writer);
}

static void
a_writer_is_bounded_in_descriptors_and_closes_them(void **state)
{
	struct msg msg = spawned(1);
	int open_before = count_open();
	struct frame_writer writer;

	(void)state;
	frame_writer_init(&writer, 1024 * 1024);
	for (int i = 0; i < FRAME_WRITER_FDS_MAX; i++)
		assert_int_equal(frame_writer_put(&writer, &msg, &(int){ open_null() }, 1), 0);
	assert_int_equal(count_open(), open_before + FRAME_WRITER_FDS_MAX);
	/* what is refused is closed */
	assert_int_equal(frame_writer_put(&writer, &msg, &(int){ open_null() }, 1), -ENOBUFS);
	msg.spawned.worker = 0;
	assert_int_equal(frame_writer_put(&writer, &msg, &(int){ open_null() }, 1), -EINVAL);
	assert_int_equal(count_open(), open_before + FRAME_WRITER_FDS_MAX);
	frame_writer_done(&writer);
	assert_int_equal(count_open(), open_before);
}

static void
a_gone_peer_is_told(void **state)
{
	struct msg msg = { .type = MSG_READY, .ready.worker = 1 };
	struct frame_writer writer;

	(void)state;
	assert_int_equal(shutdown(pair[1], SHUT_RD), 0);
	frame_writer_init(&writer, 4096);
	assert_int_equal(frame_writer_put(&writer, &msg, NULL, 0), 0);
	assert_int_equal(frame_writer_flush(&writer, pair[0]), -EPIPE);
	frame_writer_done(&writer);
	assert_int_equal(frame_send(pair[0], &msg, NULL, 0), -EPIPE);
}

/* Nothing is lost: a blocking end waits, and the other is told to call again. */
static void
transient_errors_pass(void **state)
{
	static const int errors[] = { ENOBUFS, ENOMEM };
	struct msg msg = { .type = MSG_ADOPT, .adopt.pid = 77 };
	struct frame_writer writer;
	struct frame frame = { 0 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(fcntl(pair[1], F_SETFL, 0), 0);
		failing_send = failing_receive = (struct failing){ 3, errors[i] };
		frame_reader_done(&reader);
		frame_reader_init(&reader, FROM_SUPERVISOR);
		assert_int_equal(frame_send(pair[0], &msg, NULL, 0), 0);
		assert_int_equal(frame_reader_read(&reader, pair[1], &frame), 1);
		assert_int_equal(frame.msg.adopt.pid, 77);
		frame_done(&frame);
		assert_int_equal(failing_send.times + failing_receive.times, 0);

		assert_int_equal(fcntl(pair[1], F_SETFL, O_NONBLOCK), 0);
		failing_send = failing_receive = (struct failing){ 1, errors[i] };
		assert_int_equal(frame_send_now(pair[0], &msg), -errors[i]);
		frame_writer_init(&writer, FRAME_MAX);
		assert_int_equal(frame_writer_put(&writer, &msg, NULL, 0), 0);
		failing_send.times = 1;
		assert_int_equal(frame_writer_flush(&writer, pair[0]), 1);
		assert_true(writer.starved);
		assert_int_equal(frame_writer_flush(&writer, pair[0]), 0);
		assert_false(writer.starved);
		assert_int_equal(frame_reader_read(&reader, pair[1], &frame), 0);
		assert_true(reader.starved);
		assert_int_equal(frame_reader_read(&reader, pair[1], &frame), 1);
		frame_done(&frame);
		assert_int_equal(frame_reader_read(&reader, pair[1], &frame), 0);
		assert_false(reader.starved);
		frame_writer_done(&writer);
	}
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_pair, close_pair)
	const struct CMUnitTest tests[] = {
		TEST(fed_byte_by_byte_every_message_comes_whole),
		TEST(feeding_stops_at_the_end_of_a_frame),
		TEST(headers_are_judged_before_any_body),
		TEST(a_bad_body_ends_the_peer),
		TEST(descriptors_stay_with_their_frame),
		TEST(any_other_number_of_descriptors_is_refused),
		TEST(descriptors_after_the_first_byte_are_refused),
		TEST(a_reader_takes_nothing_of_the_next_frame),
		TEST(a_close_between_frames_and_within_one_differ),
		TEST(memory_follows_the_bytes_that_came),
		TEST(the_largest_script_passes_a_blocking_socket),
		TEST(a_wrong_message_is_not_sent),
		TEST(a_writer_sends_in_order_through_a_narrow_socket),
		TEST(a_writer_is_bounded_in_bytes),
		TEST(a_writer_is_bounded_in_descriptors_and_closes_them),
		TEST(a_gone_peer_is_told),
		TEST(transient_errors_pass),
	};

	return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
