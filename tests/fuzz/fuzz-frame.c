/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of frames. Three bytes choose who the peer is, in which pieces the rest comes and how
 * many descriptors come with each piece. The version that a frame begins with stands for the
 * current one, so that what was found once is good for ever. Must hold: in pieces through a
 * socket it is the same frames and the same end as in one piece from memory; no more descriptors
 * than declared are handed over; and when all is done none is left open. */
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/frame.h"
#include "tests/fuzz/frames.h"

#define STREAM_MAX 60000	/* fits a socket's buffer */

/* What became of a stream: every frame's re-encoded form, one after the other. */
struct story {
	struct codec_buffer frames;
	int end;
};

static void
tell(struct story *story, struct frame *frame)
{
	const struct codec_shape *shape = codec_shape(frame->msg.type);

	MUST(frame->fds.n >= shape->fds_min && frame->fds.n <= shape->fds_max);
	MUST(frame_encode(&frame->msg, frame->fds.n, &story->frames) == 0);
	frame_done(frame);
}

static void
from_memory(enum msg_from from, const uint8_t *data, size_t size, struct story *story)
{
	struct frame_reader reader;
	struct frame frame;
	size_t used;

	frame_reader_init(&reader, from);
	do {
		story->end = frame_reader_feed(&reader, data, size, &used, &frame);
		MUST(used <= size);
		MUST(story->end <= 0 || used > 0);
		data += used;
		size -= used;
		if (story->end == 1)
			tell(story, &frame);
	} while (story->end == 1);
	MUST(story->end == -EBADMSG || size == 0);
	frame_reader_done(&reader);
}

static void
read_all(struct frame_reader *reader, int socket, struct story *story)
{
	struct frame frame;

	while ((story->end = frame_reader_read(reader, socket, &frame)) == 1)
		tell(story, &frame);
}

static void
from_socket(enum msg_from from, const uint8_t *data, size_t size, uint8_t pieces,
	    const int *fds, size_t n_fds, struct story *story)
{
	struct frame_reader reader;
	int pair[2];

	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
	frame_reader_init(&reader, from);
	story->end = 0;
	for (size_t at = 0, n; at < size && story->end == 0; at += n) {
		n = pieces ? 1 + (at * 7 + pieces) % pieces : size;
		if (n > size - at)
			n = size - at;
		MUST(fdpass_send(pair[0], data + at, n, fds, n_fds, 0) == (ssize_t)n);
		/* sometimes two pieces wait together */
		if (pieces % 2 || (at + n) % 3)
			read_all(&reader, pair[1], story);
	}
	if (story->end == 0)
		read_all(&reader, pair[1], story);
	MUST(story->end == 0 || story->end == -EBADMSG);
	frame_reader_done(&reader);
	close(pair[0]);
	close(pair[1]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t stream[STREAM_MAX];
	struct story memory = { 0 }, socket = { 0 };
	int ends[2], fds[MSG_FDS_MAX];
	enum msg_from from;
	size_t n_fds;
	char byte;

	if (size < 3 || size > STREAM_MAX)
		return 0;
	from = data[0] % FROM_COUNT;
	n_fds = data[2] % (MSG_FDS_MAX + 1);
	MUST(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
	for (size_t i = 0; i < n_fds; i++)
		fds[i] = ends[1];

	size -= 3;
	memcpy(stream, data + 3, size);
	frames_set_versions(stream, size);
	from_memory(from, stream, size, &memory);
	from_socket(from, stream, size, data[1], fds, n_fds, &socket);
	if (n_fds == 0) {
		MUST(memory.end == socket.end);
		MUST(memory.frames.len == socket.frames.len);
		MUST(memory.frames.len == 0 ||
		     memcmp(memory.frames.at, socket.frames.at, memory.frames.len) == 0);
	}

	/* end of file: no process holds the writing end any more */
	close(ends[1]);
	MUST(read(ends[0], &byte, 1) == 0);
	close(ends[0]);
	codec_buffer_done(&memory.frames);
	codec_buffer_done(&socket.frames);
	return 0;
}
