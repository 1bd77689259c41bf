/* SPDX-License-Identifier: Apache-2.0 */
/* Repairs two common mistakes of frameworks and models in a tool's arguments: null for an absent
 * argument, and numbers, lists and objects that are sent as strings.
 */
#ifndef MCP_ARGUMENTS_H
#define MCP_ARGUMENTS_H

#include <jansson.h>

/* Repairs the arguments of a call. given: the arguments; schema: the tool's input schema. Returns a
 * new object, which the caller owns. A null is left out if the property is not required and may not
 * be null. An empty string is left out if the property is not required and must be a name. A string
 * becomes the JSON value in it if the property takes values of that type and no strings. "code" is
 * renamed to "script", or "script" to "code", if the tool has only the other one. All other members
 * are unchanged; the tool checks them. */
json_t *arguments_settle(const json_t *given, const json_t *schema);

#endif
