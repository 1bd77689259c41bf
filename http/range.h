/* SPDX-License-Identifier: Apache-2.0 */
/* The header Range of a request for a file. Pure.
 */
#ifndef HTTP_RANGE_H
#define HTTP_RANGE_H

#include <stdint.h>

/* The bytes that text means in a file of size: 206 with a part; 200: the whole file, also for what
 * is no single range of bytes; 416: the file ends before it. text NULL: 200. */
int http_range(const char *text, uint64_t size, uint64_t *offset_r, uint64_t *len_r);

#endif
