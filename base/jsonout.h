/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON text, value by value, into a buffer that grows.
 *
 * Answers are written as text, and not built as trees. So ids and a script's result keep their
 * exact spelling, and megabytes of output are copied only once.
 *
 *   jsonout_open(out, '{');
 *   jsonout_key(out, "id");
 *   jsonout_raw(out, id, id_len);
 *   jsonout_close(out, '}');
 */
#ifndef BASE_JSONOUT_H
#define BASE_JSONOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jsonout {
	char *at;		/* the text that was written so far; no NUL follows */
	size_t len, size;
	bool comma;		/* the next value or key needs a comma before it */
};

void jsonout_init(struct jsonout *out);
void jsonout_done(struct jsonout *out);

/* Returns the text with '\n' and NUL after it, malloc'd, which the caller frees; *len_r counts the
 * newline. Afterwards out is empty, and can be used again. */
char *jsonout_take_line(struct jsonout *out, size_t *len_r);

/* As jsonout_take_line, without the newline. */
char *jsonout_take(struct jsonout *out);

void jsonout_open(struct jsonout *out, char bracket);	/* '{' or '[' */
void jsonout_close(struct jsonout *out, char bracket);	/* '}' or ']' */
void jsonout_key(struct jsonout *out, const char *key);	/* plain ASCII, never from a peer */

/* Writes a string of any bytes. Bytes that are not well-formed UTF-8 are written as U+FFFD. */
void jsonout_text(struct jsonout *out, const char *text, size_t len);
void jsonout_int(struct jsonout *out, int64_t number);
void jsonout_uint(struct jsonout *out, uint64_t number);
void jsonout_real(struct jsonout *out, double number);	/* finite */
void jsonout_bool(struct jsonout *out, bool truth);
void jsonout_null(struct jsonout *out);

/* Writes a value that is JSON text already. The caller has checked that it is valid and has no
 * newline. */
void jsonout_raw(struct jsonout *out, const char *json, size_t len);

/* Writes a string: len bytes in base64, with padding. */
void jsonout_base64(struct jsonout *out, const void *bytes, size_t len);

/* Writes a string: len bytes as a data: URI. type: plain ASCII, never from a peer. */
void jsonout_data_uri(struct jsonout *out, const char *type, const void *bytes, size_t len);

/* These write a key and a value; the first only its bracket. text ends with NUL, or has len bytes;
 * NULL: null is written. */
void jsonout_member_open(struct jsonout *out, const char *key, char bracket);
void jsonout_member_text(struct jsonout *out, const char *key, const char *text);
void jsonout_member_string(struct jsonout *out, const char *key, const char *text, size_t len);
void jsonout_member_texts(struct jsonout *out, const char *key, char *const *text, size_t n);
void jsonout_member_uint(struct jsonout *out, const char *key, uint64_t number);
void jsonout_member_known(struct jsonout *out, const char *key, bool known,
			  uint64_t number);	/* not known: null */
void jsonout_member_real(struct jsonout *out, const char *key, double number);
void jsonout_member_bool(struct jsonout *out, const char *key, bool truth);
void jsonout_member_raw(struct jsonout *out, const char *key, const char *json);

/* How many bytes jsonout_text writes for text. */
size_t jsonout_cost(const char *text, size_t len);

/* How many bytes the text has after jsonout_text wrote it and a JSON parser read it: each U+FFFD
 * has three. */
size_t jsonout_repaired(const char *text, size_t len);

/* The length of the longest head of text that ends between characters, and for which jsonout_text
 * writes at most budget bytes. */
size_t jsonout_fit(const char *text, size_t len, size_t budget);

#endif
