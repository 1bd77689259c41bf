/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets in what a peer sends back: each one is overwritten with "*". A secret is found as it is,
 * and as JSON writes it in a string: '"', '\' and '/' with a '\' before them, and any character as
 * \u00XX. In another encoding (base64, compressed, in pieces) it is not found. Pure.
 */
#ifndef BASE_MASK_H
#define BASE_MASK_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of a secret's longest form, for one of len bytes. */
#define MASK_LONGEST(len) (6 * (len))

/* Masks the n secrets in a piece of text, in place; the length stays. A secret is printable ASCII;
 * an empty one is none. is_end: no more text follows.
 * Returns how many bytes at the beginning are finished. The others may be the beginning of a
 * secret: they have to be given again, with what follows. */
size_t mask_secrets(char *text, size_t len, const char *const *secrets, size_t n, bool is_end);

#endif
