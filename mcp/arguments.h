/* SPDX-License-Identifier: Apache-2.0 */
/* Repairs common mistakes of frameworks and models in a tool's arguments: null for an absent
 * argument, numbers, lists and objects that are sent as strings, and names that are nearly right.
 */
#ifndef MCP_ARGUMENTS_H
#define MCP_ARGUMENTS_H

#include <jansson.h>

/* Repairs the arguments of a call. given: the arguments; schema: the tool's input schema. Returns a
 * new object, which the caller owns. A null is left out if the property is not required and may not
 * be null. An empty string is left out if the property is not required and must be a name. A string
 * becomes the JSON value in it if the property takes values of that type and no strings; one word
 * becomes a list, if the property is a list of strings. A name that the schema lacks is replaced by
 * one that it has and that was not given, such as "code" by "script", or "timeout" by
 * "timeout_seconds". All other members are unchanged; the tool checks them. */
json_t *arguments_settle(const json_t *given, const json_t *schema);

#endif
