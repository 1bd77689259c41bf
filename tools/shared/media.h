/* SPDX-License-Identifier: Apache-2.0 */
/* Media types: of what a script showed, and of files by their names. Pure.
 */
#ifndef TOOLS_SHARED_MEDIA_H
#define TOOLS_SHARED_MEDIA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

/* "image/png" ... */
const char *media_of_display(enum display_kind kind);

/* How names of files end that have it: "png" ... NULL: it is not kept as one. */
const char *media_end_of_display(enum display_kind kind);

/* May this be sent as that? Pictures begin as pictures of their kind do. */
bool media_fits(enum display_kind kind, const void *data, size_t len);

/* The size of a PNG in pixels, from its header. False when it has none that makes sense. */
bool media_png_size(const void *data, size_t len, uint32_t *width_r, uint32_t *height_r);

/* By the end of a path; "application/octet-stream" when that is not known. */
const char *media_of_path(const char *path, size_t len);

/* Can it be sent as text: UTF-8 without control characters but white space? */
bool media_is_text(const char *data, size_t len);

#endif
