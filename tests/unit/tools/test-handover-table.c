/* SPDX-License-Identifier: Apache-2.0 */
/* The table of kept sessions: what is written is read, and everything that cannot be is no
 * table, down to the last byte. */
#include "tools/session/handover_table.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define N_SESSIONS 3
#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"
#define HANDLE "r-abcdefgh%c%c-host-1"

/* Sessions 0 to 2; the second one has a branch, the third one checkpoints. */
struct sample {
	struct handover_table table;
	struct handover_session session[N_SESSIONS];
	struct handover_handle handle[N_SESSIONS][2];
	char name[N_SESSIONS][2][64];
};

static void
fill(struct sample *s)
{
	*s = (struct sample){ .table = { .is = {
		.build = msg_str("a build"), .sessions = N_SESSIONS, .last_serial = 12,
		.uid_base = 100000, .slots = 65534, .memory_counted = true,
	}, .session = s->session } };
	for (uint32_t i = 0; i < N_SESSIONS; i++) {
		s->session[i] = (struct handover_session){ .is = {
			.serial = 10 + i, .slot = 1 + i, .pid = 1000 + i, .uid = 100000 + i,
			.tenant = msg_str("uid:1000"), .profile = msg_str("default"),
			.streams = 3, .snapshots = 1, .taken = 1, .memory_used = 1, .wall_ms = 1,
			.cpu_ms = 1, .memory_bytes = 1, .memory_most = 1, .pids = 1,
			.output_bytes = 1, .output_total = 1, .handles = 1,
		}, .handle = s->handle[i] };
		for (int k = 0; k < 2; k++) {
			snprintf(s->name[i][k], sizeof(s->name[i][k]), HANDLE, 'a' + (int)i,
				 'a' + k);
			s->handle[i][k].is = (struct msg_kept_handle){
				.handle = msg_str(s->name[i][k]), .snapshot = (uint32_t)k,
				.age_ms = 2, .idle_ms = 1, .born_ms = 5, .used_ms = 6,
			};
		}
	}
	s->session[1].is.handles = 2;
	s->session[1].is.taken = 3;
	s->handle[2][0].is.checkpoints = 2;
	s->handle[2][0].is.has_note = true;
	s->handle[2][0].is.note = msg_str("a note");
	s->handle[2][0].checkpoint[0] = (struct msg_kept_checkpoint){ msg_str("one"), 15 };
	s->handle[2][0].checkpoint[1] = (struct msg_kept_checkpoint){ msg_str("two"), 7 };
	s->session[2].is.has_environment = true;
	s->session[2].is.environment = msg_str(HEX "f");
	s->session[2].is.taken = 1 | 1 << 15 | 1 << 7;
	s->session[2].is.snapshots = 1 | 1 << 7;
}

static int
read_copy(const struct codec_buffer *buffer, size_t len, struct handover_table **table_r)
{
	/* of its own, so that one byte read too many is seen */
	unsigned char *copy = malloc(len ? len : 1);
	int r;

	assert_non_null(copy);
	if (len > 0)
		memcpy(copy, buffer->at, len);
	r = handover_table_read(copy, len, table_r);
	free(copy);
	return r;
}

static int
write_and_read(const struct sample *s)
{
	struct codec_buffer buffer = { 0 };
	struct handover_table *table = NULL;
	int r;

	assert_int_equal(handover_table_write(&s->table, &buffer), 0);
	r = read_copy(&buffer, buffer.len, &table);
	codec_buffer_done(&buffer);
	handover_table_free(table);
	return r;
}

static void
assert_text(const struct msg_str *text, const char *want)
{
	assert_int_equal(text->len, strlen(want));
	assert_memory_equal(text->at, want, text->len);
}

static void
it_comes_back(void **state)
{
	struct codec_buffer buffer = { 0 };
	struct handover_table *table;
	struct sample s;

	(void)state;
	fill(&s);
	assert_int_equal(handover_table_write(&s.table, &buffer), 0);
	assert_int_equal(read_copy(&buffer, buffer.len, &table), 0);
	assert_int_equal(table->is.sessions, N_SESSIONS);
	assert_int_equal(table->is.last_serial, 12);
	assert_int_equal(table->session[1].is.handles, 2);
	assert_int_equal(table->session[1].is.pid, 1001);
	assert_text(&table->session[1].handle[1].is.handle, s.name[1][1]);
	assert_text(&table->session[2].handle[0].is.note, "a note");
	assert_text(&table->session[2].handle[0].checkpoint[1].name, "two");
	assert_int_equal(table->session[2].handle[0].checkpoint[1].snapshot, 7);
	handover_table_free(table);
	codec_buffer_done(&buffer);
}

static void
an_empty_one_comes_back(void **state)
{
	struct sample s;

	(void)state;
	fill(&s);
	s.table.is.sessions = 0;
	assert_int_equal(write_and_read(&s), 0);
}

