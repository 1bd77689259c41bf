/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the HTTP server, for its own files only.
 *
 *   http/server.c      listening sockets; evhttp, and the adoption of its connections
 *   http/connection.c  one connection: its time-outs, its unread and unsent bytes, its end
 *   http/reply.c       answers that are sent in one piece
 *   http/request.c     one request: its user, its checks, its refusal
 *   http/exchange.c    one POST that a conversation answers, by JSON or a stream of events
 *   http/download.c    a file that is sent by a signed link
 *   http/events.c      the stream of events; a GET that listens, or asks for the rest of a stream
 *   http/upload.c      a file that comes in by a signed link
 */
#ifndef HTTP_PARTS_H
#define HTTP_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/accepting.h"
#include "base/rota.h"
#include "govern/gate.h"
#include "http/account.h"
#include "http/framing.h"
#include "http/head.h"
#include "http/options.h"
#include "http/principal.h"

struct bufferevent;
struct evconnlistener;
struct event;
struct evhttp;
struct evhttp_connection;
struct evhttp_request;
struct http_download;
struct http_exchange;
struct http_params;
struct http_replay;
struct http_session;
struct http_sessions;
struct http_upload;
struct jsonrpc_line;
struct link;
struct revision;

LIST_HEAD(http_connections, http_connection);

/* One listening socket. */
struct http_endpoint {
	LIST_ENTRY(http_endpoint) link;		/* in server.c's list; set with bound */
	struct http_server *server;
	struct evhttp *http;
	struct evconnlistener *listener;
	struct evhttp_bound_socket *bound;	/* NULL: accepts no more connections */
	bool by_socket;				/* a unix socket */
	char *host;				/* its own address, as in a Host header; NULL: none
						 */
	struct http_connections newborn;	/* accepted by evhttp, not yet adopted */
	unsigned int accepted;			/* how many in this turn of the loop */
	struct event *adopt;			/* adopts the newborn ones */
	struct accepting accepting;
	bool only_metrics;			/* MCP is not served here */
};

struct http_server {
	struct http_server_options options;
	struct event_base *base;
	struct http_endpoint endpoint[HTTP_ENDPOINTS_MAX];
	size_t n_endpoints;
	struct http_connections connections;
	struct http_connection **by_fd;		/* n_fds of them; NULL: none */
	size_t n_fds;
	struct http_peers peers;
	TAILQ_HEAD(, http_connection) strangers;	/* oldest first */
	size_t n_strangers;
	struct http_tenants tenants;
	struct http_sessions *sessions;
	struct http_params *params;
	bool draining, freeing;
	void (*on_empty)(void *arg);
	void *arg;
};

enum http_state {
	HTTP_NEWBORN,		/* on its endpoint's list */
	HTTP_WAITS,		/* it waits for the first byte of a request */
	HTTP_READS,		/* a request is arriving */
	HTTP_SERVES,		/* the request is being answered */
	HTTP_FLUSHES,		/* the answer is complete, and waits to be sent */
	HTTP_ENDS,		/* its clock will close it */
};

/* Calls of a connection to its exchange. */
struct http_waiter {
	void (*lost)(struct http_exchange *x);		/* the connection is gone */
	void (*end_input)(struct http_exchange *x);	/* the server stops */
};

struct http_connection {
	LIST_ENTRY(http_connection) link;
	struct http_server *server;
	struct http_endpoint *endpoint;
	struct bufferevent *bev;		/* belongs to evhttp */
	struct evhttp_connection *evcon;
	int fd;
	struct http_caller caller;
	struct http_peer *peer;			/* NULL: the connection was refused */
	TAILQ_ENTRY(http_connection) stranger_link;
	bool is_stranger;			/* no request on it was authenticated yet */
	struct http_tenant *holder;		/* held: of its last request; NULL: not counted */
	size_t charged_in, charged_out;		/* bytes that are charged to peer */
	enum http_state state;
	struct event *clock;			/* closes the connection: at the time limit of the
						 * state, or to end it */
	int refusal;				/* status of the refusal, its last answer; 0: none
						 */
	struct http_exchange *exchange;		/* waits for its conversation; NULL: none */
	const struct http_waiter *waiter;	/* the callbacks of the exchange; set with it */
	struct http_download *download;		/* the file that is sent on it; NULL: none */
	struct http_upload *upload;		/* the file that arrives on it; NULL: none */
	void (*upload_lost)(struct http_upload *upload);	/* called at the connection's end;
								 * set with upload */
	struct http_framing framing;		/* of what has arrived */
	bool at_start;				/* evhttp has read no byte of the next request */
	void (*on_put)(struct http_connection *c);	/* called for an upload, to take the
							 * connection from evhttp */
	struct evhttp_request *held;		/* waits for identity or turn; NULL: no request
						 * waits */
	struct gate_wait identity;		/* called when the user is known */
	struct rota_entry turn;			/* called when the long body may be parsed */
	bool has_turn;				/* set while turn calls back */
};

