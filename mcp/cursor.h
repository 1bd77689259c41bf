/* SPDX-License-Identifier: Apache-2.0 */
/* Cursors of paged lists. Clients can only send one back to get the next page. */
#ifndef MCP_CURSOR_H
#define MCP_CURSOR_H

#include <stddef.h>

#define CURSOR_PLACE_MAX 4096		/* bytes of the place that a cursor names */

/* The cursor of the page after place; malloc'd. */
char *cursor_write(const char *place);

/* The place that a cursor names, malloc'd; "" of the empty one. NULL: it is no cursor. */
char *cursor_read(const char *cursor, size_t len);

#endif
