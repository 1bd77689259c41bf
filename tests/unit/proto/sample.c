/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: unit tests.   Owns: one large text that samples of strings point into. */
#include "sample.h"

#include <stdlib.h>

#include <msgpack.h>

#define TEXT_MAX ((size_t)INPUT_FILE_MAX + 1)	/* the longest of any field */

/* Letters, with a sequence of two bytes at every tenth place but never cut by an even
 * length, so that any even prefix is UTF-8; odd ones too, where no sequence is crossed. */
static const char *
text(void)
{
	static char *at;

	if (!at) {
		at = malloc(TEXT_MAX);
		if (!at)
			abort();
		memset(at, 'x', TEXT_MAX);
		for (size_t i = 10; i + 24 < TEXT_MAX; i += 10)
			if (i % 1000 == 0)
				memcpy(at + i + 3, "\xc3\xa9", 2);
	}
	return at;
}

void
sample_set(const struct codec_field *field, void *value, uint64_t n)
{
	void *slot = (char *)value + field->offset;
	struct msg_strs *strs = slot;

	switch (field->kind) {
	case CODEC_U32:
		*(uint32_t *)slot = (uint32_t)n;
		break;
	case CODEC_I32:
		*(int32_t *)slot = (int32_t)n;
		break;
	case CODEC_U64:
		*(uint64_t *)slot = n;
		break;
	case CODEC_BOOL:
		*(bool *)slot = n;
		break;
	case CODEC_STR:
		if (n > TEXT_MAX)
			abort();
		*(struct msg_str *)slot = (struct msg_str){ text(), n };
		break;
	case CODEC_BIN:
		if (n > TEXT_MAX)
			abort();
		*(struct msg_bin *)slot = (struct msg_bin){ text(), n };
		break;
	case CODEC_STRS:
		free(strs->item);
		strs->item = calloc(n ? n : 1, sizeof(strs->item[0]));
		if (!strs->item)
			abort();
		strs->n = n;
		for (size_t i = 0; i < n; i++)
			strs->item[i] = (struct msg_str){ text() + i % 3, i % 5 };
		break;
	}
	if (!field->required)
		*(bool *)((char *)value + field->has_offset) = true;
}

void
sample_fill(const struct codec_shape *shape, void *value, enum sample_size size, bool optional)
{
	for (size_t i = 0; i < shape->n_fields; i++) {
		const struct codec_field *field = &shape->field[i];
		uint64_t n = size == SAMPLE_MOST ? field->most : field->least;

		if (size == SAMPLE_MIDDLE)
			n = field->least + (field->most - field->least < 9
						    ? field->most - field->least : 9);
		if (field->required || optional)
			sample_set(field, value, n);
	}
}

static bool
same_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
	return a_len == b_len && (a_len == 0 || memcmp(a, b, a_len) == 0);
}

static bool
same_value(const struct codec_field *field, const void *a, const void *b)
{
	const struct msg_strs *as = a, *bs = b;
	const struct msg_str *at = a, *bt = b;
	const struct msg_bin *ab = a, *bb = b;

	switch (field->kind) {
	case CODEC_U32:
	case CODEC_I32:
		return memcmp(a, b, sizeof(uint32_t)) == 0;
	case CODEC_U64:
		return memcmp(a, b, sizeof(uint64_t)) == 0;
	case CODEC_BOOL:
		return *(const bool *)a == *(const bool *)b;
	case CODEC_STR:
		return same_bytes(at->at, at->len, bt->at, bt->len);
	case CODEC_BIN:
		return same_bytes(ab->at, ab->len, bb->at, bb->len);
	case CODEC_STRS:
		if (as->n != bs->n)
			return false;
		for (size_t i = 0; i < as->n; i++)
			if (!same_bytes(as->item[i].at, as->item[i].len,
					bs->item[i].at, bs->item[i].len))
				return false;
		return true;
	}
	return false;
}

static bool
has(const struct codec_field *field, const void *value)
{
	return field->required || *(const bool *)((const char *)value + field->has_offset);
}

bool
sample_equal(const struct codec_shape *shape, const void *a, const void *b)
{
	for (size_t i = 0; i < shape->n_fields; i++) {
		const struct codec_field *field = &shape->field[i];

		if (has(field, a) != has(field, b))
			return false;
		if (has(field, a) && !same_value(field, (const char *)a + field->offset,
						 (const char *)b + field->offset))
			return false;
	}
	return true;
}

const unsigned int *
sample_types(size_t *n_r)
{
	static const unsigned int types[] = {
#define MESSAGE(NAME, name, number, from, body_max, fds_min, fds_max) MSG_##NAME,
#define FIELD(name, field, type, need, least, most)
#define END(name)
#include "proto/messages.def"
#undef MESSAGE
#undef FIELD
#undef END
	};

	*n_r = sizeof(types) / sizeof(types[0]);
	return types;
}

