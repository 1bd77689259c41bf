/* SPDX-License-Identifier: Apache-2.0 */
/* RECORD of a wheel: a list of its files, with their SHA-256 and sizes, as CSV. */
#ifndef KEEPER_RECORD_H
#define KEEPER_RECORD_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "keeper/digest.h"
#include "keeper/path.h"

struct record_row {
	char path[PATH_BYTES_MAX + 1];
	char hash[16 + DIGEST_BASE64 + 1];	/* "sha256=..."; "": none */
	char size[24];				/* decimal; "": none */
};

/* Reads one row at *at and moves *at behind it. 1; 0: the end is reached; or -EBADMSG: this is not
 * a row of a RECORD. */
int record_read(const char **at, const char *end, struct record_row *row_r);

/* Writes the row of a file. sum NULL: without hash and size, as for RECORD itself. */
void record_write(FILE *to, const char *path, const unsigned char *sum, uint64_t size);

/* Writes "sha256=..." into text_r, which has the size of record_row.hash. */
void record_hash(const unsigned char sum[DIGEST_BYTES], char *text_r);

#endif
