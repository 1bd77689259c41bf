/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of messages. The first byte is the type, the rest the body. Must hold: what is
 * accepted is in bounds, so that the encoder accepts it; its form is never longer than what came;
 * and it means the same. */
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "proto/codec.h"

/* Every string is in the body or empty. */
static void
check_strings(const struct codec_shape *shape, const struct msg *msg, const uint8_t *body,
	      size_t len)
{
	for (size_t i = 0; i < shape->n_fields; i++) {
		const void *slot = (const char *)&msg->hello + shape->field[i].offset;
		const struct msg_str *str = slot;
		size_t n = 1;

		if (shape->field[i].kind == CODEC_STRS) {
			str = ((const struct msg_strs *)slot)->item;
			n = ((const struct msg_strs *)slot)->n;
		} else if (shape->field[i].kind != CODEC_STR &&
			   shape->field[i].kind != CODEC_BIN) {
			continue;
		}
		for (size_t s = 0; s < n; s++) {
			if (str[s].len == 0)
				continue;
			MUST(str[s].len <= len);
			MUST((const uint8_t *)str[s].at >= body);
			MUST((const uint8_t *)str[s].at <= body + len - str[s].len);
		}
	}
}

static void
check_text(const uint8_t *bytes, size_t len)
{
	size_t good = codec_text_prefix((const char *)bytes, len);

	MUST(good <= len);
	MUST(codec_text_prefix((const char *)bytes, good) == good);
	MUST(memchr(bytes, 0, good) == NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct codec_buffer first = { 0 }, second = { 0 };
	struct msg msg, again;
	int r;

	if (size == 0)
		return 0;
	check_text(data, size);
	r = codec_decode(data[0], data + 1, size - 1, &msg);
	MUST(r == 0 || r == -EBADMSG);
	if (r < 0)
		return 0;
	MUST(msg.type == data[0]);
	check_strings(codec_shape(data[0]), &msg, data + 1, size - 1);

	MUST(codec_encode(&msg, &first) == 0);
	MUST(first.len <= size - 1);
	MUST(codec_decode(msg.type, first.at, first.len, &again) == 0);
	MUST(codec_encode(&again, &second) == 0);
	MUST(first.len == second.len);
	MUST(memcmp(first.at, second.at, first.len) == 0);

	codec_free(&msg);
	codec_free(&again);
	codec_buffer_done(&first);
	codec_buffer_done(&second);
	return 0;
}
