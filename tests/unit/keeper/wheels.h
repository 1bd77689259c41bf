/* SPDX-License-Identifier: Apache-2.0 */
/* Wheels for tests, written by hand: each byte may be wrong in them. */
#ifndef TESTS_WHEELS_H
#define TESTS_WHEELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file of a zip. A member that is 0 or NULL has its usual value. */
struct zipped {
	const char *path, *text;
	size_t len;			/* of text; 0: as it is */
	uint32_t mode;			/* of a unix file, 0100644 */
	const char *other_path;		/* in the central directory */
	int64_t lie;			/* added to the size that both places say */
	uint32_t bad_crc;		/* xor */
	unsigned int method, flags;	/* 0: stored */
};

struct zip {
	unsigned char *at;
	size_t len;
};

/* A zip of n files, without compression; free() of its bytes. */
struct zip zip_make(const struct zipped *file, size_t n);

/* A wheel of name and version with these files, and the files that a wheel needs. A RECORD is
 * written unless there is one. */
struct zip wheel_make(const char *name, const char *version, const struct zipped *file, size_t n);

/* A nameless file of it. */
int zip_file(const struct zip *zip);

#endif
