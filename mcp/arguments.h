/* Arguments of a tool as clients really send them: with null for what is not given, and with
 * numbers, lists and objects as strings. Many frameworks and models do so; what is meant is clear.
 */
#ifndef MCP_ARGUMENTS_H
#define MCP_ARGUMENTS_H

#include <jansson.h>

/* A new object for the caller, made of given by the properties of schema, which is the tool's
 * input schema. Of a property that is not required a null is left out where it may not be null,
 * and so is an empty string where a name is needed. A string that holds JSON of the
 * type that is wanted, where a string is not wanted, becomes that. code stands for script and
 * script for code. All else stays as it is, for the tool to judge. */
json_t *arguments_settle(const json_t *given, const json_t *schema);

#endif
