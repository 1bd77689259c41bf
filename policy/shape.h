/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions and results of the tools of other MCP servers and clients, in the bounded form for
 * the supervisor and scripts. Pure; all input is hostile.
 */
#ifndef POLICY_SHAPE_H
#define POLICY_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "proto/message.h"

/* A tool of an answer of tools/list. */
struct shape_tool {
	const char *name;	/* of its JSON */
	bool read_only;		/* its server says so */
	char *about;		/* a JSON object on one line, at most TOOL_ABOUT_MAX bytes: name,
				 * title, description, inputSchema, outputSchema, annotations.
				 * Malloc'd */
};

/* Reads one tool. False: it has no usable name, no schema, or is too large. */
bool shape_tool(const json_t *tool, struct shape_tool *tool_r);

/* The result of tools/call, at most max bytes: TOOL_RETURNED or TOOL_RAISED, and *body_r is a JSON
 * object {"content": [...], "structuredContent": ...} on one line; or TOOL_FAILED, and *body_r is a
 * sentence about the mistake. body_r: malloc'd. */
enum tool_status shape_result(const json_t *result, size_t max, char **body_r);

/* Makes a sentence for people of a server's text: printable ASCII, at most size - 1 bytes. */
void shape_text(char *to, size_t size, const char *text);

#endif
