/* SPDX-License-Identifier: Apache-2.0 */
/* JSON-RPC 2.0: parses the text of one line into checked messages, and writes the text of answers.
 * No I/O and no policy. The only rule of MCP here is that params are an object.
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
#define JSONRPC_LONG (64 * 1024)	/* bytes; a line of this length or longer waits for its
					 * turn to be parsed (base/rota.h) */
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
	struct jsonrpc_id id;	/* of a request or response; of an invalid message, if the id could
				 * be read */
	const char *method;	/* of a request or notification; without NUL inside */
	json_t *params;		/* an object; NULL: absent. Borrowed */
	json_t *result;		/* of a response, any value; NULL: it is an error. Borrowed */
	int code;		/* of an invalid message, and of a response that is to be refused */
	const char *text;	/* with code: the mistake, static; NULL: there is none */
};

/* One line. If it is not a batch, it holds exactly one message. */
struct jsonrpc_line {
	bool is_batch;
	size_t n;
	struct jsonrpc_message *message;
	json_t *value;		/* the whole line; the messages borrow from it */
};

/* Parses a line. Never fails: a mistake in the line becomes a message of kind JSONRPC_INVALID. A
 * response with a mistake is still a JSONRPC_RESPONSE if its id can be read; it has code and text,
 * and no result. jsonrpc_line_done releases *line_r. */
void jsonrpc_parse(const char *text, size_t len, struct jsonrpc_line *line_r);
void jsonrpc_line_done(struct jsonrpc_line *line);

/* Is text within the bounds of depth and number of values? Its grammar is not checked. */
bool jsonrpc_is_bounded(const char *text, size_t len);

/* Moves the id out of *id, which is empty afterwards. */
struct jsonrpc_id jsonrpc_id_take(struct jsonrpc_id *id);
void jsonrpc_id_done(struct jsonrpc_id *id);

/* Writes the beginning of an answer, up to the value of "result", which the caller writes next.
 * id_raw is not NULL. */
/* Writes a value. */
void jsonrpc_write_value(struct jsonout *out, const json_t *value);

void jsonrpc_open_result(struct jsonout *out, const char *id_raw);
void jsonrpc_close_result(struct jsonout *out);

/* Writes the beginning of an error answer, up to the value of "error", which the caller writes
 * next. id_raw as in jsonrpc_write_error. jsonrpc_close_result writes the end. */
void jsonrpc_open_error(struct jsonout *out, const char *id_raw);

/* Writes the value of "error". data: JSON text, or NULL. */
void jsonrpc_write_error_object(struct jsonout *out, int code, const char *text,
				const char *data);

/* Writes a whole error answer. id_raw NULL: the answer has no "id", because the id could not be
 * read. data: JSON text, or NULL. */
void jsonrpc_write_error(struct jsonout *out, const char *id_raw, int code,
			 const char *text, const char *data);

#endif
