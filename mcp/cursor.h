/* Cursors of paged lists: opaque to clients, and good for nothing but going on. */
#ifndef MCP_CURSOR_H
#define MCP_CURSOR_H

#include <stddef.h>

#define CURSOR_PLACE_MAX 4096		/* bytes of the place that a cursor names */

/* The cursor that goes on behind place; malloc'd. */
char *cursor_write(const char *place);

/* The place that a cursor names, malloc'd; "" of the empty one. NULL: it is no cursor. */
char *cursor_read(const char *cursor, size_t len);

#endif
