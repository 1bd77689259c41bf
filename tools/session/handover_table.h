/* SPDX-License-Identifier: Apache-2.0 */
/* The table of sessions that a supervisor leaves to its successor: messages of proto/messages.def,
 * one after the other. It comes back from systemd, and no other process can write to it. Still, it
 * is read as strictly as hostile input: with a single mistake the whole table is refused.
 */
#ifndef TOOLS_SESSION_HANDOVER_TABLE_H
#define TOOLS_SESSION_HANDOVER_TABLE_H

#include <stddef.h>

#include "proto/codec.h"
#include "proto/message.h"

struct frame;

#define HANDOVER_TABLE_MAX (16 * 1024 * 1024)	/* bytes */

struct handover_handle {
	struct msg_kept_handle is;
	struct msg_kept_checkpoint checkpoint[REPL_SNAPSHOTS_MAX];	/* is.checkpoints of them */
};

struct handover_session {
	struct msg_kept is;
	struct handover_handle *handle;		/* is.handles of them */
};

struct handover_table {
	struct msg_handover is;
	struct handover_session *session;	/* is.sessions of them */
	struct frame *frame;			/* the memory of the texts, if the table was read */
	size_t n_frames;
};

/* Appends the table to buffer. 0, or -errno of frame_encode. */
int handover_table_write(const struct handover_table *table, struct codec_buffer *buffer);

/* Reads a table, which must fill all of bytes. 0 and *table_r, which handover_table_free frees; or
 * -EBADMSG: this is not a table, or it has impossible values, such as two sessions with the same
 * worker, two handles with the same snapshot, or an invalid handle. */
int handover_table_read(const void *bytes, size_t len, struct handover_table **table_r);
void handover_table_free(struct handover_table *table);	/* NULL is fine */

#endif
