/* SPDX-License-Identifier: Apache-2.0 */
/* Another MCP server: its process or its address, the protocol with it, and the calls of its tools.
 *
 *   DOWN ──start──> STARTING: server/discover, or initialize; tools/list, page by page
 *    ^                 │
 *    │ it has ended    v
 *    └────────────── SERVING: tools/call; tools/list again when the list has changed
 *
 * It is started again after it has ended, with a delay that grows each time. Each call is answered
 * once: by the server, or because its time is over, or because the server has ended. Answers to ids
 * that are not open are ignored; ids are unique over all servers.
 */
#ifndef UPSTREAM_SERVER_H
#define UPSTREAM_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/message.h"

struct event_base;
struct server;

struct server_options {
	struct event_base *base;	/* borrowed, as is all of this */
	const char *name;
	uint32_t number;
	const char *command;		/* words, separated by blanks; "": it has a url */
	const char *url, *ca_file, *header, *credential;	/* upstream/remote.h; "": none */
	const char *token_url, *client_id, *scope;		/* likewise */
	const char *trouble;		/* why it cannot be used; "": it can */
	/* Sends a message to the supervisor. */
	void (*tell)(void *arg, const struct msg *msg);
	void *arg;
};

/* Starts nothing yet. */
struct server *server_new(const struct server_options *options);

/* A server that cannot be used stays down. */
void server_start(struct server *server);

/* Calls a tool; TOOLS_RESULT follows, perhaps at once. */
void server_call(struct server *server, const struct msg_tools_call *call);

/* Cancels a call: no TOOLS_RESULT follows. Does nothing if there is no such call. */
void server_cancel(struct server *server, uint64_t call);

/* Ends it for good: its process, or its session by HTTP, which it is told of while it is busy. */
void server_end(struct server *server);
bool server_is_busy(const struct server *server);

#endif
