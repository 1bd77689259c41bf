/* SPDX-License-Identifier: Apache-2.0 */
/* Other MCP servers, as the supervisor sees them. The process mcp-python-tools is their client. It
 * is started with the engine, if the configuration names a server, and started again when it ends,
 * after a pause that grows each time. Each call is answered once. The names, descriptions and hints
 * of tools come from the servers, and are not trusted.
 */
#ifndef ENGINE_UPSTREAM_H
#define ENGINE_UPSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/message.h"

struct config;
struct event_base;
struct launcher;
struct upstream;
struct upstream_call;

struct upstream_options {
	struct event_base *base;	/* all borrowed */
	struct launcher *launcher;
	const struct config *config;	/* as read at the start: its [tools NAME] sections count */
};

struct upstream_tool {
	char *name;		/* letters, digits, "_", "-", ".", "/" and ":" */
	bool read_only;		/* its server says that the tool changes nothing */
	char *about;		/* what its server says of it, a JSON object */
};

struct upstream_server {
	const char *name;	/* of [tools NAME] */
	enum tool_server_state state;
	char *text;		/* TOOL_SERVER_DOWN: the reason */
	char *revision;		/* of MCP; "": not known */
	struct upstream_tool *tool;	/* from its last list, even if the server is down */
	size_t n_tools;
	uint32_t left_out;	/* tools that could not be accepted */
};

/* Makes the client, and starts its process. */
struct upstream *upstream_new(const struct upstream_options *options);

/* Kills the process at once. No call may be left. NULL is fine. */
void upstream_free(struct upstream *upstream);

/* To be called when files of credentials may have changed. If one has, the process is started again
 * with the new contents, and calls that are open fail. NULL is fine. */
void upstream_renew_credentials(struct upstream *upstream);

/* From now on on_listed is called from the loop each time a server has listed its tools. */
void upstream_watch(struct upstream *upstream, void (*on_listed)(void *arg), void *arg);

/* ---- servers ---- */

/* The server with number i, from 0, in the order of the configuration; NULL: there is none. Valid
 * until the loop's next turn. */
const struct upstream_server *upstream_server(const struct upstream *upstream, size_t i);

const char *upstream_state_name(enum tool_server_state state);	/* static */

/* The server, or the tool, of that name. NULL: there is none. */
const struct upstream_server *upstream_find(const struct upstream *upstream, const char *name);
const struct upstream_tool *upstream_find_tool(const struct upstream_server *server,
					       const char *name);

/* ---- calls ---- */

/* Gives the result of a call. Called from the loop, never from within the function that began the
 * call. body: JSON with TOOL_RETURNED and TOOL_RAISED, a sentence with TOOL_FAILED; UTF-8 without
 * NUL; valid during the callback. The upstream_call is freed before. */
typedef void upstream_done(void *arg, enum tool_status status, const char *body, size_t len);

/* Calls a tool. arguments: a JSON object. seconds: the time that the server has to answer.
 * result_max: bytes of the result at most. Never NULL; valid until done is called. */
struct upstream_call *upstream_call(struct upstream *upstream,
				    const struct upstream_server *server, const char *tool,
				    const char *arguments, uint32_t seconds, uint32_t result_max,
				    upstream_done *done, void *arg);

/* From now on on_progress is called from the loop when the server says how far the call is. text: a
 * sentence of printable ASCII, valid during the callback. arg: the same as for done. */
void upstream_on_progress(struct upstream_call *call,
			  void (*on_progress)(void *arg, const char *text));

/* Waits until it is known which tools a server has: done gets TOOL_RETURNED, without a body. If the
 * server is down, done gets TOOL_FAILED. */
struct upstream_call *upstream_await(struct upstream *upstream,
				     const struct upstream_server *server, upstream_done *done,
				     void *arg);

/* Drops a call: done is not called. */
void upstream_drop(struct upstream_call *call);

#endif
