/* SPDX-License-Identifier: Apache-2.0 */
/* An MCP server that is reached by HTTP (Streamable HTTP), over TCP, TLS or a unix socket. Each
 * message is a POST of its own, and its answer is JSON or a stream of events. What the server sends
 * is hostile: headers, messages and all that waits have bounds. It is never asked at another
 * address than the configured one: redirects are refused. A message is sent once at most, but once
 * more if the server has refused the token of OAuth that it came with. If a stream of events breaks
 * before 2026-07-28 and its events have ids, the rest is asked for (Last-Event-ID).
 */
#ifndef UPSTREAM_REMOTE_H
#define UPSTREAM_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#define REMOTE_MESSAGE_MAX (16 * 1024 * 1024)	/* bytes of one that it may send */
#define REMOTE_TOKEN_MS 10000	/* for a token endpoint to answer */

struct event_base;
struct remote;

struct remote_options {
	struct event_base *base;	/* all borrowed, for ever */
	const char *url;		/* http://, https:// or unix:PATH[:TARGET] */
	const char *ca_file;		/* "": the machine's own */
	const char *header;		/* the header with the credential; "": Authorization: Bearer
					 */
	const char *credential;		/* "": none */
	/* With a token_url, tokens are requested there for the scopes ("" or separated by blanks),
	 * with client_id and the credential, which is the client's secret. */
	const char *token_url, *client_id, *scope;
	/* Gets a message, followed by NUL. All functions of this module may be called meanwhile. */
	void (*on_message)(void *arg, char *text, size_t len);
	/* No more follows for the request of this id, which may have been answered. status: that of
	 * HTTP; 0: the connection broke. text: the reason, if it was not answered. */
	void (*on_failed)(void *arg, uint64_t id, long status, const char *text);
	/* The server cannot be reached, or its session is gone; all requests are dropped. */
	void (*on_end)(void *arg, const char *text);
	void *arg;
};

struct remote_message {
	uint64_t id;		/* of a request; 0: nobody waits for an answer */
	const char *method;	/* NULL: it is an answer */
	const char *name;	/* of the tool that is called, or of the task; or NULL */
	const json_t *headers;	/* {name: text} of arguments in headers; NULL: none */
	const char *revision;	/* of MCP; "": not known yet */
	bool is_modern;		/* of 2026-07-28 or later */
	const char *text;	/* JSON; copied */
	size_t len;
};

/* Makes one without connecting. It is never freed. */
struct remote *remote_new(const struct remote_options *options);

/* Sends a message. 0; -ENOBUFS: too many are in flight; -EINVAL: it cannot be sent. */
int remote_send(struct remote *remote, const struct remote_message *message);

/* Asks for messages that the server sends by itself (GET), before 2026-07-28; id: for on_failed. 0
 * or -errno as remote_send(). */
int remote_listen(struct remote *remote, uint64_t id, const char *revision);

/* To be called when a request was answered: its stream may end at any time. Does nothing if there
 * is none. */
void remote_release(struct remote *remote, uint64_t id);

/* Closes the answer of a request. Does nothing if there is none. */
void remote_cancel(struct remote *remote, uint64_t id);

/* Closes everything and ends the session, which its server is told (DELETE). on_end is not
 * called. */
void remote_end(struct remote *remote);

/* Is anything under way? */
bool remote_is_busy(const struct remote *remote);

#endif
