/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, zygotes and workers, before msgpack sees a body.
 * Owns:    nothing; allocates nothing.   Reads: bytes, hostile from the first. */
#include "proto/codec.h"

#include <errno.h>
#include <stdbool.h>

enum head_kind { HEAD_SCALAR, HEAD_BYTES, HEAD_ARRAY, HEAD_MAP };

/* The meaning of an object's first byte. bytes: the size of a scalar, or the width of the count
 * that follows; 0: the count is in the byte itself. Types that are not listed (nil, floats,
 * extensions) occur in no message. */
static const struct head_row {
	unsigned char first, last;
	enum head_kind kind;
	unsigned char bytes;
} head_rows[] = {
	{ 0x00, 0x7f, HEAD_SCALAR, 0 },		/* positive fixint */
	{ 0x80, 0x8f, HEAD_MAP,    0 },		/* fixmap */
	{ 0x90, 0x9f, HEAD_ARRAY,  0 },		/* fixarray */
	{ 0xa0, 0xbf, HEAD_BYTES,  0 },		/* fixstr */
	{ 0xc2, 0xc3, HEAD_SCALAR, 0 },		/* false, true */
	{ 0xc4, 0xc4, HEAD_BYTES,  1 },		/* bin 8, 16, 32 */
	{ 0xc5, 0xc5, HEAD_BYTES,  2 },
	{ 0xc6, 0xc6, HEAD_BYTES,  4 },
	{ 0xcc, 0xcc, HEAD_SCALAR, 1 },		/* uint 8, 16, 32, 64 */
	{ 0xcd, 0xcd, HEAD_SCALAR, 2 },
	{ 0xce, 0xce, HEAD_SCALAR, 4 },
	{ 0xcf, 0xcf, HEAD_SCALAR, 8 },
	{ 0xd0, 0xd0, HEAD_SCALAR, 1 },		/* int 8, 16, 32, 64 */
	{ 0xd1, 0xd1, HEAD_SCALAR, 2 },
	{ 0xd2, 0xd2, HEAD_SCALAR, 4 },
	{ 0xd3, 0xd3, HEAD_SCALAR, 8 },
	{ 0xd9, 0xd9, HEAD_BYTES,  1 },		/* str 8, 16, 32 */
	{ 0xda, 0xda, HEAD_BYTES,  2 },
	{ 0xdb, 0xdb, HEAD_BYTES,  4 },
	{ 0xdc, 0xdc, HEAD_ARRAY,  2 },		/* array 16, 32 */
	{ 0xdd, 0xdd, HEAD_ARRAY,  4 },
	{ 0xde, 0xde, HEAD_MAP,    2 },		/* map 16, 32 */
	{ 0xdf, 0xdf, HEAD_MAP,    4 },
	{ 0xe0, 0xff, HEAD_SCALAR, 0 },		/* negative fixint */
};

struct walk {
	const unsigned char *at;
	size_t left;		/* bytes not walked yet */
	size_t objects_left;	/* the most that the message can have */
};

static const struct head_row *
head_row(unsigned char byte)
{
	for (size_t i = 0; i < sizeof(head_rows) / sizeof(head_rows[0]); i++)
		if (byte >= head_rows[i].first && byte <= head_rows[i].last)
			return &head_rows[i];
	return NULL;
}

static int
walk_skip(struct walk *walk, size_t n)
{
	if (n > walk->left)
		return -EBADMSG;
	walk->at += n;
	walk->left -= n;
	return 0;
}

/* Walks one object with its contents. A message is a map that may hold arrays; objects that are
 * nested deeper than containers allows are refused. */
static int
walk_object(struct walk *walk, unsigned int containers)
{
	const struct head_row *row;
	size_t count = 0;

	if (walk->left == 0 || walk->objects_left == 0)
		return -EBADMSG;
	walk->objects_left--;
	row = head_row(walk->at[0]);
	if (!row)
		return -EBADMSG;
	if (row->bytes == 0)
		count = walk->at[0] - row->first;
	walk_skip(walk, 1);
	if (row->kind == HEAD_SCALAR)
		return walk_skip(walk, row->bytes);

	if (row->bytes > walk->left)
		return -EBADMSG;
	for (size_t i = 0; i < row->bytes; i++)
		count = count << 8 | walk->at[i];
	walk_skip(walk, row->bytes);
	if (row->kind == HEAD_BYTES)
		return walk_skip(walk, count);

	if (containers == 0)
		return -EBADMSG;
	if (row->kind == HEAD_MAP)
		count *= 2;
	/* The count may be false. Then the walk runs out of bytes or of objects_left long before it
	 * reaches the count. */
	for (size_t i = 0; i < count; i++) {
		int r = walk_object(walk, containers - 1);

		if (r < 0)
			return r;
	}
	return 0;
}

int
walk_body(const void *body, size_t len, size_t objects_max)
{
	struct walk walk = { .at = body, .left = len, .objects_left = objects_max };
	int r;

	r = walk_object(&walk, 2);
	if (r < 0)
		return r;
	return walk.left == 0 ? 0 : -EBADMSG;
}
