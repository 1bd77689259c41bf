/* SPDX-License-Identifier: Apache-2.0 */
/* Masks secrets in text that a peer sends back: overwrites them with "*". A secret is found in
 * plain form, and in the forms that it can have in a JSON string: with a '\' before '"', '\' and
 * '/', and with any character as \u00XX. It is not found in another encoding, such as base64, or if
 * it is compressed or in pieces, except for its beginning at the end of the text. Pure.
 */
#ifndef BASE_MASK_H
#define BASE_MASK_H

#include <stdbool.h>
#include <stddef.h>

#define MASK_PART 8	/* bytes of a secret's beginning that are masked at the end of a text */

/* Bytes of the longest form of a secret of len bytes. */
#define MASK_LONGEST(len) (6 * (len))

/* Masks the n secrets in a piece of text, in place; the length stays. A secret is printable ASCII;
 * an empty one is ignored. is_end: no more text follows. Returns the number of bytes at the
 * beginning that are finished. The bytes after these may be the beginning of a secret: they must be
 * passed again, followed by more text. */
size_t mask_secrets(char *text, size_t len, const char *const *secrets, size_t n, bool is_end);

#endif
