/* SPDX-License-Identifier: Apache-2.0 */
/* Copies files to new files that have no name, and computes their SHA-256. No other process can
 * change such a copy between the check of its hash and its use.
 */
#ifndef IMAGE_SPOOL_H
#define IMAGE_SPOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SPOOL_HEX 64		/* characters of a SHA-256 */

struct archive;
struct why;

/* The bytes that may still be written, by all functions that share this. */
struct spool_room {
	uint64_t bytes;
};

/* Makes a file without a name in a directory. A descriptor, which the caller owns, or -errno. */
int spool_new(int dir);

/* Copies the data of an archive's current entry to fd. If hex_r is not NULL, holes are written as
 * zeros, and hex_r gets the SHA-256 in lower case. 0 or -errno with why_r. */
int spool_entry(struct archive *archive, int fd, struct spool_room *room, char hex_r[SPOOL_HEX + 1],
		struct why *why_r);

/* Lets an archive be read with the compressions that images have: gzip, bzip2, xz, zstd. Others are
 * not allowed, because libarchive starts programs for some. False: this libarchive lacks one. */
bool spool_knows_compression(struct archive *archive);

/* Copies a file, from its start, to a new file without a name in dir. unpacked: if the file is
 * compressed, its content is unpacked. hex_r gets the SHA-256 of the written bytes. A descriptor,
 * which the caller owns, or -errno with why_r. */
int spool_copy(int from, int dir, bool unpacked, struct spool_room *room, char hex_r[SPOOL_HEX + 1],
	       struct why *why_r);

/* Computes the SHA-256 of bytes. */
void spool_hex(const void *bytes, size_t len, char hex_r[SPOOL_HEX + 1]);

/* Fills in why_r with the error of libarchive. Returns its -errno, or -EBADMSG. */
int spool_refuse(struct archive *archive, struct why *why_r);

#endif
