/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to HTTP requests that are sent in one piece. A function that answers gives the request
 * back to evhttp: the caller may not use the request afterwards.
 */
#ifndef HTTP_REPLY_H
#define HTTP_REPLY_H

#include <stddef.h>

struct evhttp_request;
struct http_connection;
struct jsonout;

/* Answers with a text, or its head alone if the request asks for that. text: malloc'd, taken; NULL:
 * there is no body, and type is not used. */
void http_reply_text(struct http_connection *c, struct evhttp_request *request, int status,
		     const char *type, char *text, size_t len);

/* Answers with JSON. json: a whole text, which is taken; NULL: there is no body. */
void http_reply(struct http_connection *c, struct evhttp_request *request, int status,
		struct jsonout *json);

struct http_error {
	int status;			/* HTTP's */
	int code;			/* JSON-RPC's */
	const char *text;
	const char *id;			/* of the request, as JSON; NULL: null */
	const char *data;		/* a JSON text; NULL: none */
};

/* Answers with a JSON-RPC error. */
void http_reply_error(struct http_connection *c, struct evhttp_request *request,
		      const struct http_error *error);

/* Adds a header to the answer. To be called before one of the functions above. */
void http_reply_header(struct evhttp_request *request, const char *name, const char *value);

#endif
