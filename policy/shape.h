/* SPDX-License-Identifier: Apache-2.0 */
/* Converts descriptions and results of tools of other MCP servers and of clients to the bounded
 * form for the supervisor and for scripts. Pure; all input is hostile.
 */
#ifndef POLICY_SHAPE_H
#define POLICY_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "proto/message.h"

/* A tool from an answer of tools/list. */
struct shape_tool {
	const char *name;	/* borrowed from the JSON */
	bool read_only;		/* its server says that it changes nothing */
	char *about;		/* a JSON object on one line, at most TOOL_ABOUT_MAX bytes: name,
				 * title, description, inputSchema, outputSchema, annotations.
				 * Malloc'd */
};

/* Converts one tool. False: it has no usable name or no schema, or is too large. */
bool shape_tool(const json_t *tool, struct shape_tool *tool_r);

/* Converts the result of a tools/call. TOOL_RETURNED or TOOL_RAISED: *body_r is a JSON object
 * {"content": [...], "structuredContent": ...} on one line, of at most max bytes. TOOL_FAILED:
 * *body_r is a sentence about the mistake. *body_r is malloc'd. */
enum tool_status shape_result(const json_t *result, size_t max, char **body_r);

/* Makes a text for people from a server's text: printable ASCII, at most size - 1 bytes. */
void shape_text(char *to, size_t size, const char *text);

#endif
