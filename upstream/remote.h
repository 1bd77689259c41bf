/* SPDX-License-Identifier: Apache-2.0 */
/* An MCP server that is reached by HTTP (Streamable HTTP), over TCP, TLS or a unix socket. Each
 * message is a POST of its own; its answer is JSON or a stream of events. All input from the server
 * is hostile: headers, messages and waiting data are bounded. Redirects are refused, so only the
 * configured address is asked. A message is sent at most once; it is sent a second time only if the
 * server has refused its token of OAuth. In revisions before 2026-07-28, if a stream of events
 * breaks and its events have ids, the rest is asked for (Last-Event-ID).
 */
#ifndef UPSTREAM_REMOTE_H
#define UPSTREAM_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#define REMOTE_MESSAGE_MAX (16 * 1024 * 1024)	/* bytes of a message from the server */
#define REMOTE_TOKEN_MS 10000	/* the time that a token endpoint has to answer */

struct event_base;
struct remote;

struct remote_options {
	struct event_base *base;	/* all borrowed, as long as the process */
	const char *url;		/* http://, https:// or unix:PATH[:TARGET] */
	const char *ca_file;		/* "": the machine's own */
	const char *header;		/* the header with the credential; "": Authorization: Bearer
					 */
	const char *credential;		/* "": none */
	/* token_url: the endpoint for tokens of OAuth; "": none. Tokens are requested there with
	 * client_id and the credential, which is then the client's secret. scope: "", or scopes
	 * separated by blanks. */
	const char *token_url, *client_id, *scope;
	/* Gets a message, followed by NUL. All functions of this module may be called from within.
	 */
	void (*on_message)(void *arg, char *text, size_t len);
	/* No more messages follow for the request of this id; it may have been answered before.
	 * status: of HTTP; 0: the connection broke. text: the reason, if it was not answered. */
	void (*on_failed)(void *arg, uint64_t id, long status, const char *text);
	/* The server cannot be reached, or its session is gone. All requests are dropped. */
	void (*on_end)(void *arg, const char *text);
	void *arg;
};

struct remote_message {
	uint64_t id;		/* of a request; 0: the message needs no answer */
	const char *method;	/* NULL: the message is an answer */
	const char *name;	/* of the called tool, or of the task; or NULL */
	const json_t *headers;	/* arguments that are repeated in headers, {name: text}; NULL: none
				 */
	const char *revision;	/* of MCP; "": not known yet */
	bool is_modern;		/* the revision is 2026-07-28 or later */
	const char *text;	/* JSON; copied */
	size_t len;
};

/* Makes a remote server, without connecting. It is never freed. */
struct remote *remote_new(const struct remote_options *options);

/* Sends a message. 0; -ENOBUFS: too many messages are in flight; -EINVAL: it cannot be sent. */
int remote_send(struct remote *remote, const struct remote_message *message);

/* Asks for messages that the server sends by itself (GET), in revisions before 2026-07-28. id: for
 * on_failed. 0, or -errno as in remote_send(). */
int remote_listen(struct remote *remote, uint64_t id, const char *revision);

/* To be called when a request was answered: from now on the end of its stream is not an error. Does
 * nothing if there is no such request. */
void remote_release(struct remote *remote, uint64_t id);

/* Closes the connection on which the answer of a request comes. Does nothing if there is no such
 * request. */
void remote_cancel(struct remote *remote, uint64_t id);

/* Drops all requests, and ends the session, which the server is told (DELETE). on_end is not
 * called. */
void remote_end(struct remote *remote);

/* Is any transfer under way? */
bool remote_is_busy(const struct remote *remote);

#endif
