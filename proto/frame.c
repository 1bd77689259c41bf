/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor (non-blocking), zygotes and workers (blocking).
 * Owns:    received frames until the caller takes them, and the send queue with its descriptors.
 * Reads:   bytes of the peer, hostile from the first. */
#include "proto/frame.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "base/trace.h"
#include "base/xalloc.h"

#define PAUSE_FIRST_MS 10
#define PAUSE_MOST_MS 1000
#define BODY_FIRST 4096		/* bytes allocated for a body before any of it has arrived */

static const unsigned char header_room[FRAME_HEADER];

/* ---- transient errors ---- */

bool
frame_is_transient(int error)
{
	return error == -EAGAIN || error == -EWOULDBLOCK || error == -EINTR ||
	       error == -ENOBUFS || error == -ENOMEM;
}

unsigned int
frame_pause_ms(unsigned int *tries_io)
{
	unsigned int ms = PAUSE_FIRST_MS << (*tries_io < 10 ? *tries_io : 10);

	++*tries_io;
	return ms < PAUSE_MOST_MS ? ms : PAUSE_MOST_MS;
}

bool
frame_wait_out(int error, unsigned int *tries_io)
{
	unsigned int ms;
	struct timespec pause;

	if (!frame_is_transient(error))
		return false;
	ms = frame_pause_ms(tries_io);
	pause = (struct timespec){ ms / 1000, (long)(ms % 1000) * 1000000 };
	nanosleep(&pause, NULL);
	return true;
}

void
frame_done(struct frame *frame)
{
	codec_free(&frame->msg);
	fdpass_close(&frame->fds);
	free(frame->body);
	frame->body = NULL;
}

int
frame_take_fd(struct frame *frame, size_t i)
{
	return i < frame->fds.n ? give_fd(frame->fds.fd[i]) : -1;
}

/* ---- receiving ---- */

void
frame_reader_init(struct frame_reader *reader, enum msg_from from)
{
	*reader = (struct frame_reader){ .from = from };
}

int
frame_reader_expect(struct frame_reader *reader, int socket, size_t n)
{
	if (n > reader->n_spare)
		reader->spare = xrealloc(reader->spare, n * sizeof(*reader->spare));
	while (reader->n_spare > n)
		close(reader->spare[--reader->n_spare]);
	while (reader->n_spare < n) {
		int fd = fcntl(socket, F_DUPFD_CLOEXEC, 3);

		if (fd < 0)
			return -errno;
		reader->spare[reader->n_spare++] = fd;
	}
	return 0;
}

void
frame_reader_done(struct frame_reader *reader)
{
	(void)frame_reader_expect(reader, -1, 0);
	free(reader->spare);
	reader->spare = NULL;
	fdpass_close(&reader->fds);
	free(reader->body);
	reader->body = NULL;
	reader->error = -EPIPE;
}

/* Ends the reading from this peer: everything collected is dropped at once. */
static int
reader_fail(struct frame_reader *reader, int error)
{
	frame_reader_done(reader);
	reader->error = error;
	return error;
}

/* May this peer send a message of that shape? */
static bool
is_from(const struct codec_shape *shape, enum msg_from peer)
{
	return shape->from == peer ||
	       (shape->from == FROM_CHILD && (peer == FROM_ZYGOTE || peer == FROM_KEEPER ||
					      peer == FROM_EGRESS || peer == FROM_TOOLS));
}

static int
judge_header(struct frame_reader *reader)
{
	const unsigned char *h = reader->header;
	const struct codec_shape *shape = codec_shape(h[1]);
	size_t len = (size_t)h[2] << 24 | (size_t)h[3] << 16 | (size_t)h[4] << 8 | h[5];

	if (h[0] != PROTO_VERSION || !shape || !is_from(shape, reader->from))
		return -EBADMSG;
	if (len == 0 || len > shape->body_max)
		return -EBADMSG;
	/* all come with the first byte, so their number is final */
	if (reader->fds.n < shape->fds_min || reader->fds.n > shape->fds_max)
		return -EBADMSG;
	reader->body_total = len;
	return 0;
}

/* Returns the body in a larger buffer. If the message has secrets, the old buffer is overwritten.
 */
