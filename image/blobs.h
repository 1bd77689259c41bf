/* SPDX-License-Identifier: Apache-2.0 */
/* The blobs of an image, by name: files of a directory, or of an archive. */
#ifndef IMAGE_BLOBS_H
#define IMAGE_BLOBS_H

#include <stddef.h>

#include "image/spool.h"

struct json_t;
struct why;

#define BLOBS_MAX 4096		/* files of an archive */
#define BLOBS_JSON_MAX (4 << 20)	/* bytes of a blob that is JSON */

struct blobs {
	int dir;		/* the directory with the blobs, or for copies of them; borrowed */
	struct blob *blob;	/* copies of an archive's files; NULL: dir has the blobs */
	size_t n;
	struct spool_room *room;
};

/* Copies the files of an archive to files without a name in dir. 0 or -errno with why_r.
 * blobs_free() must be called in both cases. */
int blobs_read(struct blobs *blobs, int archive, struct why *why_r);
void blobs_free(struct blobs *blobs);

/* Opens a blob. A descriptor, which the caller owns, with any offset; -ENOENT; or another -errno.
 */
int blobs_open(const struct blobs *blobs, const char *name);

/* Reads a blob that is JSON. hex: the SHA-256 that it must have; NULL: any. The caller releases the
 * value. NULL with why_r: an error. */
struct json_t *blobs_json(const struct blobs *blobs, const char *name, const char *hex,
			  struct why *why_r);

#endif
