/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of files without a name, beside what is made of them, and their SHA-256.
 * A copy cannot change between the look at its hash and its use.
 */
#ifndef IMAGE_SPOOL_H
#define IMAGE_SPOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SPOOL_HEX 64		/* characters of a SHA-256 */

struct archive;
struct why;

/* Bytes that may still be written, by all that shares this. */
struct spool_room {
	uint64_t bytes;
};

/* A file without a name in a directory. A descriptor of the caller's, or -errno. */
int spool_new(int dir);

/* Copies the data of an archive's current entry to fd. If hex_r is given, holes are written too,
 * and it gets the SHA-256 in lower case. 0 or -errno with why_r filled. */
int spool_entry(struct archive *archive, int fd, struct spool_room *room, char hex_r[SPOOL_HEX + 1],
		struct why *why_r);

/* Lets an archive be read with the compressions that images have: gzip, bzip2, xz, zstd. For some
 * of the others libarchive starts programs. False: this libarchive lacks one. */
bool spool_knows_compression(struct archive *archive);

/* Copies a file from its start to a new one in a directory, with what was compressed unpacked if
 * unpacked is true. Its SHA-256 is that of what is written. A descriptor, or -errno with why_r. */
int spool_copy(int from, int dir, bool unpacked, struct spool_room *room, char hex_r[SPOOL_HEX + 1],
	       struct why *why_r);

/* The SHA-256 of bytes. */
void spool_hex(const void *bytes, size_t len, char hex_r[SPOOL_HEX + 1]);

/* Says why libarchive could not go on; returns -EBADMSG or what it says. */
int spool_refuse(struct archive *archive, struct why *why_r);

#endif
