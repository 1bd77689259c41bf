/* SPDX-License-Identifier: Apache-2.0 */
/* The codec against every row of messages.def: what goes in comes out, and everything
 * else is refused. */
#include "proto/codec.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sample.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* Calls check with every message in every size, with and without what is optional. */
static void
for_every_sample(void (*check)(unsigned int type, struct msg *msg, struct codec_buffer *body))
{
	const unsigned int *types;
	size_t n;

	types = sample_types(&n);
	for (size_t i = 0; i < n; i++)
		for (int size = 0; size < SAMPLE_SIZES; size++)
			for (int optional = 0; optional < 2; optional++) {
				struct msg msg = { .type = types[i] };
				struct codec_buffer body = { 0 };

				sample_fill(codec_shape(types[i]), &msg.hello, size, optional);
				assert_int_equal(codec_encode(&msg, &body), 0);
				check(types[i], &msg, &body);
				codec_buffer_done(&body);
				codec_free(&msg);
			}
}

static int
decode(unsigned int type, const struct codec_buffer *body, struct msg *msg_r)
{
	return codec_decode(type, body->at, body->len, msg_r);
}

static void
expect(unsigned int type, const struct codec_buffer *body, int result)
{
	struct msg msg = { 0 };
	int r = decode(type, body, &msg);

	if (r != result)
		print_error("message %u: %d instead of %d\n", type, r, result);
	assert_int_equal(r, result);
	codec_free(&msg);
}

static void
comes_back(unsigned int type, struct msg *msg, struct codec_buffer *body)
{
	struct msg back;

	assert_int_equal(decode(type, body, &back), 0);
	assert_int_equal(back.type, type);
	assert_true(sample_equal(codec_shape(type), &msg->hello, &back.hello));
	codec_free(&back);
	codec_free(&back);
}

static void
every_message_comes_back(void **state)
{
	(void)state;
	for_every_sample(comes_back);
}

static void
prefixes_are_refused(unsigned int type, struct msg *msg, struct codec_buffer *body)
{
	size_t step = 1;

	(void)msg;
	for (size_t len = 0; len < body->len; len += step) {
		struct codec_buffer prefix = { .at = body->at, .len = len };

		if (len < 4096) {
			/* a copy of its own, so that one byte read too many is seen */
			prefix = (struct codec_buffer){ 0 };
			prefix.at = malloc(len ? len : 1);
			assert_non_null(prefix.at);
			memcpy(prefix.at, body->at, len);
			prefix.len = len;
		}
		expect(type, &prefix, -EBADMSG);
		if (len < 4096)
			codec_buffer_done(&prefix);
		/* all of them where objects begin and end; in long strings a sample: each prefix of
		 * megabytes is read whole */
		step = len < 512 || body->len - len < 512 ? 1 : body->len / 64 + 1;
		if (step > body->len - len)
			step = 1;
	}
}

static void
every_prefix_is_refused(void **state)
{
	(void)state;
	for_every_sample(prefixes_are_refused);
}

static void
surplus_is_refused(unsigned int type, struct msg *msg, struct codec_buffer *body)
{
	(void)msg;
	codec_buffer_append(body, "\x00", 1);
	expect(type, body, -EBADMSG);
	body->at[body->len - 1] = 0xc1;
	expect(type, body, -EBADMSG);
	body->len--;
	expect(type, body, 0);
}

static void
bytes_left_over_are_refused(void **state)
{
	(void)state;
	for_every_sample(surplus_is_refused);
}

/* Calls check for each field of each message, with a value that holds all fields. */
static void
for_every_field(void (*check)(unsigned int type, const struct codec_field *field, size_t f,
			      struct msg *msg))
{
	const unsigned int *types;
	size_t n;

	types = sample_types(&n);
	for (size_t i = 0; i < n; i++)
		for (size_t f = 0; f < codec_shape(types[i])->n_fields; f++) {
			const struct codec_shape *shape = codec_shape(types[i]);
			struct msg msg = { .type = types[i] };

			sample_fill(shape, &msg.hello, SAMPLE_MIDDLE, true);
			check(types[i], &shape->field[f], f, &msg);
			codec_free(&msg);
		}
}

static void
expect_twisted(unsigned int type, struct msg *msg, enum sample_twist twist, size_t f,
	       enum sample_object object, int result)
{
	struct codec_buffer body = { 0 };

	sample_body(codec_shape(type), &msg->hello, &body, twist, f, object);
	expect(type, &body, result);
	codec_buffer_done(&body);
}

