/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a user's reply against the flat schemas that elicitation allows. */
#ifndef MCP_FORM_H
#define MCP_FORM_H

#include <stdbool.h>

#include <jansson.h>

/* Does content fit the schema? schema: requestedSchema as JSON text, made by a tool. content: the
 * client's value, of any shape; NULL counts as an empty object. Members that the form does not have
 * are accepted. */
bool mcp_form_fits(const char *schema, const json_t *content);

#endif
