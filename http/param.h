/* Arguments of tools that a client repeats in headers, Mcp-Param-NAME, for those on the way:
 * properties of an input schema that carry x-mcp-header. They must say what the body says.
 * Of a property that is not listed, so that clients do not know of its header, it may be missing.
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

/* call: the params of a tools/call. NULL when all agrees; else what is wrong, static. */
const char *http_params_mismatch(const struct http_params *params, const struct json_t *call,
				 const struct evkeyvalq *headers);

#endif