/* ---- http/connection.c ---- */

/* Makes the state of a connection that evhttp is about to get. The caller sets identity, turn and
 * on_put. */
struct http_connection *http_connection_new(struct http_endpoint *endpoint);

/* To be called when evhttp has the connection: counts and watches it. May free it. */
void http_connection_adopt(struct http_connection *c);

/* To be called when a request was received. evhttp still has its body, of body_bytes; the bytes in
 * the connection's own buffer belong to the next request. */
void http_connection_serves(struct http_connection *c, size_t body_bytes);

/* Counts the connection for the tenant of its request, instead of an earlier one. False: the tenant
 * has as many as are left for others (base/fair.h). */
bool http_connection_take(struct http_connection *c, struct http_tenant *tenant);

/* To be called when the whole answer was given to evhttp, which reports when it is sent. */
void http_connection_flushes(struct http_connection *c, struct evhttp_request *request);

/* Is the client gone? Looks at the socket, because evhttp does not read it before the answer. */
bool http_connection_is_gone(const struct http_connection *c);

/* Closes the connection from a later turn of the loop. status: of a last answer; 0: none. */
void http_connection_end(struct http_connection *c, int status);

/* The number of bytes that wait to be sent. */
size_t http_connection_unsent(const struct http_connection *c);

/* Closes the connection if it serves no request. Not to be called from within callbacks of evhttp.
 */
void http_connection_drain(struct http_connection *c);

/* ---- http/request.c ---- */

void http_request_serve(struct http_connection *c, struct evhttp_request *request);

/* Serves the held request: its user is known. arg: the connection. */
void http_request_serve_held(void *arg);

/* Serves the held request: it has the turn to parse its long body. arg: the connection. */
void http_request_serve_in_turn(void *arg);

/* ---- http/download.c ---- */

/* As link_read. First reads the token file again if it has changed, which ends the links of tenants
 * whose token was revoked. False for a suspended tenant, too. */
bool http_link_read(const struct http_server *server, const char *path, struct link *link_r);

/* Answers with the file that a signed link leads to. False: path is not a link, or the file is
 * gone; nothing was answered. */
bool http_download_serve(struct http_connection *c, struct evhttp_request *request,
			 const char *path);

/* To be called when the connection of a download is gone. */
void http_download_lost(struct http_download *download);

/* ---- http/upload.c ---- */

/* To be called when the first bytes of a request for an upload have arrived, and before evhttp
 * reads them: takes over the rest of the connection. */
void http_upload_take(struct http_connection *c);

/* ---- http/exchange.c, http/events.c ---- */

struct http_exchange_options {
	struct http_connection *connection;
	struct evhttp_request *request;
	struct http_tenant *tenant;
	struct http_session *session;	/* NULL: a conversation is made for this request */
	bool modern;
	const struct revision *alone;	/* a legacy request without a handshake: the revision of its
					 * conversation, which ends with it; NULL: no such one */
	bool takes_stream;
};

/* Serves a POST: gives the line to the conversation, and the answers to the client. If options have
 * no session and are not modern, the line opens a session. */
void http_exchange_start(const struct http_exchange_options *options,
			 struct jsonrpc_line *line, size_t line_bytes);

/* Serves a GET that listens: from now on messages of the session that belong to no request are sent
 * on it. An earlier GET that listens ends. */
void http_exchange_listen(const struct http_exchange_options *options);

/* Serves a GET that resumes: continues a stream after the event with this number. The connection
 * that had the stream before ends. */
void http_exchange_resume(const struct http_exchange_options *options,
			  struct http_replay *replay, uint64_t number);

/* To be called when the session of an exchange has ended: the conversation sends no answer any
 * more. */
void http_exchange_abandon(struct http_exchange *x);

const struct http_session *http_exchange_session(const struct http_exchange *x);

#endif
