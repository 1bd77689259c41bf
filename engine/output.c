/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the kept part of one execution's output.
 * Reads:   bytes of scripts, in the pieces that the pipes give. */
#include "engine/output.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/utf8.h"
#include "base/xalloc.h"

static const char replacement[] = "\xef\xbf\xbd";	/* U+FFFD */

/* ---- UTF-8 ---- */

/* The number of bytes at the start that do not begin a character: the rest of a character whose
 * beginning was cut off. */
static size_t
rest_of_cut(const unsigned char *at, size_t len)
{
	size_t n = 0;

	while (n < len && n < 3 && at[n] >= 0x80 && at[n] < 0xc0)
		n++;
	return n;
}

struct text_buffer {
	char *at;
	size_t len, size;
};

static void
text_add(struct text_buffer *text, const void *bytes, size_t len)
{
	if (len > text->size - text->len) {
		size_t size = text->size * 2 > text->len + len ? text->size * 2
							       : text->len + len;

		text->at = xrealloc(text->at, size + 1);
		text->size = size;
	}
	if (len > 0)
		memcpy(text->at + text->len, bytes, len);
	text->len += len;
}

static void
text_add_repaired(struct text_buffer *text, const unsigned char *at, size_t len)
{
	size_t start = 0, i = 0, bad;

	if (len == 0)
		return;
	while ((i += utf8_prefix(at + i, len - i)) < len) {
		(void)utf8_character(at + i, len - i, &bad);
		text_add(text, at + start, i - start);
		text_add(text, replacement, 3);
		i += bad;
		start = i;
	}
	text_add(text, at + start, len - start);
}

/* ---- one capture ---- */

static size_t
head_cap(const struct output_capture *capture)
{
	return capture->cap / 2;
}

/* Makes the buffer large enough for len bytes in total, at most cap, and a NUL. */
static void
output_reserve(struct output_capture *capture, size_t len)
{
	size_t size = capture->size ? capture->size : 512;

	if (len > capture->cap)
		len = capture->cap;
	if (len <= capture->size)
		return;
	while (size < len)
		size *= 2;
	if (size > capture->cap)
		size = capture->cap;
	capture->at = xrealloc(capture->at, size + 1);
	capture->size = size;
}

static void
capture_add(struct output_capture *capture, const unsigned char *bytes, size_t len)
{
	size_t ring = capture->cap - head_cap(capture), n;

	if (len == 0)
		return;
	capture->written += len;
	if (capture->cap == 0)
		return;
	output_reserve(capture, len > capture->cap ? capture->cap : capture->len + len);
	n = capture->cap - capture->len;
	if (n > len)
		n = len;
	memcpy(capture->at + capture->len, bytes, n);
	capture->len += n;
	bytes += n;
	len -= n;
	if (len == 0)
		return;
	/* The buffer is full: the part behind the head is a ring from now on. */
	if (capture->tail == 0)
		capture->tail = head_cap(capture);
	if (len > ring) {
		bytes += len - ring;
		len = ring;
	}
	while (len > 0) {
		n = capture->cap - capture->tail;
		if (n > len)
			n = len;
		memcpy(capture->at + capture->tail, bytes, n);
		capture->tail += n;
		if (capture->tail == capture->cap)
			capture->tail = head_cap(capture);
		bytes += n;
		len -= n;
	}
}

/* Rotates the ring so that its oldest byte comes first. */
static void
output_straighten(struct output_capture *capture)
{
	size_t head = head_cap(capture), ring = capture->cap - head;
	size_t first = capture->cap - capture->tail;
	own_mem unsigned char *copy = NULL;

	if (capture->tail == head)
		return;
	copy = xmalloc(ring);
	memcpy(copy, capture->at + capture->tail, first);
	memcpy(copy + first, capture->at + head, ring - first);
	memcpy(capture->at + head, copy, ring);
	capture->tail = head;
}

