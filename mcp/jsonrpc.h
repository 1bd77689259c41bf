/* SPDX-License-Identifier: Apache-2.0 */
/* JSON-RPC 2.0: makes checked messages of the text of one line, and text of answers. No I/O and no
 * policy. Of MCP it knows only the rule that params are an object.
 */
#ifndef MCP_JSONRPC_H
#define MCP_JSONRPC_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/jsonbound.h"

struct jsonout;

enum jsonrpc_code {
	JSONRPC_PARSE_ERROR = -32700,
	JSONRPC_INVALID_REQUEST = -32600,
	JSONRPC_METHOD_NOT_FOUND = -32601,
	JSONRPC_INVALID_PARAMS = -32602,
	JSONRPC_INTERNAL_ERROR = -32603,
};

#define JSONRPC_DEPTH_MAX JSON_DEPTH_MAX
#define JSONRPC_VALUES_MAX JSON_VALUES_MAX	/* of one line */
#define JSONRPC_BATCH_MAX 100		/* messages of one line */
#define JSONRPC_LONG (64 * 1024)	/* bytes of a line that is parsed in its turn:
					 * base/rota.h */
#define JSONRPC_ID_MAX 1024		/* bytes of the text of an id */

/* Both NULL: there is no id. */
struct jsonrpc_id {
	char *raw;		/* the client's exact text, NUL-terminated */
	json_t *value;		/* a string or an integer; compare with json_equal */
};

enum jsonrpc_kind {
	JSONRPC_REQUEST,
	JSONRPC_NOTIFICATION,
	JSONRPC_RESPONSE,
	JSONRPC_INVALID,	/* to be answered with code and text */
};

struct jsonrpc_message {
	enum jsonrpc_kind kind;
	struct jsonrpc_id id;	/* of a request, and of an invalid message if it was readable */
	const char *method;	/* of a request or notification; without NUL inside */
	json_t *params;		/* an object; NULL: absent. Borrowed */
	json_t *result;		/* of a response, any value; NULL: it is an error. Borrowed */
	int code;		/* of an invalid message, and of a response that is to be refused */
	const char *text;	/* likewise, static; NULL: there is no mistake */
};

/* One line. If it is not a batch, it holds exactly one message. */
struct jsonrpc_line {
	bool is_batch;
	size_t n;
	struct jsonrpc_message *message;
	json_t *value;		/* what messages borrow from */
};

/* Parses a line. Never fails: a mistake in the line becomes a message JSONRPC_INVALID.
 * A mistake in a response leaves it one, with code and text and without result, if its id can be
 * read. jsonrpc_line_done releases the result. */
void jsonrpc_parse(const char *text, size_t len, struct jsonrpc_line *line_r);
void jsonrpc_line_done(struct jsonrpc_line *line);

/* Whether text is within the bounds of depth and number of values. Its grammar is not checked. */
bool jsonrpc_is_bounded(const char *text, size_t len);

/* Moves the id out of *id, which is empty afterwards. */
struct jsonrpc_id jsonrpc_id_take(struct jsonrpc_id *id);
void jsonrpc_id_done(struct jsonrpc_id *id);

/* Opens an answer up to where the value of "result" is written next; id_raw is not NULL. */
void jsonrpc_open_result(struct jsonout *out, const char *id_raw);
void jsonrpc_close_result(struct jsonout *out);

/* Opens an error answer up to where the value of "error" is written next; id_raw as below.
 * Closed by jsonrpc_close_result. */
void jsonrpc_open_error(struct jsonout *out, const char *id_raw);

/* The value of "error". data: JSON text, or NULL. */
void jsonrpc_write_error_object(struct jsonout *out, int code, const char *text,
				const char *data);

/* A whole error answer. id_raw NULL: without "id", because the id could not be read. data: JSON
 * text, or NULL. */
void jsonrpc_write_error(struct jsonout *out, const char *id_raw, int code,
			 const char *text, const char *data);

#endif
