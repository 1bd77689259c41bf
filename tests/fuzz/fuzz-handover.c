/* SPDX-License-Identifier: Apache-2.0 */
/* The table that a supervisor leaves to its successor. The target asserts that an accepted table is
 * written, read again and written the same, and that nothing unique is in it twice. */
#include "fuzz.h"

#include <errno.h>

#include "tests/fuzz/frames.h"
#include "tools/session/handover_table.h"

static void
check_session(const struct handover_table *table, const struct handover_session *session)
{
	uint32_t snapshots = 0;

	MUST(session->is.serial <= table->is.last_serial);
	MUST(table->is.slots ? session->is.slot >= 1 && session->is.slot <= table->is.slots
			     : session->is.slot == 0);
	for (uint32_t i = 0; i < session->is.handles; i++) {
		const struct handover_handle *handle = &session->handle[i];

		MUST(handle->is.used_ms >= handle->is.born_ms);
		MUST(!(snapshots & 1U << handle->is.snapshot));
		snapshots |= 1U << handle->is.snapshot;
		for (uint32_t k = 0; k < handle->is.checkpoints; k++) {
			MUST(!(snapshots & 1U << handle->checkpoint[k].snapshot));
			snapshots |= 1U << handle->checkpoint[k].snapshot;
		}
	}
	MUST(snapshots == session->is.taken && !(session->is.snapshots & ~snapshots));
}

static void
check_table(const struct handover_table *table)
{
	for (uint32_t i = 0; i < table->is.sessions; i++) {
		const struct handover_session *session = &table->session[i];

		check_session(table, session);
		for (uint32_t k = 0; k < i; k++)
			MUST(session->is.serial != table->session[k].is.serial &&
			     session->is.pid != table->session[k].is.pid);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct codec_buffer first = { 0 }, second = { 0 };
	struct handover_table *table, *again;
	uint8_t *bytes = malloc(size ? size : 1);
	int r;

	memcpy(bytes, data, size);
	frames_set_versions(bytes, size);
	r = handover_table_read(bytes, size, &table);
	MUST(r == 0 || r == -EBADMSG);
	if (r == 0) {
		check_table(table);
		MUST(handover_table_write(table, &first) == 0 && first.len <= size);
		MUST(handover_table_read(first.at, first.len, &again) == 0);
		MUST(again->is.sessions == table->is.sessions);
		MUST(handover_table_write(again, &second) == 0);
		MUST(first.len == second.len && memcmp(first.at, second.at, first.len) == 0);
		handover_table_free(again);
		handover_table_free(table);
	}
	codec_buffer_done(&first);
	codec_buffer_done(&second);
	free(bytes);
	return 0;
}
