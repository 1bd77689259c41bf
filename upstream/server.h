/* SPDX-License-Identifier: Apache-2.0 */
/* Another MCP server: its process or its address, the protocol with it, and the calls of its tools.
 *
 * DOWN ──start──> STARTING: server/discover, or initialize; tools/list, page by page
 *   ^                 │
 *   │ it has ended    v
 *   └────────────── SERVING: tools/call; tools/list again when the list has changed
 *
 * A server is started again after it has ended, with a delay that grows each time. Each call is
 * answered once: by the server, or because its time is over, or because the server has ended.
 * Answers to ids that are not open are ignored; ids are unique among all servers.
 */
#ifndef UPSTREAM_SERVER_H
#define UPSTREAM_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/message.h"

struct event_base;
struct server;

struct server_options {
	struct event_base *base;	/* all borrowed */
	const char *name;
	uint32_t number;
	const char *command;		/* words, separated by blanks; "": it has a url */
	const char *url, *ca_file, *header, *credential;	/* upstream/remote.h; "": none */
	const char *token_url, *client_id, *scope;		/* upstream/remote.h; "": none */
	const char *trouble;		/* why it cannot be used; "": it can be used */
	/* Sends a message to the supervisor. */
	void (*tell)(void *arg, const struct msg *msg);
	/* Do too many messages wait for the supervisor? A new list of tools waits meanwhile. */
	bool (*is_full)(void *arg);
	void *arg;
};

/* Makes a server, without starting it. */
struct server *server_new(const struct server_options *options);

/* Starts a server. One that cannot be used stays down. */
void server_start(struct server *server);

/* Calls a tool. TOOLS_RESULT follows, perhaps from within. */
void server_call(struct server *server, const struct msg_tools_call *call);

/* Cancels a call: no TOOLS_RESULT follows. Does nothing if there is no such call. */
void server_cancel(struct server *server, uint64_t call);

/* Ends a server, which is not started again: kills its process; or ends its session by HTTP, which
 * the server is told of. Until that is done, server_is_busy is true. */
void server_end(struct server *server);
bool server_is_busy(const struct server *server);

#endif
