/* SPDX-License-Identifier: Apache-2.0 */
/* The kept part of a script's output: each stream, and both together in the order of arrival; if
 * one is longer than its cap, its head and its tail. Input may be split anywhere and need not be
 * UTF-8; the resulting texts always are. Pure, no I/O.
 */
#ifndef ENGINE_OUTPUT_H
#define ENGINE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stream { STREAM_STDOUT, STREAM_STDERR, STREAM_COUNT };

/* An unchanged part of a stream that is longer than its cap. If more follows, the part ends after a
 * line, or between characters. */
struct outcome_part {
	enum stream stream;
	uint64_t offset;	/* of its first byte in the stream */
	const char *at;
	size_t len;		/* at most OUTCOME_PART_MAX */
};

#define OUTCOME_PART_MAX (4 * 1024 * 1024)

/* One sequence of bytes, of which at most cap are kept: all, or half from each end. Memory grows
 * with the kept bytes. */
struct output_capture {
	unsigned char *at;
	size_t len, size, cap;
	size_t tail;		/* position of the oldest byte of the tail; 0: nothing is dropped
				 * yet */
	uint64_t written;
};

struct output {
	struct output_capture stream[STREAM_COUNT];
	struct output_capture both;	/* empty until mixed */
	bool mixed;			/* both streams were used, or the only one was too long */
	unsigned char held[STREAM_COUNT][4];	/* incomplete characters, not yet in both */
	size_t n_held[STREAM_COUNT];
	struct output_capture whole[STREAM_COUNT];	/* the unchanged bytes; cap 0: not wanted */
	bool finished;
};

/* Unchanged bytes of a stream, from this offset on. */
struct output_piece {
	uint64_t offset;
	const char *at;
	size_t len;
};

/* A finished text: allocated, followed by NUL. */
struct output_text {
	char *text;
	size_t len;
	uint64_t dropped;	/* bytes written that are not in it */
};

void output_init(struct output *output, uint64_t cap);
void output_done(struct output *output);

/* Adds bytes as they were read. */
void output_add(struct output *output, enum stream stream, const void *bytes,
		size_t len);

/* The number of bytes that were written to both streams together. */
uint64_t output_written(const struct output *output);

/* The number of bytes that entered the transcript. */
uint64_t output_transcribed(const struct output *output);

/* Is a stream longer than its cap, so that only its tail still changes? */
bool output_is_full(const struct output *output, enum stream stream);

/* Makes output keep the unchanged bytes of the streams, too, up to cap of each. To be called before
 * anything is added. */
void output_keep_whole(struct output *output, uint64_t cap);

/* By how much the number of unchanged bytes that are kept would grow if len bytes were added to the
 * stream. */
size_t output_whole_growth(const struct output *output, enum stream stream, size_t len);

/* From now on the number of unchanged bytes that are kept does not grow: new ones replace those of
 * the tail. */
void output_keep_no_more(struct output *output);

/* The unchanged bytes that are kept of a stream: all of it, or its head and its tail. Returns the
 * number of pieces, at most 2. The bytes belong to the output. */
size_t output_whole(struct output *output, enum stream stream,
		    struct output_piece piece_r[2]);

/* The parts of the streams that are longer than their caps. The caller frees the array; the bytes
 * belong to the output. */
struct outcome_part *output_parts(struct output *output, size_t *n_r);

/* The stream that all was written to and that is whole, so that its text is the one of both
 * streams; negative: there is none. */
int output_only(const struct output *output);

/* Make the texts of a stream, and of both streams together. Nothing may be added afterwards, and
 * each text is made once, that of both streams first. The caller frees text. */
struct output_text output_stream_text(struct output *output, enum stream stream);
struct output_text output_transcript(struct output *output);

#endif
