/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a server, for server.c and server_call.c: the server, and the requests to it.
 */
#ifndef UPSTREAM_SERVER_PARTS_H
#define UPSTREAM_SERVER_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <jansson.h>

#include "proto/message.h"
#include "upstream/listing.h"
#include "upstream/process.h"
#include "upstream/remote.h"
#include "upstream/server.h"

#define REVISION_MAX 32
#define ID_MAX 1024		/* bytes of the id of a server's request, or of a task */

enum kind { DISCOVER, INITIALIZE, INITIALIZED, LIST, LISTEN, CALL };

struct request {
	LIST_ENTRY(request) link;
	struct server *server;
	enum kind kind;
	uint64_t id;			/* 0: no request of it is in flight now */
	struct event late;		/* the time at which it is late */
	/* With CALL: */
	uint64_t call;			/* of TOOLS_CALL */
	uint32_t seconds, result_max;
	bool reads;			/* it reads a resource, and calls no tool */
	char *task;			/* the id of the task that the server has made of it; NULL:
					 * none */
	struct event poll;		/* the time at which the task is asked for again */
	uint64_t told_ms;		/* when its progress was last reported; 0: never */
};

struct server {
	struct server_options options;
	struct remote *remote;		/* NULL: it is a process: words, argv, process */
	char *words;			/* the words of the command, each followed by NUL */
	char **argv;
	struct process process;
	enum tool_server_state state;
	char revision[REVISION_MAX + 1];	/* "": not known yet */
	bool is_modern;
	bool has_resources;
	bool discovers_late;		/* initialize was sent before server/discover was answered
					 */
	bool skips_discover;		/* begin with initialize: server/discover has made it end */
	uint64_t last_id;
	LIST_HEAD(, request) requests;
	struct listing listing;
	bool is_stale;			/* the list has changed while it was being read */
	struct event relist, relisten;
	unsigned int relistened;	/* how often since the start */
	/* For its next start. */
	struct event again;
	unsigned int failed;
	uint64_t served_since;		/* milliseconds; 0: it has not served */
	uint32_t n_tools, n_left_out;	/* as reported to the supervisor */
};

/* ---- requests ---- */

void server_arm(struct event *timer, uint32_t ms);

/* The _meta of every request of the modern era. The caller releases it. */
json_t *server_envelope(void);

/* Sends a message. message: taken over. id: of a request, which needs an answer; 0: no answer is
 * needed. 0 or -errno. */
int server_write(struct server *server, json_t *message, uint64_t id);

/* Sends a notification. params: taken over, or NULL. */
void server_notify(struct server *server, const char *method, json_t *params);

/* Makes a request and sends it. params: taken over. ms: after this time it is late; 0: never.
 * request_r: may be NULL. 0; or -errno: nothing was sent, and there is no request. */
int request_ask(struct server *server, enum kind kind, const char *method, json_t *params,
		uint32_t ms, struct request **request_r);

/* Sends another message for a request that exists, with request->id. params: taken over. 0 or
 * -errno. */
int request_send(struct server *server, const struct request *request, const char *method,
		 json_t *params);

/* The open request with this id. NULL: there is none. */
struct request *request_find(struct server *server, const json_t *id);
void request_forget(struct request *request);

/* ---- server_call.c ---- */

/* Ends a call without a result, with a sentence for the script. */
void call_fail_with(struct server *server, uint64_t call, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Ends a call with a result. result NULL: the call has failed, as error says. */
void call_on_result(struct server *server, const struct request *request, const json_t *result,
		    const char *error);

/* Looks whether the answer to a call, or to tasks/get, is about a task. True: the task continues or
 * has failed, and nothing more is to be done now. False: *result_r is the result of the call. */
bool call_is_task(struct server *server, struct request *request, const json_t *answer,
		  const json_t **result_r);

/* Asks for the state of a task; arg: the request. Called by request->poll. */
void call_on_poll(evutil_socket_t fd, short what, void *arg);

/* Ends a call whose time is over. */
void call_is_late(struct request *request);

/* Takes the params of notifications/progress. They are passed on for an open call, a few times a
 * second at most. */
void call_on_progress(struct server *server, const json_t *params);

#endif