static bool
is_right(enum codec_kind kind, enum sample_object object)
{
	switch (kind) {
	case CODEC_U32:
	case CODEC_U64:
		return object == OBJECT_POSITIVE;
	case CODEC_I32:
		return object == OBJECT_POSITIVE || object == OBJECT_NEGATIVE;
	case CODEC_BOOL:
		return object == OBJECT_BOOL;
	case CODEC_STR:
		return object == OBJECT_STR;
	case CODEC_BIN:
		return object == OBJECT_BIN;
	case CODEC_STRS:
		return object == OBJECT_ARRAY;
	}
	return false;
}

static void
wrong_types(unsigned int type, const struct codec_field *field, size_t f, struct msg *msg)
{
	for (enum sample_object object = 0; object < OBJECT_COUNT; object++) {
		if (!is_right(field->kind, object))
			expect_twisted(type, msg, TWIST_REPLACE, f, object, -EBADMSG);
		expect_twisted(type, msg, TWIST_KEY, f, object, -EBADMSG);
	}
}

static void
wrong_types_are_refused(void **state)
{
	(void)state;
	for_every_field(wrong_types);
}

static void
keys(unsigned int type, const struct codec_field *field, size_t f, struct msg *msg)
{
	expect_twisted(type, msg, TWIST_NONE, f, OBJECT_NIL, 0);
	expect_twisted(type, msg, TWIST_REPEAT, f, OBJECT_NIL, -EBADMSG);
	expect_twisted(type, msg, TWIST_OMIT, f, OBJECT_NIL, field->required ? -EBADMSG : 0);
	for (enum sample_object object = 0; object < OBJECT_COUNT; object++)
		expect_twisted(type, msg, TWIST_ADD, f, object, -EBADMSG);
}

static void
unknown_repeated_and_missing_keys_are_refused(void **state)
{
	(void)state;
	for_every_field(keys);
}

/* The same value, encoded by the codec and by the test. */
static void
expect_both_ways(unsigned int type, struct msg *msg, bool right)
{
	struct codec_buffer body = { 0 };

	assert_int_equal(codec_encode(msg, &body), right ? 0 : -EINVAL);
	if (!right)
		assert_int_equal(body.len, 0);
	codec_buffer_done(&body);
	expect_twisted(type, msg, TWIST_NONE, 0, OBJECT_NIL, right ? 0 : -EBADMSG);
}

static void
bounds(unsigned int type, const struct codec_field *field, size_t f, struct msg *msg)
{
	(void)f;
	sample_set(field, &msg->hello, field->least);
	expect_both_ways(type, msg, true);
	if (field->least > 0) {
		sample_set(field, &msg->hello, field->least - 1);
		expect_both_ways(type, msg, false);
	}
	sample_set(field, &msg->hello, field->most);
	expect_both_ways(type, msg, true);
	if (field->kind == CODEC_BOOL || field->most == UINT64_MAX ||
	    (field->kind == CODEC_U32 && field->most == UINT32_MAX))
		return;
	sample_set(field, &msg->hello, field->most + 1);
	expect_both_ways(type, msg, false);
}

static void
every_bound_holds_at_n_and_not_at_n_and_one(void **state)
{
	(void)state;
	for_every_field(bounds);
}

static void
items(unsigned int type, const struct codec_field *field, size_t f, struct msg *msg)
{
	struct msg_strs *strs = (struct msg_strs *)((char *)&msg->hello + field->offset);
	static char text[STRS_ITEM_MAX + 1];
	struct codec_buffer body = { 0 };

	(void)f;
	if (field->kind != CODEC_STRS)
		return;
	memset(text, 'x', sizeof(text));
	strs->item[0] = (struct msg_str){ text, STRS_ITEM_MAX };
	if (codec_shape(type)->body_max > STRS_ITEM_MAX + 4096) {
		expect_both_ways(type, msg, true);
		strs->item[0].len++;
		expect_both_ways(type, msg, false);
	} else {
		assert_int_equal(codec_encode(msg, &body), -EMSGSIZE);
		codec_buffer_done(&body);
	}
	strs->item[0] = (struct msg_str){ "a\0b", 3 };
	expect_both_ways(type, msg, false);
	strs->item[0] = (struct msg_str){ "\xc3", 1 };
	expect_both_ways(type, msg, false);
}

static void
each_string_of_a_list_is_bounded(void **state)
{
	(void)state;
	for_every_field(items);
}

/* ---- text ---- */

