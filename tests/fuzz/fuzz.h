/* What a fuzz target has: one function, and checks that stay in every build. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(truth) do { \
	if (!(truth)) { \
		fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #truth); \
		abort(); \
	} } while (0)

#endif
