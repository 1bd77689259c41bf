/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: how messages follow each other on a unix stream socket.
 *
 *   byte 0     PROTO_VERSION
 *   byte 1     message type
 *   bytes 2-5  length of the body, most significant byte first
 *   then       the body (proto/codec.h)
 *
 * The descriptors of a message are sent with the first byte of its frame. A header is checked
 * before its body is read. The following are -EBADMSG: another version, an unknown type, a type
 * that this peer may not send, a length above the message's own cap, and a number of descriptors
 * that the message does not declare.
 */
#ifndef PROTO_FRAME_H
#define PROTO_FRAME_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/codec.h"
#include "proto/fdpass.h"
#include "proto/message.h"

#define FRAME_HEADER 6
#define FRAME_MAX (FRAME_HEADER + MSG_BODY_MAX)	/* bytes of the largest frame */

/* A received message. */
struct frame {
	struct msg msg;		/* checked; its strings point into body */
	struct fdpass_set fds;	/* as many as the message declares, and at most */
	unsigned char *body;
};

/* Frees what the frame holds and closes its descriptors. Zeroed is empty. */
void frame_done(struct frame *frame);

/* Takes descriptor number i out of the frame; the caller owns it. -1: none. */
int frame_take_fd(struct frame *frame, size_t i);

/* ---- receiving ---- */

/* Collects the frames of one peer. Memory grows with the bytes that have arrived, not with the
 * length that a header claims. It never reads past the end of a frame, so another process may
 * continue to read where this one stopped. */
struct frame_reader {
	enum msg_from from;	/* who the peer is */
	unsigned char header[FRAME_HEADER];
	size_t header_len;
	unsigned char *body;
	size_t body_len, body_size, body_total;
	struct fdpass_set fds;
	int error;		/* once broken, always broken */
};

void frame_reader_init(struct frame_reader *reader, enum msg_from from);
void frame_reader_done(struct frame_reader *reader);

/* Reads until one frame is whole. Returns
 *   1            *frame_r holds it: frame_done
 *   0            nothing more for now (only of a non-blocking socket); call again
 *   -EPIPE       the peer closed its end, between two frames
 *   -ECONNRESET  the peer closed its end in the middle of a frame
 *   -EBADMSG     the peer broke the protocol
 *   -errno       of recvmsg(2), -ENOMEM
 * After an error every further call returns the same. On a blocking socket it waits. */
int frame_reader_read(struct frame_reader *reader, int socket, struct frame *frame_r);

/* After -ECONNRESET: did the peer begin a frame and not end it? False: the peer has only not read
 * some bytes that were sent to it. */
bool frame_reader_broke_off(const struct frame_reader *reader);

/* The same from memory: reads up to the end of one frame, and stores the number of bytes in
 * *used_r. 1, 0, -EBADMSG or -ENOMEM. */
int frame_reader_feed(struct frame_reader *reader, const void *bytes, size_t len,
		      size_t *used_r, struct frame *frame_r);

/* ---- sending ---- */

/* Appends the whole frame of a message that carries n_fds descriptors. Errors as
 * codec_encode; -EINVAL also for a number of descriptors that it does not declare. */
int frame_encode(const struct msg *msg, size_t n_fds, struct codec_buffer *buffer);

/* Sends a message on a blocking socket, patiently (fdpass.h); fd is borrowed. 0 or -errno (-EPIPE:
 * peer gone). After an error the stream cannot be used any more, unless the error came from
 * frame_encode. */
int frame_send(int socket, const struct msg *msg, const int *fd, size_t n_fds);

/* frame_send() for a message that has secrets and no descriptors: memory with a copy of the secrets
 * is overwritten before it is freed. */
int frame_send_secret(int socket, const struct msg *msg);

/* A bounded queue of frames that wait for a non-blocking socket. */
struct frame_writer {
	struct frame_out *first, *last;
	size_t bytes;		/* waiting, including the queue's own overhead */
	size_t bytes_max;
	size_t fds;		/* waiting */
};

/* Descriptors that may wait in one writer: they are open in this process. */
#define FRAME_WRITER_FDS_MAX 256

/* The overhead for a waiting frame, in addition to its own bytes. */
#define FRAME_WRITER_OVERHEAD 128

/* bytes_max: FRAME_MAX + FRAME_WRITER_OVERHEAD is enough for one message of any kind. */
void frame_writer_init(struct frame_writer *writer, size_t bytes_max);
void frame_writer_done(struct frame_writer *writer);	/* drops what waits */

/* Queues a message. The descriptors belong to the writer from the call on, even if it fails, and
 * are closed after they are sent. -ENOBUFS: too much waits; otherwise as frame_encode. */
int frame_writer_put(struct frame_writer *writer, const struct msg *msg,
		     const int *fd, size_t n_fds);

/* Sends what the socket takes without waiting. 0: all is sent; 1: more waits, call again when the
 * socket is writable; or -errno, after which the stream cannot be used. */
int frame_writer_flush(struct frame_writer *writer, int socket);

static inline bool
frame_writer_waits(const struct frame_writer *writer)
{
	return writer->first != NULL;
}

#endif