static const struct text_case {
	const char *name, *bytes;
	size_t len, good;
} text_cases[] = {
#define TEXT(name, bytes, good) { name, bytes, sizeof(bytes) - 1, good }
	TEXT("empty", "", 0),
	TEXT("letters", "plain text", 10),
	TEXT("nul", "a\0b", 1),
	TEXT("nul after a word of eight", "01234567\0", 8),
	TEXT("nul in a word of eight", "0123\0" "567", 4),
	TEXT("0x01 is text", "\x01\x01\x01\x01\x01\x01\x01\x01", 8),
	TEXT("0x7f is text", "\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f", 9),
	TEXT("nul before 0x01", "aaaaaa\0\x01", 6),
	TEXT("two bytes", "\xc3\xa9", 2),
	TEXT("first of two", "\xc2\x80", 2),
	TEXT("last of two", "\xdf\xbf", 2),
	TEXT("three bytes", "\xe2\x82\xac", 3),
	TEXT("first of three", "\xe0\xa0\x80", 3),
	TEXT("before surrogates", "\xed\x9f\xbf", 3),
	TEXT("after surrogates", "\xee\x80\x80", 3),
	TEXT("four bytes", "\xf0\x9f\x90\x8d", 4),
	TEXT("first of four", "\xf0\x90\x80\x80", 4),
	TEXT("last there is", "\xf4\x8f\xbf\xbf", 4),
	TEXT("continuation alone", "ab\x80", 2),
	TEXT("slash in two", "\xc0\xaf", 0),
	TEXT("nul in two", "\xc0\x80", 0),
	TEXT("0xc1", "\xc1\xbf", 0),
	TEXT("slash in three", "\xe0\x80\xaf", 0),
	TEXT("long form of three", "\xe0\x9f\xbf", 0),
	TEXT("long form of four", "\xf0\x8f\xbf\xbf", 0),
	TEXT("first surrogate", "\xed\xa0\x80", 0),
	TEXT("last surrogate", "\xed\xbf\xbf", 0),
	TEXT("above all", "\xf4\x90\x80\x80", 0),
	TEXT("0xf5", "\xf5\x80\x80\x80", 0),
	TEXT("0xff", "01234567\xff", 8),
	TEXT("two cut", "x\xc3", 1),
	TEXT("three cut", "x\xe2\x82", 1),
	TEXT("four cut", "x\xf0\x9f\x90", 1),
	TEXT("third no continuation", "\xe2\x82" "a", 0),
	TEXT("fourth no continuation", "\xf0\x9f\x90" "a", 0),
	TEXT("second no continuation", "\xc3" "a", 0),
#undef TEXT
};

static void
text_is_utf8_without_nul(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(text_cases); i++) {
		const struct text_case *c = &text_cases[i];
		struct msg msg = { .type = MSG_HELLO, .hello.build = { c->bytes, c->len } };
		char *exact = malloc(c->len ? c->len : 1);

		assert_non_null(exact);
		memcpy(exact, c->bytes, c->len);
		if (codec_text_prefix(exact, c->len) != c->good)
			print_error("%s\n", c->name);
		assert_int_equal(codec_text_prefix(exact, c->len), c->good);
		if (c->len > 0)
			expect_both_ways(MSG_HELLO, &msg, c->good == c->len);
		free(exact);
	}
}

static void
binary_may_hold_anything(void **state)
{
	static const char bytes[] = "\0\xff\xc0\x80";
	struct msg msg = { .type = MSG_RUN, .run = { .id = 1, .value_max = 256,
		.script = { bytes, sizeof(bytes) } } };

	(void)state;
	expect_both_ways(MSG_RUN, &msg, true);
}

/* ---- bytes that no encoder makes ---- */