static unsigned char *
frame_grow(struct frame_reader *reader, size_t size)
{
	const unsigned int type = reader->header[1];
	unsigned char *body;

	if (type != MSG_EGRESS_CONFIGURE && type != MSG_TOOLS_CONFIGURE)
		return xrealloc(reader->body, size);
	body = xmalloc(size);
	if (reader->body) {
		memcpy(body, reader->body, reader->body_len);
		explicit_bzero(reader->body, reader->body_len);
		free(reader->body);
	}
	return body;
}

/* Where the next bytes go and how many fit: to the end of the header, then into the allocated
 * part of the body. */
static void
reader_space(struct frame_reader *reader, unsigned char **at_r, size_t *len_r)
{
	if (reader->header_len < FRAME_HEADER) {
		*at_r = reader->header + reader->header_len;
		*len_r = FRAME_HEADER - reader->header_len;
		return;
	}
	if (reader->body_len == reader->body_size) {
		size_t size = reader->body_size ? 2 * reader->body_size : BODY_FIRST;

		if (size > reader->body_total)
			size = reader->body_total;
		reader->body = frame_grow(reader, size);
		reader->body_size = size;
	}
	*at_r = reader->body + reader->body_len;
	*len_r = reader->body_size - reader->body_len;
}

/* The number of the execution that the message belongs to; 0: none, or it does not say so. */
static uint64_t
execution_of(const struct msg *msg, const struct codec_shape *shape)
{
	uint64_t id = 0;

	for (size_t i = 0; i < shape->n_fields; i++)
		if (strcmp(shape->field[i].name, "id") == 0 && shape->field[i].kind == CODEC_U64)
			memcpy(&id, (const char *)&msg->hello + shape->field[i].offset, sizeof(id));
	/* The numbers of these two are of lookups. */
	return msg->type == MSG_WHO || msg->type == MSG_PERSON ? 0 : id;
}

static void
frame_trace(const char *way, const struct msg *msg, size_t len, size_t n_fds)
{
	const struct codec_shape *shape = codec_shape(msg->type);

	if (trace_wanted != TRACE_OFF)
		trace_line(execution_of(msg, shape), "%s=%s bytes=%zu fds=%zu", way, shape->name, len,
			   n_fds);
}

/* n bytes were stored where reader_space() said. 1: they complete a frame. */
static int
reader_advance(struct frame_reader *reader, size_t n, struct frame *frame_r)
{
	struct frame frame = { 0 };
	int r;

	if (reader->header_len < FRAME_HEADER) {
		reader->header_len += n;
		return reader->header_len == FRAME_HEADER ? judge_header(reader) : 0;
	}
	reader->body_len += n;
	if (reader->body_len < reader->body_total)
		return 0;

	r = codec_decode(reader->header[1], reader->body, reader->body_len, &frame.msg);
	if (r < 0)
		return r;
	frame_trace("received", &frame.msg, reader->body_len, reader->fds.n);
	frame.body = reader->body;
	frame.fds = reader->fds;
	*reader = (struct frame_reader){ .from = reader->from, .spare = reader->spare,
					 .n_spare = reader->n_spare };
	*frame_r = frame;
	return 1;
}

/* One recvmsg() at the start of a frame: its descriptors take the place of spare ones. */
static ssize_t
receive_first(struct frame_reader *reader, int socket, unsigned char *at, size_t len)
{
	const size_t spare = reader->n_spare;
	ssize_t n;

	(void)frame_reader_expect(reader, socket, spare > MSG_FDS_MAX ? spare - MSG_FDS_MAX : 0);
	n = fdpass_recv(socket, at, len, &reader->fds);
	if (spare > reader->fds.n)
		(void)frame_reader_expect(reader, socket, spare - reader->fds.n);
	return n;
}

/* One recvmsg(). 1: a frame is complete; 0: more is needed; else -EAGAIN or another error of
 * recvmsg(). */
static int
receive_some(struct frame_reader *reader, int socket, struct frame *frame_r)
{
	bool at_start = reader->header_len == 0;
	size_t fds_before = reader->fds.n, len;
	unsigned char *at;
	ssize_t n;

	reader_space(reader, &at, &len);
	n = at_start ? receive_first(reader, socket, at, len)
		     : fdpass_recv(socket, at, len, &reader->fds);
	if (n == 0)
		return at_start ? -EPIPE : -ECONNRESET;
	if (n < 0)
		return (int)n;
	if (!at_start && reader->fds.n != fds_before)
		return -EBADMSG;
	return reader_advance(reader, (size_t)n, frame_r);
}

