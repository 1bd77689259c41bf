/* SPDX-License-Identifier: Apache-2.0 */
/* Cursors of paged lists. A client sends a cursor back to get the next page, and cannot use it for
 * anything else.
 */
#ifndef MCP_CURSOR_H
#define MCP_CURSOR_H

#include <stddef.h>

#define CURSOR_PLACE_MAX 4096		/* bytes of the place that a cursor names */

/* The cursor for the page that begins after place, which is the last item of the page before.
 * Malloc'd. */
char *cursor_write(const char *place);

/* The place that a cursor names, malloc'd; "" for an empty cursor. NULL: it is not a cursor. */
char *cursor_read(const char *cursor, size_t len);

#endif
