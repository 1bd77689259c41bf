/* Cursors of paged lists: opaque to clients, and good for nothing but going on. */
#ifndef MCP_CURSOR_H
#define MCP_CURSOR_H

#include <stddef.h>

#define CURSOR_PLACE_MAX 4096		/* bytes of the place that a cursor names */

/* The cursor that goes on behind place; malloc'd. */
char *cursor_write(const char *place);

/* The place that a cursor names, malloc'd; "" of the empty one. NULL: it is no cursor. */
char *cursor_read(const char *cursor, size_t len);

/* base64 without padding, in the alphabet that suits URLs; malloc'd, NUL behind. */
char *base64url_write(const void *bytes, size_t len);

/* NULL: it is none. Otherwise malloc'd, NUL behind; only the one right spelling is taken. */
char *base64url_read(const char *text, size_t len, size_t *len_r);

#endif