static struct output_text
capture_text(struct output_capture *capture)
{
	struct text_buffer text = { 0 };
	uint64_t dropped = 0;

	if (capture->written <= capture->cap &&
	    (capture->len == 0 || utf8_prefix(capture->at, capture->len) == capture->len)) {
		text = (struct text_buffer){ (char *)give_ptr(capture->at), capture->len, 0 };
	} else if (capture->written <= capture->cap) {
		text_add_repaired(&text, capture->at, capture->len);
	} else {
		size_t head = head_cap(capture), cut_head, cut_tail;
		char line[96];

		output_straighten(capture);
		cut_head = utf8_begun(capture->at, head);
		cut_tail = rest_of_cut(capture->at + head, capture->cap - head);
		dropped = capture->written - capture->cap + cut_head + cut_tail;
		text_add_repaired(&text, capture->at, head - cut_head);
		snprintf(line, sizeof(line),
			 "\n[... %" PRIu64 " bytes not shown ...]\n", dropped);
		text_add(&text, line, strlen(line));
		text_add_repaired(&text, capture->at + head + cut_tail,
				  capture->cap - head - cut_tail);
	}
	if (text.at == NULL)
		text.at = xmalloc(1);
	text.at[text.len] = '\0';
	return (struct output_text){ .text = text.at,
				     .len = text.len,
				     .dropped = dropped };
}

/* ---- both streams ---- */

void
output_init(struct output *output, uint64_t cap)
{
	memset(output, 0, sizeof(*output));
	if (cap > SIZE_MAX / 8)
		cap = SIZE_MAX / 8;
	for (int i = 0; i < STREAM_COUNT; i++)
		output->stream[i].cap = (size_t)cap;
	output->both.cap = (size_t)cap;
}

void
output_done(struct output *output)
{
	for (int i = 0; i < STREAM_COUNT; i++) {
		free(output->stream[i].at);
		free(output->whole[i].at);
	}
	free(output->both.at);
	memset(output, 0, sizeof(*output));
}

/* Characters enter the transcript whole. An unfinished one is held back until its rest comes;
 * otherwise the other stream's text would appear in the middle of it. */
static void
output_transcribe(struct output *output, enum stream stream, const unsigned char *bytes,
		  size_t len)
{
	unsigned char *held = output->held[stream];
	size_t *n_held = &output->n_held[stream], begun, bad;

	while (*n_held > 0 && len > 0) {
		held[(*n_held)++] = *bytes++;
		len--;
		if (utf8_begun(held, *n_held) == *n_held)
			continue;
		/* The character is complete, or its last byte does not belong to it. */
		if (utf8_character(held, *n_held, &bad) == 0 && bad < *n_held) {
			(*n_held)--;
			bytes--;
			len++;
		}
		capture_add(&output->both, held, *n_held);
		*n_held = 0;
	}
	begun = utf8_begun(bytes, len);
	if (len > begun)
		capture_add(&output->both, bytes, len - begun);
	memcpy(held + *n_held, bytes + len - begun, begun);
	*n_held += begun;
}

int
output_only(const struct output *output)
{
	for (int i = 0; i < STREAM_COUNT && !output->mixed; i++)
		if (output->stream[i].written > 0)
			return i;
	return -1;
}

/* Begins the transcript with what the only stream so far has, which fits in its cap. */
static void
output_mix(struct output *output)
{
	int only = output_only(output);

	output->mixed = true;
	if (only >= 0)
		output_transcribe(output, (enum stream)only, output->stream[only].at,
				  output->stream[only].len);
}

void
output_add(struct output *output, enum stream stream, const void *bytes, size_t len)
{
	assert(!output->finished);
	if (len == 0)
		return;
	if (output->stream[!stream].written > 0 ||
	    output->stream[stream].written + len > output->stream[stream].cap)
		output_mix(output);
	capture_add(&output->stream[stream], bytes, len);
	capture_add(&output->whole[stream], bytes, len);
	if (output->mixed)
		output_transcribe(output, stream, bytes, len);
}

