/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, at its start and its end.   Owns: nothing.
 * Reads:   the table of the previous supervisor; nothing in it is trusted. */
#include "tools/session/handover_table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/handle.h"
#include "base/xalloc.h"
#include "proto/frame.h"

_Static_assert(HANDLE_TEXT_MAX == HANDLE_MAX, "a handle fits its field");

/* ---- writing ---- */

static int
write_handle(const struct handover_handle *handle, struct codec_buffer *buffer)
{
	struct msg msg = { .type = MSG_KEPT_HANDLE, .kept_handle = handle->is };
	int r = frame_encode(&msg, 0, buffer);

	for (uint32_t i = 0; r == 0 && i < handle->is.checkpoints; i++) {
		msg = (struct msg){ .type = MSG_KEPT_CHECKPOINT,
				    .kept_checkpoint = handle->checkpoint[i] };
		r = frame_encode(&msg, 0, buffer);
	}
	return r;
}

int
handover_table_write(const struct handover_table *table, struct codec_buffer *buffer)
{
	struct msg msg = { .type = MSG_HANDOVER, .handover = table->is };
	int r = frame_encode(&msg, 0, buffer);

	for (uint32_t i = 0; r == 0 && i < table->is.sessions; i++) {
		const struct handover_session *session = &table->session[i];

		msg = (struct msg){ .type = MSG_KEPT, .kept = session->is };
		r = frame_encode(&msg, 0, buffer);
		for (uint32_t k = 0; r == 0 && k < session->is.handles; k++)
			r = write_handle(&session->handle[k], buffer);
	}
	return r;
}

/* ---- reading ---- */

struct reading {
	struct handover_table *table;
	const unsigned char *at;
	size_t left;
};

/* The next message, which must be of this type; the table keeps its texts. NULL: it is not. */
static const struct msg *
handover_table_next(struct reading *reading, enum msg_type type)
{
	struct handover_table *table = reading->table;
	struct frame_reader reader;
	struct frame *frame;
	size_t used = 0;
	int r;

	if ((table->n_frames & (table->n_frames + 1)) == 0)
		table->frame = xalloc_check(reallocarray(
			table->frame, 2 * (table->n_frames + 1), sizeof(*table->frame)));
	frame = &table->frame[table->n_frames];
	*frame = (struct frame){ 0 };
	frame_reader_init(&reader, FROM_PREDECESSOR);
	r = frame_reader_feed(&reader, reading->at, reading->left, &used, frame);
	frame_reader_done(&reader);
	if (r != 1)
		return NULL;
	table->n_frames++;
	reading->at += used;
	reading->left -= used;
	return frame->msg.type == type ? &frame->msg : NULL;
}