/* After a transient error: shall a blocking read go on? It waits first. */
static bool
reader_goes_on(struct frame_reader *reader, int socket, int error, unsigned int *tries_io)
{
	int flags;

	if (error == -EAGAIN || error == -EWOULDBLOCK)
		return false;
	reader->starved = true;
	flags = fcntl(socket, F_GETFL);
	return (flags < 0 || (flags & O_NONBLOCK) == 0) && frame_wait_out(error, tries_io);
}

int
frame_reader_read(struct frame_reader *reader, int socket, struct frame *frame_r)
{
	unsigned int tries = 0;
	int r = reader->error;

	reader->starved = false;
	while (r == 0) {
		r = receive_some(reader, socket, frame_r);
		if (frame_is_transient(r))
			r = reader_goes_on(reader, socket, r, &tries) ? 0 : -EAGAIN;
	}
	if (r == -EAGAIN)
		return 0;
	return r < 0 ? reader_fail(reader, r) : r;
}

bool
frame_reader_broke_off(const struct frame_reader *reader)
{
	return reader->error == -ECONNRESET && reader->header_len > 0;
}

int
frame_reader_feed(struct frame_reader *reader, const void *bytes, size_t len,
		  size_t *used_r, struct frame *frame_r)
{
	const unsigned char *from = bytes;
	int r = reader->error;

	*used_r = 0;
	while (r == 0 && *used_r < len) {
		size_t room, n = len - *used_r;
		unsigned char *at;

		reader_space(reader, &at, &room);
		if (n > room)
			n = room;
		memcpy(at, from + *used_r, n);
		*used_r += n;
		r = reader_advance(reader, n, frame_r);
	}
	return r < 0 ? reader_fail(reader, r) : r;
}

/* ---- sending ---- */

int
frame_encode(const struct msg *msg, size_t n_fds, struct codec_buffer *buffer)
{
	const struct codec_shape *shape = codec_shape(msg->type);
	size_t before = buffer->len, len;
	unsigned char *h;
	int r;

	if (!shape || n_fds < shape->fds_min || n_fds > shape->fds_max)
		return -EINVAL;
	codec_buffer_append(buffer, header_room, FRAME_HEADER);
	r = codec_encode(msg, buffer);
	if (r < 0) {
		buffer->len = before;
		return r;
	}
	len = buffer->len - before - FRAME_HEADER;
	h = buffer->at + before;
	h[0] = PROTO_VERSION;
	h[1] = (unsigned char)msg->type;
	h[2] = (unsigned char)(len >> 24);
	h[3] = (unsigned char)(len >> 16);
	h[4] = (unsigned char)(len >> 8);
	h[5] = (unsigned char)len;
	frame_trace("sent", msg, len, n_fds);
	return 0;
}

typedef ssize_t send_fn(int socket, const void *bytes, size_t len, const int *fd, size_t n,
			int flags);

/* Sends the bytes from *sent_io on, until all are sent or an error occurs. The descriptors go with
 * the first byte. *sent_io: the number of bytes sent so far. 0 or -errno. */
static int
send_rest(send_fn *send, int socket, const struct codec_buffer *bytes, size_t *sent_io,
	  const int *fd, size_t n_fds, int flags)
{
	while (*sent_io < bytes->len) {
		ssize_t n = send(socket, bytes->at + *sent_io, bytes->len - *sent_io, fd,
				 *sent_io == 0 ? n_fds : 0, flags);

		if (n < 0)
			return (int)n;
		*sent_io += (size_t)n;
	}
	return 0;
}

int
frame_send(int socket, const struct msg *msg, const int *fd, size_t n_fds)
{
	struct codec_buffer bytes = { 0 };
	size_t sent = 0;
	int r;

	r = frame_encode(msg, n_fds, &bytes);
	if (r == 0)
		r = send_rest(fdpass_send_patiently, socket, &bytes, &sent, fd, n_fds, 0);
	codec_buffer_done(&bytes);
	return r;
}