uint64_t
output_written(const struct output *output)
{
	uint64_t written = 0;

	for (int i = 0; i < STREAM_COUNT; i++)
		written += output->stream[i].written;
	return written;
}

uint64_t
output_transcribed(const struct output *output)
{
	const struct output_capture *one;
	int only = output_only(output);

	if (only < 0)
		return output->both.written;
	one = &output->stream[only];
	return one->len - utf8_begun(one->at, one->len);
}

bool
output_is_full(const struct output *output, enum stream stream)
{
	return output->stream[stream].written > output->stream[stream].cap;
}

struct output_text
output_stream_text(struct output *output, enum stream stream)
{
	return capture_text(&output->stream[stream]);
}

struct output_text
output_transcript(struct output *output)
{
	if (!output->finished) {
		output_mix(output);
		for (int i = 0; i < STREAM_COUNT; i++)
			capture_add(&output->both, output->held[i], output->n_held[i]);
		output->finished = true;
	}
	return capture_text(&output->both);
}

/* ---- as written ---- */

void
output_keep_whole(struct output *output, uint64_t cap)
{
	assert(output_written(output) == 0);
	if (cap > SIZE_MAX / 8)
		cap = SIZE_MAX / 8;
	for (int i = 0; i < STREAM_COUNT; i++)
		output->whole[i].cap = (size_t)cap;
}

size_t
output_whole_growth(const struct output *output, enum stream stream, size_t len)
{
	const struct output_capture *whole = &output->whole[stream];
	size_t room = whole->cap - whole->len;

	return len < room ? len : room;
}

void
output_keep_no_more(struct output *output)
{
	for (int i = 0; i < STREAM_COUNT; i++)
		output->whole[i].cap = output->whole[i].len;
}

size_t
output_whole(struct output *output, enum stream stream, struct output_piece piece_r[2])
{
	struct output_capture *whole = &output->whole[stream];
	size_t head = head_cap(whole);

	if (whole->len == 0)
		return 0;
	if (whole->written <= whole->cap) {
		piece_r[0] = (struct output_piece){ 0, (char *)whole->at, whole->len };
		return 1;
	}
	output_straighten(whole);
	piece_r[0] = (struct output_piece){ 0, (char *)whole->at, head };
	piece_r[1] = (struct output_piece){ whole->written - (whole->cap - head),
					    (char *)whole->at + head, whole->cap - head };
	return 2;
}

/* The length of the next part of a piece. */
static size_t
part_len(const char *at, size_t len)
{
	const size_t look = 65536;
	const char *newline;

	if (len <= OUTCOME_PART_MAX)
		return len;
	newline = memrchr(at + OUTCOME_PART_MAX - look, '\n', look);
	if (newline != NULL)
		return (size_t)(newline + 1 - at);
	return OUTCOME_PART_MAX - utf8_begun(at, OUTCOME_PART_MAX);
}

struct outcome_part *
output_parts(struct output *output, size_t *n_r)
{
	struct output_piece piece[2];
	struct outcome_part *part = NULL;
	size_t n = 0;

	for (int s = 0; s < STREAM_COUNT; s++) {
		size_t n_pieces = output_is_full(output, (enum stream)s)
			? output_whole(output, (enum stream)s, piece) : 0;

		for (size_t i = 0; i < n_pieces; i++)
			for (size_t at = 0; at < piece[i].len; at += part[n - 1].len) {
				part = xrealloc(part, (n + 1) * sizeof(*part));
				part[n++] = (struct outcome_part){
					.stream = (enum stream)s,
					.offset = piece[i].offset + at,
					.at = piece[i].at + at,
					.len = part_len(piece[i].at + at, piece[i].len - at),
				};
			}
	}
	*n_r = n;
	return part;
}
