/* SPDX-License-Identifier: Apache-2.0 */
/* The header Range of a request for a file. Pure.
 */
#ifndef HTTP_RANGE_H
#define HTTP_RANGE_H

#include <stdint.h>

/* Computes the bytes that text, the value of the header (NULL: none), selects in a file of this
 * size. Returns the status: 206: a part; 200: the whole file, also if text is not a single range of
 * bytes; 416: the file ends before the range. */
int http_range(const char *text, uint64_t size, uint64_t *offset_r, uint64_t *len_r);

#endif