/* ---- bodies ---- */

static int
append(void *buffer, const char *bytes, size_t len)
{
	codec_buffer_append(buffer, bytes, len);
	return 0;
}

static void
pack_str(msgpack_packer *packer, const char *at, size_t len)
{
	msgpack_pack_str(packer, len);
	msgpack_pack_str_body(packer, at, len);
}

static void
pack_object(msgpack_packer *packer, enum sample_object object)
{
	switch (object) {
	case OBJECT_NIL:
		msgpack_pack_nil(packer);
		break;
	case OBJECT_BOOL:
		msgpack_pack_true(packer);
		break;
	case OBJECT_POSITIVE:
		msgpack_pack_uint32(packer, 70000);
		break;
	case OBJECT_NEGATIVE:
		msgpack_pack_int32(packer, -5);
		break;
	case OBJECT_FLOAT:
		msgpack_pack_double(packer, 1.0);
		break;
	case OBJECT_STR:
		pack_str(packer, "xxxx", 4);
		break;
	case OBJECT_BIN:
		msgpack_pack_bin(packer, 4);
		msgpack_pack_bin_body(packer, "xxxx", 4);
		break;
	case OBJECT_EXT:
		msgpack_pack_ext(packer, 4, 1);
		msgpack_pack_ext_body(packer, "xxxx", 4);
		break;
	case OBJECT_MAP:
		msgpack_pack_map(packer, 0);
		break;
	case OBJECT_ARRAY:
		msgpack_pack_array(packer, 1);
		pack_str(packer, "xxxx", 4);
		break;
	case OBJECT_ARRAY_OF_NUMBERS:
		msgpack_pack_array(packer, 1);
		msgpack_pack_uint32(packer, 1);
		break;
	case OBJECT_ARRAY_OF_ARRAYS:
		msgpack_pack_array(packer, 1);
		msgpack_pack_array(packer, 0);
		break;
	case OBJECT_COUNT:
		abort();
	}
}

static void
pack_value(msgpack_packer *packer, const struct codec_field *field, const void *slot)
{
	const struct msg_strs *strs = slot;
	const struct msg_str *str = slot;
	const struct msg_bin *bin = slot;

	switch (field->kind) {
	case CODEC_U32:
		msgpack_pack_uint32(packer, *(const uint32_t *)slot);
		break;
	case CODEC_I32:
		msgpack_pack_int32(packer, *(const int32_t *)slot);
		break;
	case CODEC_U64:
		msgpack_pack_uint64(packer, *(const uint64_t *)slot);
		break;
	case CODEC_BOOL:
		if (*(const bool *)slot)
			msgpack_pack_true(packer);
		else
			msgpack_pack_false(packer);
		break;
	case CODEC_STR:
		pack_str(packer, str->at, str->len);
		break;
	case CODEC_BIN:
		msgpack_pack_bin(packer, bin->len);
		msgpack_pack_bin_body(packer, bin->at, bin->len);
		break;
	case CODEC_STRS:
		msgpack_pack_array(packer, strs->n);
		for (size_t i = 0; i < strs->n; i++)
			pack_str(packer, strs->item[i].at, strs->item[i].len);
		break;
	}
}

void
sample_body(const struct codec_shape *shape, const void *value, struct codec_buffer *body,
	    enum sample_twist twist, size_t f, enum sample_object object)
{
	msgpack_packer packer;
	size_t pairs = 0;

	for (size_t i = 0; i < shape->n_fields; i++)
		pairs += has(&shape->field[i], value);
	pairs += twist == TWIST_ADD || twist == TWIST_REPEAT;
	pairs -= twist == TWIST_OMIT;

	msgpack_packer_init(&packer, body, append);
	msgpack_pack_map(&packer, pairs);
	for (size_t i = 0; i < shape->n_fields; i++) {
		const struct codec_field *field = &shape->field[i];
		int times = i == f && twist == TWIST_REPEAT ? 2 : 1;

		if (!has(field, value) || (i == f && twist == TWIST_OMIT))
			continue;
		while (times--) {
			if (i == f && twist == TWIST_KEY)
				pack_object(&packer, object);
			else
				pack_str(&packer, field->name, field->name_len);
			if (i == f && twist == TWIST_REPLACE)
				pack_object(&packer, object);
			else
				pack_value(&packer, field, (const char *)value + field->offset);
		}
	}
	if (twist == TWIST_ADD) {
		pack_str(&packer, "surplus", 7);
		pack_object(&packer, object);
	}
}
