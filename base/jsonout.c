/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the text of one answer while it is written. */
#include "base/jsonout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "base/xalloc.h"

#define REPLACEMENT "\xef\xbf\xbd"	/* U+FFFD */

void
jsonout_init(struct jsonout *out)
{
	memset(out, 0, sizeof(*out));
}

void
jsonout_done(struct jsonout *out)
{
	free(out->at);
	jsonout_init(out);
}

static char *
room_for(struct jsonout *out, size_t len)
{
	if (len > out->size - out->len) {
		size_t size = out->size ? out->size : 256;

		while (len > size - out->len)
			size *= 2;
		out->at = xrealloc(out->at, size);
		out->size = size;
	}
	return out->at + out->len;
}

static void
jsonout_put(struct jsonout *out, const char *bytes, size_t len)
{
	if (!len)
		return;
	memcpy(room_for(out, len), bytes, len);
	out->len += len;
}

static void
begin_value(struct jsonout *out)
{
	if (out->comma)
		jsonout_put(out, ",", 1);
	out->comma = true;
}

char *
jsonout_take_line(struct jsonout *out, size_t *len_r)
{
	char *line;

	jsonout_put(out, "\n", 2);
	line = out->at;
	*len_r = out->len - 1;
	jsonout_init(out);
	return line;
}

char *
jsonout_take(struct jsonout *out)
{
	char *text;

	jsonout_put(out, "", 1);
	text = out->at;
	jsonout_init(out);
	return text;
}

void
jsonout_open(struct jsonout *out, char bracket)
{
	begin_value(out);
	jsonout_put(out, &bracket, 1);
	out->comma = false;
}

void
jsonout_close(struct jsonout *out, char bracket)
{
	jsonout_put(out, &bracket, 1);
	out->comma = true;
}

void
jsonout_key(struct jsonout *out, const char *key)
{
	begin_value(out);
	jsonout_put(out, "\"", 1);
	jsonout_put(out, key, strlen(key));
	jsonout_put(out, "\":", 2);
	out->comma = false;
}

static char
short_escape(unsigned char c)
{
	switch (c) {
	case '"':
	case '\\':
		return (char)c;
	case '\b':
		return 'b';
	case '\f':
		return 'f';
	case '\n':
		return 'n';
	case '\r':
		return 'r';
	case '\t':
		return 't';
	default:
		return 0;
	}
}

/* One character of text as it is written between quotes. Returns the number of bytes of text
 * that it took; *out_len_r: the length written. */
static size_t
jsonout_encode(const char *text, size_t len, char out[8], size_t *out_len_r)
{
	size_t bad, n = utf8_character(text, len, &bad);
	unsigned char c = (unsigned char)text[0];

	if (n == 0) {
		memcpy(out, REPLACEMENT, 3);
		*out_len_r = 3;
		return bad;
	}
	if (n == 1 && short_escape(c)) {
		out[0] = '\\';
		out[1] = short_escape(c);
		*out_len_r = 2;
	} else if (c < ' ' || c == 0x7f) {
		*out_len_r = (size_t)snprintf(out, 8, "\\u%04x", c);
	} else {
		memcpy(out, text, n);
		*out_len_r = n;
	}
	return n;
}

typedef unsigned char block __attribute__((vector_size(16)));

#define EACH(byte) ((block){ 0 } + (unsigned char)(byte))

/* Are all bytes of a block written as they are? */
static bool
is_plain(const char *text)
{
	block bytes, others;
	uint64_t word[sizeof(block) / sizeof(uint64_t)];

	memcpy(&bytes, text, sizeof(bytes));
	others = (block)((bytes < EACH(' ')) | (bytes >= EACH(0x7f)) | (bytes == EACH('"')) |
			 (bytes == EACH('\\')));
	memcpy(word, &others, sizeof(word));
	return (word[0] | word[1]) == 0;
}

/* How many bytes at the beginning are written as they are. Looks at a block at a time, because
 * most of the time that the loop spends on one tenant is spent on long outputs. */
static size_t
plain_run(const char *text, size_t len)
{
	size_t n = 0;

	while (len - n >= sizeof(block) && is_plain(text + n))
		n += sizeof(block);
	while (n < len && (unsigned char)text[n] >= ' ' &&
	       (unsigned char)text[n] < 0x7f && text[n] != '"' && text[n] != '\\')
		n++;
	return n;
}

void
jsonout_text(struct jsonout *out, const char *text, size_t len)
{
	size_t i = 0;

	begin_value(out);
	room_for(out, len + 2);
	jsonout_put(out, "\"", 1);
	while (i < len) {
		size_t plain = plain_run(text + i, len - i), encoded;
		char bytes[8];

		jsonout_put(out, text + i, plain);
		i += plain;
		if (i == len)
			break;
		i += jsonout_encode(text + i, len - i, bytes, &encoded);
		jsonout_put(out, bytes, encoded);
	}
	jsonout_put(out, "\"", 1);
}

