/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an image, by name: files of a directory, or of an archive with them. */
#ifndef IMAGE_BLOBS_H
#define IMAGE_BLOBS_H

#include <stddef.h>

#include "image/spool.h"

struct json_t;
struct why;

#define BLOBS_MAX 4096		/* files of an archive */
#define BLOBS_JSON_MAX (4 << 20)	/* bytes of one that is JSON */

struct blobs {
	int dir;		/* their directory, or where copies are made; the caller's */
	struct blob *blob;	/* of an archive; NULL: dir has them */
	size_t n;
	struct spool_room *room;
};

/* Copies the files of an archive to nameless ones in dir. -errno with why_r filled. blobs_free() in
 * any case. */
int blobs_read(struct blobs *blobs, int archive, struct why *why_r);
void blobs_free(struct blobs *blobs);

/* Opens one. A descriptor of the caller's, -ENOENT, or -errno. Its offset is not at the start. */
int blobs_open(const struct blobs *blobs, const char *name);

/* Reads one that is JSON, whose SHA-256 has to be the given one unless hex is NULL. NULL with why_r
 * filled. */
struct json_t *blobs_json(const struct blobs *blobs, const char *name, const char *hex,
			  struct why *why_r);

#endif
