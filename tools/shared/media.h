/* SPDX-License-Identifier: Apache-2.0 */
/* Media types of displayed objects, and of files by their names. Pure.
 */
#ifndef TOOLS_SHARED_MEDIA_H
#define TOOLS_SHARED_MEDIA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

/* The media type of a displayed object, "image/png" ... */
const char *media_of_display(enum display_kind kind);

/* The ending of file names for a displayed object, "png" ... NULL: objects of this kind are not
 * kept as files. */
const char *media_end_of_display(enum display_kind kind);

/* May these bytes be sent as this kind? A picture must begin like pictures of its kind. */
bool media_fits(enum display_kind kind, const void *data, size_t len);

/* The size of a PNG in pixels, from its header. False: the header has no valid size. */
bool media_png_size(const void *data, size_t len, uint32_t *width_r, uint32_t *height_r);

/* The media type by the ending of a path; "application/octet-stream" if the ending is not known. */
const char *media_of_path(const char *path, size_t len);

/* Can data be sent as text? True if it is UTF-8 without control characters, except white space. */
bool media_is_text(const char *data, size_t len);

#endif