int
frame_send_now(int socket, const struct msg *msg)
{
	struct codec_buffer bytes = { 0 };
	size_t sent = 0;
	int r;

	r = frame_encode(msg, 0, &bytes);
	if (r == 0)
		r = send_rest(fdpass_send, socket, &bytes, &sent, NULL, 0, MSG_DONTWAIT);
	codec_buffer_done(&bytes);
	return r < 0 && sent > 0 ? -EPIPE : r;
}

int
frame_send_pong(int socket, const struct msg_ping *ping)
{
	return frame_send(socket, &(struct msg){ .type = MSG_PONG, .pong.number = ping->number },
			  NULL, 0);
}

int
frame_send_secret(int socket, const struct msg *msg)
{
	/* With room for all of it, the buffer is never copied to a larger one. */
	const size_t size = FRAME_HEADER + codec_shape(msg->type)->body_max;
	struct codec_buffer bytes = { .at = xmalloc(size), .size = size };
	size_t sent = 0;
	int r;

	r = frame_encode(msg, 0, &bytes);
	if (r == 0)
		r = send_rest(fdpass_send_patiently, socket, &bytes, &sent, NULL, 0, 0);
	explicit_bzero(bytes.at, bytes.size);
	codec_buffer_done(&bytes);
	return r;
}

struct frame_out {
	struct frame_out *next;
	struct codec_buffer bytes;
	size_t sent, charge;
	struct fdpass_set fds;
};

static_assert(sizeof(struct frame_out) <= FRAME_WRITER_OVERHEAD,
	      "a writer of FRAME_MAX + FRAME_WRITER_OVERHEAD takes every message");

void
frame_writer_init(struct frame_writer *writer, size_t bytes_max)
{
	*writer = (struct frame_writer){ .bytes_max = bytes_max };
}

static void
drop_first(struct frame_writer *writer)
{
	struct frame_out *out = writer->first;

	writer->first = out->next;
	if (!writer->first)
		writer->last = NULL;
	writer->bytes -= out->charge;
	writer->fds -= out->fds.n;
	fdpass_close(&out->fds);
	codec_buffer_done(&out->bytes);
	free(out);
}

void
frame_writer_done(struct frame_writer *writer)
{
	while (writer->first)
		drop_first(writer);
}

static int
frame_queue(struct frame_writer *writer, const struct msg *msg, struct fdpass_set *fds)
{
	struct codec_buffer bytes = { 0 };
	struct frame_out *out = NULL;
	size_t charge;
	int r;

	r = frame_encode(msg, fds->n, &bytes);
	if (r < 0)
		goto out;
	r = -ENOBUFS;
	charge = bytes.len + FRAME_WRITER_OVERHEAD;
	if (charge > writer->bytes_max - writer->bytes ||
	    fds->n > FRAME_WRITER_FDS_MAX - writer->fds)
		goto out;
	out = xcalloc(1, sizeof(*out));
	out->bytes = bytes;
	bytes = (struct codec_buffer){ 0 };
	out->charge = charge;
	out->fds = *fds;
	*fds = (struct fdpass_set){ 0 };
	if (writer->last)
		writer->last->next = out;
	else
		writer->first = out;
	writer->last = out;
	writer->bytes += charge;
	writer->fds += out->fds.n;
	r = 0;
out:
	codec_buffer_done(&bytes);
	return r;
}

int
frame_writer_put(struct frame_writer *writer, const struct msg *msg,
		 const int *fd, size_t n_fds)
{
	struct fdpass_set fds = { 0 };
	int r;

	assert(n_fds <= MSG_FDS_MAX);
	for (size_t i = 0; i < n_fds; i++)
		fds.fd[fds.n++] = fd[i];
	r = frame_queue(writer, msg, &fds);
	fdpass_close(&fds);
	return r;
}

int
frame_writer_flush(struct frame_writer *writer, int socket)
{
	while (writer->first) {
		struct frame_out *out = writer->first;
		int r = send_rest(fdpass_send, socket, &out->bytes, &out->sent, out->fds.fd,
				  out->fds.n, MSG_DONTWAIT);

		writer->starved = frame_is_transient(r) && r != -EAGAIN && r != -EWOULDBLOCK;
		if (frame_is_transient(r))
			return 1;
		if (r < 0)
			return r;
		drop_first(writer);
	}
	return 0;
}
