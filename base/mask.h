/* SPDX-License-Identifier: Apache-2.0 */
/* Masks secrets in text that a peer sends back: each one is overwritten with "*". A secret is found
 * in plain form, and in the form that it has in a JSON string: '"', '\' and '/' with a '\' before
 * them, and any character as \u00XX. In another encoding (base64, compressed, in pieces) it is not
 * found. Pure.
 */
#ifndef BASE_MASK_H
#define BASE_MASK_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the longest form of a secret of len bytes. */
#define MASK_LONGEST(len) (6 * (len))

/* Masks the n secrets in a piece of text, in place; the length stays. A secret is printable ASCII;
 * an empty one is ignored. is_end: no more text follows. Returns how many bytes at the beginning
 * are finished. The other bytes may be the beginning of a secret: pass them again, followed by more
 * text. */
size_t mask_secrets(char *text, size_t len, const char *const *secrets, size_t n, bool is_end);

#endif
