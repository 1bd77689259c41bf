/* SPDX-License-Identifier: Apache-2.0 */
/* Tools of other MCP servers, for operators: lists, descriptions, and calls to try them. The policy
 * of scripts does not apply to these calls; each is in the audit log with its operator.
 */
#ifndef SUPERVISOR_OPERATE_OPERATOR_TOOLS_H
#define SUPERVISOR_OPERATE_OPERATOR_TOOLS_H

#include <jansson.h>

struct audit;
struct engine;
struct operator_call;
struct why;

/* Lists the tools of all servers: {"ok", "tools": [{"server", "tool", "read_only",
 * "description"}]}, with the first line of each description. */
json_t *operator_tools_list(const struct engine *engine);

/* Describes the "tool" of the "server" that the request names: {"ok", "about": what the server says
 * of it}. NULL with why_r: there is none. */
json_t *operator_tools_describe(const struct engine *engine, const json_t *request,
				struct why *why_r);

/* Calls the "tool" of the "server" that the request names, with its "arguments". done gets the
 * answer, which belongs to it, in a later turn of the loop; after that the call is freed. NULL with
 * why_r: nothing was called. */
struct operator_call *operator_tools_call(const struct engine *engine, struct audit *audit,
					  const char *principal, const json_t *request,
					  void (*done)(void *arg, json_t *answer), void *arg,
					  struct why *why_r);

/* Drops a call: done is not called. NULL is fine. */
void operator_tools_drop(struct operator_call *call);

#endif
