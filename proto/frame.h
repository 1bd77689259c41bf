/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: the form in which messages follow each other on a unix stream socket.
 *
 *   byte 0     PROTO_VERSION
 *   byte 1     message type
 *   bytes 2-5  length of the body, most significant byte first
 *   then       the body (proto/codec.h)
 *
 * The descriptors of a message are sent with the first byte of its frame. A header is checked
 * before its body is read. -EBADMSG is the error for another version, an unknown type, a type that
 * this peer may not send, a length above the cap of the message, and a number of descriptors that
 * the message does not declare.
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
	struct fdpass_set fds;	/* their number is one that the message declares */
	unsigned char *body;
};

/* Frees the memory of a frame and closes its descriptors. A zeroed frame is empty. */
void frame_done(struct frame *frame);

/* Takes the descriptor with number i out of the frame. The caller owns it. -1: there is none. */
int frame_take_fd(struct frame *frame, size_t i);

/* ---- transient errors ---- */

/* Is this error (-errno) of a local socket one that passes: the socket is full or empty, a signal
 * came, or the kernel has no memory for a message now (ENOBUFS, ENOMEM: where a cgroup bounds
 * memory, buffers of sockets are charged to it)? Then nothing was sent or received, and the same
 * call can be made again later. */
bool frame_is_transient(int error);

/* The pause before the next try, in milliseconds; it doubles up to a second. *tries_io: 0 before
 * the first pause. */
unsigned int frame_pause_ms(unsigned int *tries_io);

/* For a process that has nothing else to do: after a transient error sleeps for that pause, and
 * returns true. False: the error does not pass. */
bool frame_wait_out(int error, unsigned int *tries_io);

/* ---- receiving ---- */

/* The reader of one peer's frames. Its memory grows with the bytes that have arrived, not with the
 * length that a header claims. It never reads past the end of a frame, so another process may
 * continue to read where this one has stopped. */
struct frame_reader {
	enum msg_from from;	/* the kind of peer */
	unsigned char header[FRAME_HEADER];
	size_t header_len;
	unsigned char *body;
	size_t body_len, body_size, body_total;
	struct fdpass_set fds;
	int *spare;		/* descriptors that are reserved: frame_reader_expect() */
	size_t n_spare;
	int error;		/* of an earlier call; every further call returns it */
	bool starved;		/* the last call has ended because the kernel had no memory */
};

void frame_reader_init(struct frame_reader *reader, enum msg_from from);
void frame_reader_done(struct frame_reader *reader);

/* Reserves n descriptors in all (copies of socket) for those that messages will bring. Without them
 * a message comes cut when this process has none left, which ends the line (-EMFILE). To be called
 * before a question whose answer has descriptors, and after the answer with what is still expected.
 * 0; or -EMFILE: not all could be reserved. */
int frame_reader_expect(struct frame_reader *reader, int socket, size_t n);

/* Reads until one frame is complete. Waits on a blocking socket. Returns
 *   1            *frame_r has the frame; the caller calls frame_done
 *   0            no more bytes now (only on a non-blocking socket); call again later, and after a
 *                pause if reader->starved (a blocking socket waits out transient errors itself)
 *   -EPIPE       the peer closed its end, between two frames
 *   -ECONNRESET  the peer closed its end in the middle of a frame
 *   -EBADMSG     the peer broke the protocol
 *   -EMFILE      this process could not open the descriptors that came
 *   -errno       of recvmsg(2)
 * After an error every further call returns the same error. */
int frame_reader_read(struct frame_reader *reader, int socket, struct frame *frame_r);

/* To be called after -ECONNRESET: has the peer begun a frame and not completed it? False: the error
 * only means that the peer has closed its end without reading all bytes that were sent to it. */
bool frame_reader_broke_off(const struct frame_reader *reader);

/* As frame_reader_read, but from memory. Reads at most to the end of one frame; *used_r: the number
 * of bytes. 1, 0 or -EBADMSG. */
int frame_reader_feed(struct frame_reader *reader, const void *bytes, size_t len,
		      size_t *used_r, struct frame *frame_r);

/* ---- sending ---- */

/* Appends the whole frame of a message that has n_fds descriptors. 0, or an error of codec_encode;
 * -EINVAL also if the message does not declare this number of descriptors. */
int frame_encode(const struct msg *msg, size_t n_fds, struct codec_buffer *buffer);

/* Sends a message on a blocking socket, by fdpass_send_patiently; fd is borrowed. 0 or -errno
 * (-EPIPE: the peer is gone). After an error the stream cannot be used any more, unless the error
 * came from frame_encode. */
int frame_send(int socket, const struct msg *msg, const int *fd, size_t n_fds);

/* As frame_send, but does not wait, for messages without descriptors of at most some KiB. A
 * transient error (frame_is_transient) means that nothing was sent. */
int frame_send_now(int socket, const struct msg *msg);

/* As frame_send(), for a message that has secrets and no descriptors: copies of the secrets are
 * overwritten before their memory is freed. */
int frame_send_secret(int socket, const struct msg *msg);

/* Answers PING. socket: as in frame_send. 0 or -errno. */
int frame_send_pong(int socket, const struct msg_ping *ping);

/* A bounded queue of frames that wait for a non-blocking socket. */
struct frame_writer {
	struct frame_out *first, *last;
	size_t bytes;		/* that wait, including FRAME_WRITER_OVERHEAD for each frame */
	size_t bytes_max;
	size_t fds;		/* that wait */
	bool starved;		/* the last flush has ended because the kernel had no memory */
};

/* The most descriptors that may wait in one writer. They are bounded because they are open in this
 * process. */
#define FRAME_WRITER_FDS_MAX 256

/* The overhead for a waiting frame, in addition to its own bytes. */
#define FRAME_WRITER_OVERHEAD 128

/* bytes_max: FRAME_MAX + FRAME_WRITER_OVERHEAD is enough for one message of any kind. */
void frame_writer_init(struct frame_writer *writer, size_t bytes_max);
void frame_writer_done(struct frame_writer *writer);	/* drops what waits */

/* Queues a message. The descriptors belong to the writer from now on, also after a failure, and are
 * closed when they were sent. 0; -ENOBUFS: too much waits; or an error of frame_encode. */
int frame_writer_put(struct frame_writer *writer, const struct msg *msg,
		     const int *fd, size_t n_fds);

/* Sends as much as the socket takes without waiting. 0: all is sent; 1: more waits, to be called
 * again when the socket is writable, and after a pause if writer->starved; or -errno, and the
 * stream cannot be used any more. */
int frame_writer_flush(struct frame_writer *writer, int socket);

static inline bool
frame_writer_waits(const struct frame_writer *writer)
{
	return writer->first != NULL;
}

#endif
