/* SPDX-License-Identifier: Apache-2.0 */
/* What server.c and server_call.c share: a server, and the requests that it was sent.
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
	uint64_t id;			/* 0: nothing is asked just now */
	struct event late;
	/* With CALL: */
	uint64_t call;			/* of TOOLS_CALL */
	uint32_t seconds, result_max;
	bool reads;			/* a resource, not a tool */
	char *task;			/* its server has made it a task of this id; or NULL */
	struct event poll;		/* when it is asked for again */
	uint64_t told_ms;		/* when its progress was told last; 0: never */
};

struct server {
	struct server_options options;
	struct remote *remote;		/* NULL: it is a process, which the next three are for */
	char *words;			/* of the command, each with NUL behind it */
	char **argv;
	struct process process;
	enum tool_server_state state;
	char revision[REVISION_MAX + 1];	/* "": not known yet */
	bool is_modern;
	bool has_resources;
	bool discovers_late;		/* initialize was sent before its answer to discovery */
	bool skips_discover;		/* the method made it end */
	uint64_t last_id;
	LIST_HEAD(, request) requests;
	struct listing listing;
	bool is_stale;			/* the list has changed while it was read */
	struct event relist, relisten;
	unsigned int relistened;	/* times since the start */
	/* Its next start. */
	struct event again;
	unsigned int failed;
	uint64_t served_since;		/* milliseconds; 0: it has not served */
	uint32_t n_tools, n_left_out;	/* that the supervisor was told of */
};

/* ---- requests ---- */

void server_arm(struct event *timer, uint32_t ms);

/* What every request of the modern era has. */
json_t *server_envelope(void);

/* id: of the request whose end is waited for; 0: of none. message: taken over. 0 or -errno. */
int server_write(struct server *server, json_t *message, uint64_t id);

/* A notification. params: taken over, or NULL. */
void server_notify(struct server *server, const char *method, json_t *params);

/* params: taken over. 0; or -errno: nothing was sent, and there is no request. ms: then it is late;
 * 0: never. request_r: NULL is fine. */
int request_ask(struct server *server, enum kind kind, const char *method, json_t *params,
		uint32_t ms, struct request **request_r);

/* Asks once more for the same request, which has its id. params: taken over. 0 or -errno. */
int request_send(struct server *server, const struct request *request, const char *method,
		 json_t *params);

/* NULL: none that is open has this id. */
struct request *request_find(struct server *server, const json_t *id);
void request_forget(struct request *request);

/* ---- server_call.c ---- */

/* A call ends without a result: a sentence for the script. */
void call_fail_with(struct server *server, uint64_t call, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* result: NULL: an error, as error says. */
void call_on_result(struct server *server, const struct request *request, const json_t *result,
		    const char *error);

/* Is the answer of the call, or of tasks/get, one of a task that goes on or has failed? Then it has
 * been seen to. result_r: what counts as the result. */
bool call_is_task(struct server *server, struct request *request, const json_t *answer,
		  const json_t **result_r);

/* Time to ask for a task; arg: the request. */
void call_on_poll(evutil_socket_t fd, short what, void *arg);

/* Its time is over. */
void call_is_late(struct request *request);

/* params: of notifications/progress. Passed on a few times a second, for a call that is open. */
void call_on_progress(struct server *server, const json_t *params);

#endif
