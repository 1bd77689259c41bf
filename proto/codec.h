/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes the body of a message, one msgpack map. In both directions the map is checked
 * by the table in proto/messages.def.
 *
 * Received bytes are hostile. They are checked (walk_body) before memory is allocated for them.
 * -EBADMSG is the error for unknown, repeated or missing keys, wrong types, values out of range,
 * text that is not UTF-8 or has NUL, and bytes that are left over.
 */
#ifndef PROTO_CODEC_H
#define PROTO_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

enum codec_kind {
	CODEC_U32,
	CODEC_U64,
	CODEC_I32,
	CODEC_BOOL,
	CODEC_STR,
	CODEC_BIN,
	CODEC_STRS,
};

/* One FIELD row. */
struct codec_field {
	const char *name;
	size_t name_len;
	enum codec_kind kind;
	bool required;
	size_t offset;		/* of the value in the message's struct */
	size_t has_offset;	/* of the member has_FIELD, if it is not required */
	uint64_t least, most;	/* of a CODEC_I32: int64_t, converted */
};

/* One MESSAGE row with its fields, at most CODEC_FIELDS_MAX. */
#define CODEC_FIELDS_MAX 32

struct codec_shape {
	const char *name;
	enum msg_from from;
	size_t body_max;
	size_t fds_min, fds_max;
	const struct codec_field *field;
	size_t n_fields;
};

/* The shape of a message number. NULL: there is no such message. */
const struct codec_shape *codec_shape(unsigned int type);

/* A growing sequence of bytes. Zeroed: empty. */
struct codec_buffer {
	unsigned char *at;
	size_t len, size;
};

/* Appends a copy of len bytes. */
void codec_buffer_append(struct codec_buffer *buffer, const void *bytes, size_t len);

void codec_buffer_done(struct codec_buffer *buffer);	/* frees it, and empties it */

/* Checks the bytes of a body before memory is allocated for them (walk.c): a count in msgpack can
 * be false, and with a few bytes a peer could make a decoder allocate gigabytes. The body has to be
 * one well-formed msgpack object, up to its exact end. It may consist of maps, arrays, integers,
 * booleans, strings and binaries; of at most objects_max objects, itself included; and of
 * containers in at most two levels. 0 or -EBADMSG. */
int walk_body(const void *body, size_t len, size_t objects_max);

/* Appends the body of a message. The bounds are the same as in decoding. 0; -EINVAL: a field breaks
 * its bounds, or the type is unknown; -EMSGSIZE: the whole body is larger than this message may be.
 * After an error buffer->len is unchanged. */
int codec_encode(const struct msg *msg, struct codec_buffer *buffer);

/* Decodes a whole body. Strings in *msg_r point into body, which must outlive them. The arrays of
 * STRS are allocated; codec_free frees them. 0 or -EBADMSG; after an error *msg_r is unchanged. */
int codec_decode(unsigned int type, const void *body, size_t len, struct msg *msg_r);

/* Frees the memory that codec_decode has allocated, but not msg itself, and empties msg. Not for a
 * message that the caller has filled in itself. Safe to call twice. */
void codec_free(struct msg *msg);

/* As the three functions above, for a struct that shape describes. value: points to the struct. */
int codec_encode_shape(const struct codec_shape *shape, const void *value,
		       struct codec_buffer *buffer);
int codec_decode_shape(const struct codec_shape *shape, const void *body, size_t len,
		       void *value, size_t value_size);
void codec_free_shape(const struct codec_shape *shape, void *value);

/* The number of bytes at the start that are allowed in a STR: well-formed UTF-8 without NUL. It is
 * len, or the offset of the first sequence that is not allowed. */
size_t codec_text_prefix(const char *at, size_t len);

#endif