static const struct raw_case {
	const char *name, *bytes;
	size_t len;
	int result;
} raw_cases[] = {	/* bodies of READY: { worker: U64 from 1 } */
#define RAW(name, bytes, result) { name, bytes, sizeof(bytes) - 1, result }
	RAW("plain", "\x81\xa6" "worker\x01", 0),
	RAW("map 16", "\xde\x00\x01\xa6" "worker\x01", 0),
	RAW("map 32", "\xdf\x00\x00\x00\x01\xa6" "worker\x01", 0),
	RAW("key as str 32", "\x81\xdb\x00\x00\x00\x06" "worker\x01", 0),
	RAW("uint 8", "\x81\xa6" "worker\xcc\x01", 0),
	RAW("uint 16", "\x81\xa6" "worker\xcd\x00\x01", 0),
	RAW("uint 32", "\x81\xa6" "worker\xce\x00\x00\x00\x01", 0),
	RAW("uint 64", "\x81\xa6" "worker\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 0),
	RAW("int 8", "\x81\xa6" "worker\xd0\x01", 0),
	RAW("int 64", "\x81\xa6" "worker\xd3\x00\x00\x00\x00\x00\x00\x00\x01", 0),
	RAW("int 64, negative", "\x81\xa6" "worker\xd3\xff\xff\xff\xff\xff\xff\xff\xff", -EBADMSG),
	RAW("key as bin", "\x81\xc4\x06" "worker\x01", -EBADMSG),
	RAW("empty", "", -EBADMSG),
	RAW("no map: array", "\x92\xa6" "worker\x01", -EBADMSG),
	RAW("no map: number", "\x01", -EBADMSG),
	RAW("no map: string", "\xa6" "worker", -EBADMSG),
	RAW("empty map", "\x80", -EBADMSG),
	RAW("never used byte", "\xc1", -EBADMSG),
	RAW("nil for a value", "\x81\xa6" "worker\xc0", -EBADMSG),
	RAW("map claims 15", "\x8f\xa6" "worker\x01", -EBADMSG),
	RAW("map claims 4G", "\xdf\xff\xff\xff\xff\xa6" "worker\x01", -EBADMSG),
	RAW("array claims 4G", "\x81\xa6" "worker\xdd\xff\xff\xff\xff", -EBADMSG),
	RAW("string claims 4G", "\x81\xa6" "worker\xdb\xff\xff\xff\xff", -EBADMSG),
	RAW("binary claims 4G", "\x81\xa6" "worker\xc6\xff\xff\xff\xff", -EBADMSG),
	RAW("ext claims 4G", "\x81\xa6" "worker\xc9\xff\xff\xff\xff\x01", -EBADMSG),
	RAW("count cut", "\x81\xa6" "worker\xdd\xff\xff", -EBADMSG),
	RAW("key longer than its map", "\x81\xa7" "worker\x01", -EBADMSG),
	RAW("prefix of a key", "\x81\xa5" "worke\x01", -EBADMSG),
	RAW("key and more", "\x81\xa7" "workers\x01", -EBADMSG),
	RAW("nested arrays", "\x81\xa6" "worker\x91\x91\x91\x91\x91\x01", -EBADMSG),
	RAW("nested maps", "\x81\xa6" "worker\x81\x01\x81\x01\x81\x01\x01", -EBADMSG),
	RAW("more objects than a message has", "\x81\xa6" "worker\x93\x01\x01\x01", -EBADMSG),
#undef RAW
};

static void
raw_bytes_are_judged(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(raw_cases); i++) {
		const struct raw_case *c = &raw_cases[i];
		struct codec_buffer exact = { 0 };

		codec_buffer_append(&exact, c->bytes, c->len);
		if (c->result != codec_decode(MSG_LEFT_RESTART, exact.at, exact.len,
					      &(struct msg){ 0 }))
			print_error("%s\n", c->name);
		expect(MSG_LEFT_RESTART, &exact, c->result);
		codec_buffer_done(&exact);
	}
}

static void
deep_nesting_is_refused(void **state)
{
	struct codec_buffer body = { 0 };

	(void)state;
	codec_buffer_append(&body, "\x81\xa6script", 8);
	for (int i = 0; i < 1000000; i++)
		codec_buffer_append(&body, "\x91", 1);
	codec_buffer_append(&body, "\x01", 1);
	expect(MSG_RUN, &body, -EBADMSG);
	codec_buffer_done(&body);
}

static void
a_body_above_its_cap_is_refused(void **state)
{
	static char text[STRS_ITEM_MAX];
	static struct msg_str args[ARGS_MAX];
	struct msg msg = { .type = MSG_RUN, .run = { .id = 1, .value_max = 256,
		.args = { args, ARGS_MAX } } };
	struct codec_buffer body = { 0 };

	(void)state;
	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < ARGS_MAX; i++)
		args[i] = (struct msg_str){ text, sizeof(text) };
	codec_buffer_append(&body, "before", 6);
	assert_int_equal(codec_encode(&msg, &body), -EMSGSIZE);
	assert_int_equal(body.len, 6);
	codec_buffer_done(&body);
	expect_twisted(MSG_RUN, &msg, TWIST_NONE, 0, OBJECT_NIL, -EBADMSG);
}