void
jsonout_int(struct jsonout *out, int64_t number)
{
	char digits[32];

	jsonout_raw(out, digits,
		    (size_t)snprintf(digits, sizeof(digits), "%" PRId64, number));
}

void
jsonout_uint(struct jsonout *out, uint64_t number)
{
	char digits[32];

	jsonout_raw(out, digits,
		    (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, number));
}

void
jsonout_real(struct jsonout *out, double number)
{
	char digits[32];
	int precision = 15;

	/* The shortest of the usual spellings that reads back as the same number. */
	do
		snprintf(digits, sizeof(digits), "%.*g", precision, number);
	while (strtod(digits, NULL) != number && ++precision <= 17);
	jsonout_raw(out, digits, strlen(digits));
}

/* Writes bytes in base64, without quotation marks around them. */
static void
put_base64(struct jsonout *out, const void *bytes, size_t len)
{
	out->len += base64_encode(bytes, len, room_for(out, BASE64_LEN(len) + 1));
}

void
jsonout_base64(struct jsonout *out, const void *bytes, size_t len)
{
	begin_value(out);
	jsonout_put(out, "\"", 1);
	put_base64(out, bytes, len);
	jsonout_put(out, "\"", 1);
}

void
jsonout_data_uri(struct jsonout *out, const char *type, const void *bytes, size_t len)
{
	begin_value(out);
	jsonout_put(out, "\"data:", 6);
	jsonout_put(out, type, strlen(type));
	jsonout_put(out, ";base64,", 8);
	put_base64(out, bytes, len);
	jsonout_put(out, "\"", 1);
}

void
jsonout_bool(struct jsonout *out, bool truth)
{
	jsonout_raw(out, truth ? "true" : "false", truth ? 4 : 5);
}

void
jsonout_null(struct jsonout *out)
{
	jsonout_raw(out, "null", 4);
}

void
jsonout_raw(struct jsonout *out, const char *json, size_t len)
{
	begin_value(out);
	jsonout_put(out, json, len);
}

void
jsonout_member_open(struct jsonout *out, const char *key, char bracket)
{
	jsonout_key(out, key);
	jsonout_open(out, bracket);
}

void
jsonout_member_real(struct jsonout *out, const char *key, double number)
{
	jsonout_key(out, key);
	jsonout_real(out, number);
}

void
jsonout_member_text(struct jsonout *out, const char *key, const char *text)
{
	jsonout_member_string(out, key, text, text ? strlen(text) : 0);
}

void
jsonout_member_string(struct jsonout *out, const char *key, const char *text, size_t len)
{
	jsonout_key(out, key);
	if (text)
		jsonout_text(out, text, len);
	else
		jsonout_null(out);
}

void
jsonout_member_texts(struct jsonout *out, const char *key, char *const *text, size_t n)
{
	jsonout_member_open(out, key, '[');
	for (size_t i = 0; i < n; i++)
		jsonout_text(out, text[i], strlen(text[i]));
	jsonout_close(out, ']');
}

void
jsonout_member_known(struct jsonout *out, const char *key, bool known, uint64_t number)
{
	jsonout_key(out, key);
	if (known)
		jsonout_uint(out, number);
	else
		jsonout_null(out);
}

void
jsonout_member_uint(struct jsonout *out, const char *key, uint64_t number)
{
	jsonout_key(out, key);
	jsonout_uint(out, number);
}

void
jsonout_member_bool(struct jsonout *out, const char *key, bool truth)
{
	jsonout_key(out, key);
	jsonout_bool(out, truth);
}

void
jsonout_member_raw(struct jsonout *out, const char *key, const char *json)
{
	jsonout_key(out, key);
	jsonout_raw(out, json, strlen(json));
}

size_t
jsonout_cost(const char *text, size_t len)
{
	size_t cost = 2, i = 0;

	while (i < len) {
		size_t plain = plain_run(text + i, len - i), encoded;
		char bytes[8];

		cost += plain;
		i += plain;
		if (i == len)
			break;
		i += jsonout_encode(text + i, len - i, bytes, &encoded);
		cost += encoded;
	}
	return cost;
}

size_t
jsonout_fit(const char *text, size_t len, size_t budget)
{
	size_t cost = 2, i = 0;

	while (i < len) {
		size_t left = budget > cost ? budget - cost : 0;
		size_t plain = plain_run(text + i, len - i), encoded, n;
		char bytes[8];

		if (plain > left)
			return i + left;
		cost += plain;
		i += plain;
		if (i == len)
			break;
		n = jsonout_encode(text + i, len - i, bytes, &encoded);
		if (cost + encoded > budget)
			break;
		cost += encoded;
		i += n;
	}
	return i;
}

size_t
jsonout_repaired(const char *text, size_t len)
{
	size_t repaired = 0, i = 0, bad;

	while (i < len) {
		size_t n = utf8_prefix(text + i, len - i);

		repaired += n;
		i += n;
		if (i == len)
			break;
		(void)utf8_character(text + i, len - i, &bad);
		repaired += 3;
		i += bad;
	}
	return repaired;
}
