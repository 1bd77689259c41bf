/* SPDX-License-Identifier: Apache-2.0 */
/* Values and bodies of any message, made from the rows of its shape: tests follow messages.def
 * without a change.
 */
#ifndef TESTS_UNIT_PROTO_SAMPLE_H
#define TESTS_UNIT_PROTO_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/codec.h"

enum sample_size { SAMPLE_LEAST, SAMPLE_MIDDLE, SAMPLE_MOST, SAMPLE_SIZES };

/* A value in bounds. Its strings are shared or static; its STRS are allocated: codec_free_shape().
 * optional: the value has fields that are optional. */
void sample_fill(const struct codec_shape *shape, void *value, enum sample_size size,
		 bool optional);

/* Sets one field to a number, or to that many bytes or strings. */
void sample_set(const struct codec_field *field, void *value, uint64_t n);

bool sample_equal(const struct codec_shape *shape, const void *a, const void *b);

/* An array of the numbers of all messages; *n_r: their count. */
const unsigned int *sample_types(size_t *n_r);

/* The ways to make a body that the encoder would not make. */
enum sample_twist {
	TWIST_NONE,
	TWIST_OMIT,	/* leave the field out */
	TWIST_REPEAT,	/* say it twice */
	TWIST_REPLACE,	/* another object for its value: which, from 0 */
	TWIST_KEY,	/* another object for its key: which, from 0 */
	TWIST_ADD,	/* one more pair, with a key of no message */
};

/* Objects that stand for one type of msgpack each. */
enum sample_object {
	OBJECT_NIL, OBJECT_BOOL, OBJECT_POSITIVE, OBJECT_NEGATIVE, OBJECT_FLOAT, OBJECT_STR,
	OBJECT_BIN, OBJECT_EXT, OBJECT_MAP, OBJECT_ARRAY, OBJECT_ARRAY_OF_NUMBERS,
	OBJECT_ARRAY_OF_ARRAYS, OBJECT_COUNT,
};

/* Appends a body with one twist at field number f. msgpack packs it, and no bound is checked. */
void sample_body(const struct codec_shape *shape, const void *value, struct codec_buffer *body,
		 enum sample_twist twist, size_t f, enum sample_object object);

#endif
