/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of tools that a client repeats in headers, Mcp-Param-NAME, for proxies. They are the
 * properties of an input schema that have x-mcp-header. A header must agree with the body. It may
 * be missing if the property is not listed (mcp/tool_list.h), because clients do not know it then.
 */
#ifndef HTTP_PARAM_H
#define HTTP_PARAM_H

struct evkeyvalq;
struct http_params;
struct json_t;
struct mcp;

/* Reads the schemas of all tools. */
struct http_params *http_params_new(const struct mcp *mcp);
void http_params_free(struct http_params *params);	/* NULL is fine */

/* Compares headers with the params of a tools/call. NULL: they agree; otherwise what is wrong
 * (static). */
const char *http_params_mismatch(const struct http_params *params, const struct json_t *call,
				 const struct evkeyvalq *headers);

#endif