static void
strings_point_into_the_body(void **state)
{
	struct msg msg = { .type = MSG_DONE, .done = { .id = 1, .has_value_repr = true,
		.value_repr = msg_str("[1, 2]") } }, back;
	struct codec_buffer body = { 0 };

	(void)state;
	assert_int_equal(codec_encode(&msg, &body), 0);
	assert_int_equal(decode(MSG_DONE, &body, &back), 0);
	assert_true(back.done.has_value_repr);
	assert_false(back.done.has_value_json);
	assert_in_range((uintptr_t)back.done.value_repr.at, (uintptr_t)body.at,
			(uintptr_t)(body.at + body.len));
	codec_free(&back);
	codec_buffer_done(&body);
}

static void
failure_leaves_the_result_alone(void **state)
{
	struct msg msg = { .type = MSG_EXITED, .exited.status = 77 };

	(void)state;
	assert_int_equal(codec_decode(MSG_READY, "\x80", 1, &msg), -EBADMSG);
	assert_int_equal(msg.type, MSG_EXITED);
	assert_int_equal(msg.exited.status, 77);
}

static void
numbers_without_a_message_are_unknown(void **state)
{
	const unsigned int *types;
	size_t n, found = 0;

	(void)state;
	types = sample_types(&n);
	for (unsigned int number = 0; number < 100000; number++)
		found += codec_shape(number) != NULL;
	assert_int_equal(found, n);
	for (size_t i = 0; i < n; i++)
		assert_non_null(codec_shape(types[i]));
	assert_null(codec_shape(0));
	assert_null(codec_shape(UINT32_MAX));
	assert_int_equal(codec_decode(0, "\x80", 1, &(struct msg){ 0 }), -EBADMSG);
	assert_int_equal(codec_encode(&(struct msg){ .type = 0 }, &(struct codec_buffer){ 0 }),
			 -EINVAL);
}

/* ---- the type that no message has yet ---- */

static const struct codec_field signed_fields[] = {
	{ "n", 1, CODEC_I32, true, 0, 0, (uint64_t)(int64_t)-40, 50 },
};
static const struct codec_shape signed_shape = {
	.name = "SIGNED", .body_max = 64, .field = signed_fields, .n_fields = 1,
};

static void
signed_numbers_have_bounds_on_both_sides(void **state)
{
	static const struct { int32_t n; int encoded; } cases[] = {
		{ -41, -EINVAL }, { -40, 0 }, { -1, 0 }, { 0, 0 }, { 50, 0 }, { 51, -EINVAL },
		{ INT32_MIN, -EINVAL }, { INT32_MAX, -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		struct codec_buffer body = { 0 };
		int32_t back = 99;

		assert_int_equal(codec_encode_shape(&signed_shape, &cases[i].n, &body),
				 cases[i].encoded);
		body.len = 0;
		sample_body(&signed_shape, &cases[i].n, &body, TWIST_NONE, 0, OBJECT_NIL);
		assert_int_equal(codec_decode_shape(&signed_shape, body.at, body.len, &back,
						    sizeof(back)),
				 cases[i].encoded ? -EBADMSG : 0);
		if (cases[i].encoded == 0)
			assert_int_equal(back, cases[i].n);
		codec_buffer_done(&body);
	}
	assert_int_equal(codec_decode_shape(&signed_shape,
		"\x81\xa1n\xd3\xff\xff\xff\xfe\xff\xff\xff\xff", 12, &(int32_t){ 0 }, 4), -EBADMSG);
	assert_int_equal(codec_decode_shape(&signed_shape,
		"\x81\xa1n\xcf\x00\x00\x00\x01\x00\x00\x00\x00", 12, &(int32_t){ 0 }, 4), -EBADMSG);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_comes_back),
		cmocka_unit_test(every_prefix_is_refused),
		cmocka_unit_test(bytes_left_over_are_refused),
		cmocka_unit_test(wrong_types_are_refused),
		cmocka_unit_test(unknown_repeated_and_missing_keys_are_refused),
		cmocka_unit_test(every_bound_holds_at_n_and_not_at_n_and_one),
		cmocka_unit_test(each_string_of_a_list_is_bounded),
		cmocka_unit_test(text_is_utf8_without_nul),
		cmocka_unit_test(binary_may_hold_anything),
		cmocka_unit_test(raw_bytes_are_judged),
		cmocka_unit_test(deep_nesting_is_refused),
		cmocka_unit_test(a_body_above_its_cap_is_refused),
		cmocka_unit_test(strings_point_into_the_body),
		cmocka_unit_test(failure_leaves_the_result_alone),
		cmocka_unit_test(numbers_without_a_message_are_unknown),
		cmocka_unit_test(signed_numbers_have_bounds_on_both_sides),
	};

	return cmocka_run_group_tests_name("codec", tests, NULL, NULL);
}