static void
what_cannot_be_is_refused(void **state)
{
	struct sample s;

	(void)state;
#define REFUSED(change) do { \
	fill(&s); \
	change; \
	assert_int_equal(write_and_read(&s), -EBADMSG); \
} while (0)
	/* what there is once */
	REFUSED(s.session[1].is.serial = 10);
	REFUSED(s.session[2].is.slot = 1);
	REFUSED(s.session[2].is.pid = 1000);
	REFUSED(s.handle[1][1].is.handle = msg_str(s.name[1][0]));
	REFUSED(s.handle[2][0].is.handle = msg_str(s.name[0][0]));
	REFUSED(s.handle[1][1].is.snapshot = 0);
	REFUSED(s.handle[2][0].checkpoint[1].snapshot = 15);
	REFUSED(s.handle[2][0].checkpoint[1].snapshot = 0);
	REFUSED(s.handle[2][0].checkpoint[1].name = msg_str("one"));
	/* what is beyond what there is */
	REFUSED(s.session[2].is.serial = 13);
	REFUSED(s.session[2].is.slot = 0);
	REFUSED(s.session[2].is.slot = 65535);
	REFUSED(s.table.is.slots = 0);
	/* what does not add up */
	REFUSED(s.session[0].is.taken = 3);
	REFUSED(s.session[1].is.taken = 1);
	REFUSED(s.session[0].is.snapshots = 2);
	REFUSED(s.handle[0][0].is.used_ms = 4);
	/* texts */
	REFUSED(s.session[0].is.has_environment = true;
		s.session[0].is.environment = msg_str(HEX "F"));
	REFUSED(s.session[0].is.has_environment = true;
		s.session[0].is.environment = msg_str(HEX "/"));
	REFUSED(s.session[0].is.tenant = msg_str("uid:1 0"));
	REFUSED(s.session[0].is.tenant = msg_str("uid:\x7f"));
	REFUSED(s.handle[0][0].is.handle = msg_str("r-abcdefgh23-"));
	REFUSED(s.handle[0][0].is.handle = msg_str("r-abcdefgh21-host"));
	REFUSED(s.handle[0][0].is.handle = msg_str("r-abcdefgh23_host"));
	REFUSED(s.handle[0][0].is.handle = msg_str("j-abcdefghijkmnpqrstuvwxyz23-host"));
	REFUSED(s.handle[0][0].is.handle = msg_str("r-abcdefgh23-ho/t"));
	REFUSED(s.handle[0][0].is.handle = msg_str("r-"));
#undef REFUSED
}

/* All that is in a table may be true of one without uids to give. */
static void
without_uids_of_their_own(void **state)
{
	struct sample s;

	(void)state;
	fill(&s);
	s.table.is.slots = 0;
	for (int i = 0; i < N_SESSIONS; i++)
		s.session[i].is.slot = 0;
	assert_int_equal(write_and_read(&s), 0);
}

static void
every_prefix_is_refused(void **state)
{
	struct codec_buffer buffer = { 0 };
	struct handover_table *table;
	struct sample s;

	(void)state;
	fill(&s);
	assert_int_equal(handover_table_write(&s.table, &buffer), 0);
	for (size_t len = 0; len < buffer.len; len++)
		assert_int_equal(read_copy(&buffer, len, &table), -EBADMSG);
	codec_buffer_append(&buffer, "", 1);
	assert_int_equal(read_copy(&buffer, buffer.len, &table), -EBADMSG);
	codec_buffer_done(&buffer);
}

/* With any single byte changed: the table is valid or refused, and nothing is read or freed that
 * should not be (the sanitizers see that). */
static void
garbage_is_survived(void **state)
{
	struct codec_buffer buffer = { 0 };
	struct handover_table *table;
	uint32_t random = 2463534242;
	unsigned int refused = 0;
	struct sample s;

	(void)state;
	fill(&s);
	assert_int_equal(handover_table_write(&s.table, &buffer), 0);
	for (int i = 0; i < 20000; i++) {
		unsigned char was[3];
		size_t at[3];

		for (int k = 0; k < 3; k++) {
			random ^= random << 13;
			random ^= random >> 17;
			random ^= random << 5;
			at[k] = (random >> 8) % buffer.len;
			was[k] = buffer.at[at[k]];
			buffer.at[at[k]] = (unsigned char)random;
		}
		if (read_copy(&buffer, buffer.len, &table) == 0)
			handover_table_free(table);
		else
			refused++;
		for (int k = 2; k >= 0; k--)
			buffer.at[at[k]] = was[k];
	}
	codec_buffer_done(&buffer);
	assert_true(refused > 10000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_comes_back),
		cmocka_unit_test(an_empty_one_comes_back),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(without_uids_of_their_own),
		cmocka_unit_test(every_prefix_is_refused),
		cmocka_unit_test(garbage_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
