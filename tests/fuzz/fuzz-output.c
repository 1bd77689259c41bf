/* SPDX-License-Identifier: Apache-2.0 */
/* The kept part of a script's output. Two bytes are the limits: of the texts, and of the bytes
 * that are kept as they were written. Pieces follow. The first byte of a piece has the stream, the
 * length, and whether output_keep_no_more() is called after the piece. The target remembers all
 * bytes and asserts:
 *
 * - A text is UTF-8. Its length is at most the limit, three times, and one line.
 * - Output below the limit is complete. Longer output has its head and its tail, and no part of a
 *   character. The text tells how many bytes are missing.
 * - The text of both streams has the bytes of each stream in their order.
 * - A piece that is kept as it was written has the right offset. */
#include "fuzz.h"

#include "base/utf8.h"
#include "engine/output.h"

#define WRITTEN_MAX 65536
#define CUTS_MAX 6		/* bytes of cut characters, at both ends */

struct written {
	char at[WRITTEN_MAX];
	size_t len;
};

static bool
is_utf8(const struct written *written)
{
	return utf8_prefix(written->at, written->len) == written->len;
}

/* Is the line at this place the one between head and tail of the written bytes? */
static bool
is_cut_at(const struct output_text *text, const struct written *written, size_t cap,
	  const char *at, size_t line)
{
	size_t head = (size_t)(at - text->text), tail = text->len - head - line;

	return head <= cap / 2 && head + tail + text->dropped == written->len &&
	       memcmp(text->text, written->at, head) == 0 &&
	       memcmp(at + line, written->at + written->len - tail, tail) == 0;
}

/* The text has the head and the tail of the written bytes. What was written may have the same
 * line, too. */
static void
check_cut(const struct output_text *text, const struct written *written, size_t cap)
{
	char line[96];
	size_t n = (size_t)snprintf(line, sizeof(line), "\n[... %llu bytes not shown ...]\n",
				    (unsigned long long)text->dropped);
	const char *at = memmem(text->text, text->len, line, n);

	MUST(text->dropped >= written->len - cap);
	MUST(text->dropped <= written->len - cap + CUTS_MAX);
	MUST(at != NULL);
	if (!is_utf8(written))
		return;
	while (at != NULL && !is_cut_at(text, written, cap, at, n))
		at = memmem(at + 1, text->len - (size_t)(at + 1 - text->text), line, n);
	MUST(at != NULL);
}

static void
check_text(const struct output_text *text, const struct written *written, size_t cap)
{
	MUST(text->text[text->len] == '\0');
	MUST(utf8_prefix(text->text, text->len) == text->len);
	MUST(text->len <= 3 * (cap < written->len ? cap : written->len) + 96);
	if (written->len > cap) {
		check_cut(text, written, cap);
		return;
	}
	MUST(text->dropped == 0 && text->len >= written->len);
	if (is_utf8(written))
		MUST(text->len == written->len &&
		     memcmp(text->text, written->at, written->len) == 0);
}

/* If one stream has only ASCII and the other none, the streams can be separated again. */
static void
check_order(const struct output_text *both, const struct written written[STREAM_COUNT])
{
	size_t at[STREAM_COUNT] = { 0 };

	for (int s = 0; s < STREAM_COUNT; s++)
		for (size_t i = 0; i < written[s].len; i++)
			if (!is_utf8(&written[s]) || (written[s].at[i] & 0x80) != (s ? 0x80 : 0))
				return;
	for (size_t i = 0; i < both->len; i++) {
		int s = both->text[i] & 0x80 ? 1 : 0;

		MUST(at[s] < written[s].len && both->text[i] == written[s].at[at[s]++]);
	}
}

static void
check_whole(struct output *output, enum stream stream, const struct written *written)
{
	struct output_piece piece[2];
	size_t n = output_whole(output, stream, piece), end = 0;

	for (size_t i = 0; i < n; i++) {
		MUST(piece[i].offset >= end);
		end = piece[i].offset + piece[i].len;
		MUST(end <= written->len);
		MUST(memcmp(piece[i].at, written->at + piece[i].offset, piece[i].len) == 0);
	}
	MUST(n == 0 || end == written->len);
}

static void
add(struct output *output, struct rest *rest, struct written written[STREAM_COUNT])
{
	uint8_t what = rest_byte(rest);
	enum stream stream = what & 1 ? STREAM_STDERR : STREAM_STDOUT;
	struct rest piece = rest_take(rest, what >> 1 & 0x3f);
	size_t before = output->whole[stream].len;
	size_t growth = output_whole_growth(output, stream, piece.len);

	if (piece.len > WRITTEN_MAX - written[stream].len)
		return;
	memcpy(written[stream].at + written[stream].len, piece.at, piece.len);
	written[stream].len += piece.len;
	output_add(output, stream, piece.at, piece.len);
	MUST(output->whole[stream].len == before + growth);
	if (what & 0x80)
		output_keep_no_more(output);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct written written[STREAM_COUNT];
	struct rest rest = { data, size };
	size_t cap = 1U + rest_byte(&rest), all;
	struct output_text text;
	struct output output;

	written[0].len = written[1].len = 0;
	output_init(&output, cap);
	output_keep_whole(&output, rest_byte(&rest));
	while (rest.len > 0)
		add(&output, &rest, written);
	MUST(output_written(&output) == written[0].len + written[1].len);
	text = output_transcript(&output);
	all = written[0].len + written[1].len;
	MUST(utf8_prefix(text.text, text.len) == text.len);
	MUST((text.dropped == 0) == (all <= cap));
	if (all <= cap)
		check_order(&text, written);
	free(text.text);
	for (int s = 0; s < STREAM_COUNT; s++) {
		MUST(output_is_full(&output, (enum stream)s) == (written[s].len > cap));
		text = output_stream_text(&output, (enum stream)s);
		check_text(&text, &written[s], cap);
		free(text.text);
		check_whole(&output, (enum stream)s, &written[s]);
	}
	output_done(&output);
	return 0;
}
