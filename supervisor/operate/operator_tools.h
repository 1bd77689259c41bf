/* SPDX-License-Identifier: Apache-2.0 */
/* Tools of other MCP servers, for operators: what there is, and calls to try them. The policy of
 * scripts does not hold for them; each call is in the audit log, as its operator's.
 */
#ifndef SUPERVISOR_OPERATE_OPERATOR_TOOLS_H
#define SUPERVISOR_OPERATE_OPERATOR_TOOLS_H

#include <jansson.h>

struct audit;
struct engine;
struct operator_call;
struct why;

/* {"ok", "tools": [{"server", "tool", "read_only", "description"}]}: of all servers, the first line
 * of each description. */
json_t *operator_tools_list(const struct engine *engine);

/* {"ok", "about": what its server says of it}; NULL with why_r: the request's "server" has no
 * "tool". */
json_t *operator_tools_describe(const struct engine *engine, const json_t *request,
				struct why *why_r);

/* Calls the request's "tool" of "server" with "arguments". done gets the answer (taken over), from
 * a later turn of the loop; then the call is no more. NULL with why_r: nothing was called. */
struct operator_call *operator_tools_call(const struct engine *engine, struct audit *audit,
					  const char *principal, const json_t *request,
					  void (*done)(void *arg, json_t *answer), void *arg,
					  struct why *why_r);

/* Nobody waits for it any more. NULL is fine. */
void operator_tools_drop(struct operator_call *call);

#endif
