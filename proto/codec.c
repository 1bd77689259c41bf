/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, zygotes and workers.   Owns: decoded arrays of strings.
 * Reads:   bodies of messages, hostile from the first byte.
 * Everything about a message comes from the rows of messages.def. */
#include "proto/codec.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <msgpack.h>

#include "base/utf8.h"
#include "base/xalloc.h"

/* ---- the table ---- */

#define IS_REQUIRED true
#define IS_OPTIONAL false
#define HAS_OFFSET_REQUIRED(name, field) 0
#define HAS_OFFSET_OPTIONAL(name, field) offsetof(struct msg_##name, has_##field)

#define MESSAGE(NAME, name, number, from, body_max, fds_min, fds_max) \
	static const struct codec_field name##_fields[] = {
#define FIELD(name, field, type, need, least, most) \
	{ #field, sizeof(#field) - 1, CODEC_##type, IS_##need, \
	  offsetof(struct msg_##name, field), HAS_OFFSET_##need(name, field), \
	  (uint64_t)(least), (uint64_t)(most) },
#define END(name) }; \
	static_assert(sizeof(name##_fields) / sizeof(name##_fields[0]) <= CODEC_FIELDS_MAX, \
		      "the decoder has one bit for each field");
#include "proto/messages.def"
#undef MESSAGE
#undef FIELD
#undef END

static const struct codec_shape shapes[] = {
#define MESSAGE(NAME, name, number, from, body_max, fds_min, fds_max) \
	[(number)] = { #NAME, (from), (body_max), (fds_min), (fds_max), name##_fields, \
		       sizeof(name##_fields) / sizeof(name##_fields[0]) },
#define FIELD(name, field, type, need, least, most)
#define END(name)
#include "proto/messages.def"
#undef MESSAGE
#undef FIELD
#undef END
};

static_assert(sizeof(shapes) / sizeof(shapes[0]) <= 256, "a type is one byte of a frame");
static_assert(MSG_BODY_MAX <= UINT32_MAX, "a length is four bytes of a frame");

const struct codec_shape *
codec_shape(unsigned int type)
{
	if (type >= sizeof(shapes) / sizeof(shapes[0]) || !shapes[type].name)
		return NULL;
	return &shapes[type];
}

/* All members of the union begin at this address. */
static void *
value_of(struct msg *msg)
{
	return &msg->hello;
}

/* ---- bounds, the same in both directions ---- */

size_t
codec_text_prefix(const char *at, size_t len)
{
	const char *nul = len > 0 ? memchr(at, 0, len) : NULL;

	return utf8_prefix(at, nul ? (size_t)(nul - at) : len);
}

static bool
is_text(const struct msg_str *str)
{
	return codec_text_prefix(str->at, str->len) == str->len;
}

/* Does the row allow the value at slot? */
static bool
in_bounds(const struct codec_field *field, const void *slot)
{
	const struct msg_strs *strs = slot;
	const struct msg_str *str = slot;
	const struct msg_bin *bin = slot;
	uint64_t n = 0;

	switch (field->kind) {
	case CODEC_I32:
		return *(const int32_t *)slot >= (int64_t)field->least &&
		       *(const int32_t *)slot <= (int64_t)field->most;
	case CODEC_U32:
		n = *(const uint32_t *)slot;
		break;
	case CODEC_U64:
		n = *(const uint64_t *)slot;
		break;
	case CODEC_BOOL:
		n = *(const bool *)slot;
		break;
	case CODEC_STR:
		n = str->len;
		break;
	case CODEC_BIN:
		n = bin->len;
		break;
	case CODEC_STRS:
		n = strs->n;
		break;
	}
	if (n < field->least || n > field->most)
		return false;

	if (field->kind == CODEC_STR)
		return is_text(str);
	if (field->kind == CODEC_STRS)
		for (size_t i = 0; i < strs->n; i++)
			if (strs->item[i].len > STRS_ITEM_MAX || !is_text(&strs->item[i]))
				return false;
	return true;
}

static bool
is_present(const struct codec_field *field, const void *value)
{
	return field->required || *(const bool *)((const char *)value + field->has_offset);
}

/* ---- encoding ---- */

void
codec_buffer_done(struct codec_buffer *buffer)
{
	free(buffer->at);
	*buffer = (struct codec_buffer){ 0 };
}

void
codec_buffer_append(struct codec_buffer *buffer, const void *bytes, size_t len)
{
	size_t size = buffer->size ? buffer->size : 256;

	/* every length was held to its bound before, so sums cannot overflow */
	while (size - buffer->len < len)
		size *= 2;
	if (size != buffer->size) {
		buffer->at = xrealloc(buffer->at, size);
		buffer->size = size;
	}
	if (len > 0)
		memcpy(buffer->at + buffer->len, bytes, len);
	buffer->len += len;
}

static int
codec_append(void *buffer, const char *bytes, size_t len)
{
	codec_buffer_append(buffer, bytes, len);
	return 0;
}

static int
pack_str(msgpack_packer *packer, const char *at, size_t len)
{
	int r = msgpack_pack_str(packer, len);

	return r < 0 ? r : msgpack_pack_str_body(packer, at, len);
}

static int
pack_value(msgpack_packer *packer, const struct codec_field *field, const void *slot)
{
	const struct msg_strs *strs = slot;
	const struct msg_str *str = slot;
	const struct msg_bin *bin = slot;
	int r = 0;

	switch (field->kind) {
	case CODEC_U32:
		return msgpack_pack_uint32(packer, *(const uint32_t *)slot);
	case CODEC_U64:
		return msgpack_pack_uint64(packer, *(const uint64_t *)slot);
	case CODEC_I32:
		return msgpack_pack_int32(packer, *(const int32_t *)slot);
	case CODEC_BOOL:
		return *(const bool *)slot ? msgpack_pack_true(packer)
					   : msgpack_pack_false(packer);
	case CODEC_STR:
		return pack_str(packer, str->at, str->len);
	case CODEC_BIN:
		r = msgpack_pack_bin(packer, bin->len);
		return r < 0 ? r : msgpack_pack_bin_body(packer, bin->at, bin->len);
	case CODEC_STRS:
		r = msgpack_pack_array(packer, strs->n);
		for (size_t i = 0; r >= 0 && i < strs->n; i++)
			r = pack_str(packer, strs->item[i].at, strs->item[i].len);
		return r;
	}
	return -EINVAL;
}

int
codec_encode_shape(const struct codec_shape *shape, const void *value,
		   struct codec_buffer *buffer)
{
	size_t before = buffer->len, present = 0;
	msgpack_packer packer;
	int r;

	for (size_t i = 0; i < shape->n_fields; i++) {
		const struct codec_field *field = &shape->field[i];

		if (!is_present(field, value))
			continue;
		if (!in_bounds(field, (const char *)value + field->offset))
			return -EINVAL;
		present++;
	}

	msgpack_packer_init(&packer, buffer, codec_append);
	r = msgpack_pack_map(&packer, present);
	for (size_t i = 0; r >= 0 && i < shape->n_fields; i++) {
		const struct codec_field *field = &shape->field[i];

		if (!is_present(field, value))
			continue;
		r = pack_str(&packer, field->name, field->name_len);
		if (r >= 0)
			r = pack_value(&packer, field, (const char *)value + field->offset);
		if (r >= 0 && buffer->len - before > shape->body_max)
			r = -EMSGSIZE;
	}
	if (r < 0) {
		buffer->len = before;
		return r;
	}
	return 0;
}

int
codec_encode(const struct msg *msg, struct codec_buffer *buffer)
{
	const struct codec_shape *shape = codec_shape(msg->type);

	if (!shape)
		return -EINVAL;
	return codec_encode_shape(shape, &msg->hello, buffer);
}

/* ---- decoding ---- */

static int
store_strs(const msgpack_object *object, struct msg_strs *strs, uint64_t most)
{
	const msgpack_object_array *array = &object->via.array;

	if (object->type != MSGPACK_OBJECT_ARRAY || array->size > most)
		return -EBADMSG;
	if (array->size == 0)
		return 0;
	strs->item = xcalloc(array->size, sizeof(strs->item[0]));
	strs->n = array->size;
	for (size_t i = 0; i < strs->n; i++) {
		if (array->ptr[i].type != MSGPACK_OBJECT_STR)
			return -EBADMSG;	/* item is freed with the message */
		strs->item[i].at = array->ptr[i].via.str.ptr;
		strs->item[i].len = array->ptr[i].via.str.size;
	}
	return 0;
}

static int
store_number(const struct codec_field *field, const msgpack_object *object, void *slot)
{
	if (field->kind == CODEC_I32 && object->type == MSGPACK_OBJECT_NEGATIVE_INTEGER) {
		if (object->via.i64 < INT32_MIN)
			return -EBADMSG;
		*(int32_t *)slot = (int32_t)object->via.i64;
		return 0;
	}
	if (object->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
		return -EBADMSG;
	if (field->kind == CODEC_U64) {
		*(uint64_t *)slot = object->via.u64;
		return 0;
	}
	if (object->via.u64 > (field->kind == CODEC_I32 ? INT32_MAX : UINT32_MAX))
		return -EBADMSG;
	if (field->kind == CODEC_I32)
		*(int32_t *)slot = (int32_t)object->via.u64;
	else
		*(uint32_t *)slot = (uint32_t)object->via.u64;
	return 0;
}

/* Stores an object of the right type at slot; bounds are checked later. */
static int
codec_store(const struct codec_field *field, const msgpack_object *object, void *slot)
{
	switch (field->kind) {
	case CODEC_U32:
	case CODEC_U64:
	case CODEC_I32:
		return store_number(field, object, slot);
	case CODEC_BOOL:
		if (object->type != MSGPACK_OBJECT_BOOLEAN)
			return -EBADMSG;
		*(bool *)slot = object->via.boolean;
		return 0;
	case CODEC_STR:
		if (object->type != MSGPACK_OBJECT_STR)
			return -EBADMSG;
		*(struct msg_str *)slot = (struct msg_str){ .at = object->via.str.ptr,
							    .len = object->via.str.size };
		return 0;
	case CODEC_BIN:
		if (object->type != MSGPACK_OBJECT_BIN)
			return -EBADMSG;
		*(struct msg_bin *)slot = (struct msg_bin){ .at = object->via.bin.ptr,
							    .len = object->via.bin.size };
		return 0;
	case CODEC_STRS:
		return store_strs(object, slot, field->most);
	}
	return -EBADMSG;
}

static size_t
find_field(const struct codec_shape *shape, const msgpack_object *key)
{
	size_t i;

	if (key->type != MSGPACK_OBJECT_STR)
		return shape->n_fields;
	for (i = 0; i < shape->n_fields; i++)
		if (shape->field[i].name_len == key->via.str.size &&
		    memcmp(shape->field[i].name, key->via.str.ptr, key->via.str.size) == 0)
			break;
	return i;
}

static int
store_map(const struct codec_shape *shape, const msgpack_object *map, void *value)
{
	uint32_t seen = 0;

	if (map->type != MSGPACK_OBJECT_MAP)
		return -EBADMSG;
	for (size_t i = 0; i < map->via.map.size; i++) {
		const msgpack_object_kv *pair = &map->via.map.ptr[i];
		size_t f = find_field(shape, &pair->key);
		const struct codec_field *field;
		void *slot;
		int r;

		if (f == shape->n_fields || seen & UINT32_C(1) << f)
			return -EBADMSG;
		seen |= UINT32_C(1) << f;
		field = &shape->field[f];
		slot = (char *)value + field->offset;
		r = codec_store(field, &pair->val, slot);
		if (r < 0)
			return r;
		if (!in_bounds(field, slot))
			return -EBADMSG;
		if (!field->required)
			*(bool *)((char *)value + field->has_offset) = true;
	}
	for (size_t i = 0; i < shape->n_fields; i++)
		if (shape->field[i].required && !(seen & UINT32_C(1) << i))
			return -EBADMSG;
	return 0;
}

/* The number of objects in the largest message of a shape. After the walk, msgpack does not
 * allocate for more. */
static size_t
objects_max(const struct codec_shape *shape)
{
	size_t n = 1 + 2 * shape->n_fields;

	for (size_t i = 0; i < shape->n_fields; i++)
		if (shape->field[i].kind == CODEC_STRS)
			n += shape->field[i].most;
	return n;
}

int
codec_decode_shape(const struct codec_shape *shape, const void *body, size_t len,
		   void *value, size_t value_size)
{
	msgpack_object object;
	msgpack_zone zone;
	size_t at = 0;
	int r;

	memset(value, 0, value_size);
	if (len == 0 || len > shape->body_max)
		return -EBADMSG;
	r = walk_body(body, len, objects_max(shape));
	if (r < 0)
		return r;

	/* the walk has accepted it, so it is well-formed: only memory can be missing */
	if (!msgpack_zone_init(&zone, 2048) ||
	    msgpack_unpack(body, len, &at, &zone, &object) != MSGPACK_UNPACK_SUCCESS)
		xalloc_fail(0);
	r = store_map(shape, &object, value);
	msgpack_zone_destroy(&zone);
	if (r < 0) {
		codec_free_shape(shape, value);
		memset(value, 0, value_size);
	}
	return r;
}

int
codec_decode(unsigned int type, const void *body, size_t len, struct msg *msg_r)
{
	const struct codec_shape *shape = codec_shape(type);
	struct msg msg = { 0 };
	int r;

	if (!shape)
		return -EBADMSG;
	r = codec_decode_shape(shape, body, len, value_of(&msg),
			       sizeof(msg) - offsetof(struct msg, hello));
	if (r < 0)
		return r;
	msg.type = type;
	*msg_r = msg;
	return 0;
}

void
codec_free_shape(const struct codec_shape *shape, void *value)
{
	for (size_t i = 0; i < shape->n_fields; i++) {
		struct msg_strs *strs;

		if (shape->field[i].kind != CODEC_STRS)
			continue;
		strs = (struct msg_strs *)((char *)value + shape->field[i].offset);
		free(strs->item);
		*strs = (struct msg_strs){ 0 };
	}
}

void
codec_free(struct msg *msg)
{
	const struct codec_shape *shape = codec_shape(msg->type);

	if (shape)
		codec_free_shape(shape, value_of(msg));
	*msg = (struct msg){ 0 };
}
