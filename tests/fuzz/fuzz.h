/* SPDX-License-Identifier: Apache-2.0 */
/* A fuzz target has one function, and checks that stay in every build. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(truth) do { \
	if (!(truth)) { \
		fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #truth); \
		abort(); \
	} } while (0)

/* The remaining bytes of an input that has parts. */
struct rest {
	const uint8_t *at;
	size_t len;
};

/* The next len bytes, or all if there are fewer. */
static inline struct rest
rest_take(struct rest *rest, size_t len)
{
	struct rest part = { rest->at, len < rest->len ? len : rest->len };

	rest->at += part.len;
	rest->len -= part.len;
	return part;
}

/* The next byte; 0 at the end. */
static inline uint8_t
rest_byte(struct rest *rest)
{
	struct rest one = rest_take(rest, 1);

	return one.len > 0 ? *one.at : 0;
}

/* The next line without its newline, or all. */
static inline struct rest
rest_line(struct rest *rest)
{
	const uint8_t *end = rest->len > 0 ? memchr(rest->at, '\n', rest->len) : NULL;
	struct rest line = rest_take(rest, end ? (size_t)(end - rest->at) : rest->len);

	if (end)
		(void)rest_byte(rest);
	return line;
}

#endif