static bool
is_handle(const struct msg_str *text)
{
	const size_t host = 2 + ID_SHORT;	/* where it may begin */

	if (text->len < host || memcmp(text->at, "r-", 2) != 0 ||
	    !id_is_valid(text->at + 2, ID_SHORT) ||
	    (text->len > host && (text->at[host] != '-' || text->len == host + 1)))
		return false;
	for (size_t i = host + 1; i < text->len; i++) {
		char c = text->at[i];

		if ((c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') &&
		    c != '-')
			return false;
	}
	return true;
}

static bool
is_principal(const struct msg_str *text)
{
	for (size_t i = 0; i < text->len; i++)
		if (text->at[i] < '!' || text->at[i] > '~')
			return false;
	return true;
}

static bool
table_is_environment(const struct msg_str *name)
{
	for (size_t i = 0; i < name->len; i++)
		if (!memchr("0123456789abcdef", name->at[i], 16))
			return false;
	return true;
}

static bool
table_is_same(const struct msg_str *a, const struct msg_str *b)
{
	return a->len == b->len && memcmp(a->at, b->at, a->len) == 0;
}

/* Claims a snapshot of the session. False: *snapshots_io has it already. */
static bool
handover_table_claim(uint32_t snapshot, uint32_t *snapshots_io)
{
	if (*snapshots_io & 1U << snapshot)
		return false;
	*snapshots_io |= 1U << snapshot;
	return true;
}

static bool
read_handle(struct reading *reading, struct handover_handle *handle, uint32_t *snapshots_io)
{
	const struct msg *msg = handover_table_next(reading, MSG_KEPT_HANDLE);

	if (!msg)
		return false;
	handle->is = msg->kept_handle;
	if (!is_handle(&handle->is.handle) || handle->is.used_ms < handle->is.born_ms ||
	    !handover_table_claim(handle->is.snapshot, snapshots_io))
		return false;
	for (uint32_t i = 0; i < handle->is.checkpoints; i++) {
		msg = handover_table_next(reading, MSG_KEPT_CHECKPOINT);
		if (!msg || !handover_table_claim(msg->kept_checkpoint.snapshot, snapshots_io))
			return false;
		for (uint32_t k = 0; k < i; k++)
			if (table_is_same(&handle->checkpoint[k].name, &msg->kept_checkpoint.name))
				return false;
		handle->checkpoint[i] = msg->kept_checkpoint;
	}
	return true;
}

/* Are these two different sessions? They may have no serial, pid, slot or handle in common. Slot 0
 * is none. */
static bool
is_another(const struct handover_session *session, const struct handover_session *before)
{
	if (session->is.serial == before->is.serial || session->is.pid == before->is.pid ||
	    (session->is.slot == before->is.slot && session->is.slot != 0))
		return false;
	for (uint32_t i = 0; i < session->is.handles; i++)
		for (uint32_t k = 0; k < before->is.handles; k++)
			if (table_is_same(&session->handle[i].is.handle,
					  &before->handle[k].is.handle))
				return false;
	return true;
}

static bool
read_session(struct reading *reading, struct handover_session *session)
{
	const struct msg_handover *all = &reading->table->is;
	const struct msg *msg = handover_table_next(reading, MSG_KEPT);
	uint32_t snapshots = 0;

	if (!msg)
		return false;
	session->is = msg->kept;
	session->handle = xcalloc(session->is.handles, sizeof(*session->handle));
	if ((session->is.has_environment && !table_is_environment(&session->is.environment)) ||
	    session->is.serial > all->last_serial || !is_principal(&session->is.tenant) ||
	    (all->slots == 0 ? session->is.slot != 0
			     : session->is.slot < 1 || session->is.slot > all->slots))
		return false;
	for (uint32_t i = 0; i < session->is.handles; i++) {
		if (!read_handle(reading, &session->handle[i], &snapshots))
			return false;
		for (uint32_t k = 0; k < i; k++)
			if (table_is_same(&session->handle[i].is.handle,
					  &session->handle[k].is.handle))
				return false;
	}
	return snapshots == session->is.taken && (session->is.snapshots & ~snapshots) == 0;
}

static bool
read_all(struct reading *reading)
{
	struct handover_table *table = reading->table;
	const struct msg *msg = handover_table_next(reading, MSG_HANDOVER);
	uint32_t n;

	if (!msg)
		return false;
	table->is = msg->handover;
	n = table->is.sessions;
	table->is.sessions = 0;		/* the number that was read */
	table->session = xcalloc(n + 1, sizeof(*table->session));
	while (table->is.sessions < n) {
		struct handover_session *session = &table->session[table->is.sessions++];

		if (!read_session(reading, session))
			return false;
		for (struct handover_session *s = table->session; s < session; s++)
			if (!is_another(session, s))
				return false;
	}
	return reading->left == 0;
}

int
handover_table_read(const void *bytes, size_t len, struct handover_table **table_r)
{
	struct reading reading = { .at = bytes, .left = len };

	if (len > HANDOVER_TABLE_MAX)
		return -EBADMSG;
	reading.table = xcalloc(1, sizeof(*reading.table));
	if (!read_all(&reading)) {
		handover_table_free(reading.table);
		return -EBADMSG;
	}
	*table_r = reading.table;
	return 0;
}

void
handover_table_free(struct handover_table *table)
{
	if (!table)
		return;
	for (uint32_t i = 0; table->session && i < table->is.sessions; i++)
		free(table->session[i].handle);
	free(table->session);
	for (size_t i = 0; i < table->n_frames; i++)
		frame_done(&table->frame[i]);
	free(table->frame);
	free(table);
}
