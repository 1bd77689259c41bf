/* SPDX-License-Identifier: Apache-2.0 */
/* Repairs arguments of a tool as many frameworks and models send them: null for an argument that is
 * absent, and numbers, lists and objects as strings.
 */
#ifndef MCP_ARGUMENTS_H
#define MCP_ARGUMENTS_H

#include <jansson.h>

/* A new object, which the caller owns, made from given by the properties of schema, the tool's
 * input schema. A null is left out if the property is not required and may not be null; so is an
 * empty string where a name is needed. A string becomes the JSON value in it if the property takes
 * values of that type and no strings. code is renamed to script, and script to code, whichever the
 * tool has. Everything else is unchanged, for the tool to judge. */
json_t *arguments_settle(const json_t *given, const json_t *schema);

#endif
