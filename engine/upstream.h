/* SPDX-License-Identifier: Apache-2.0 */
/* Other MCP servers, as the supervisor sees them: mcp-python-tools is their client. It is started
 * with the engine, if the configuration names a server, and again when it ends, after a pause that
 * grows each time. Each call is answered once. Names, descriptions and hints are the server's own
 * words, and are not trusted.
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
	const struct config *config;	/* of the start: its [tools NAME] */
};

struct upstream_tool {
	char *name;		/* letters, digits, "_", "-", ".", "/" and ":" */
	bool read_only;		/* so its server says */
	char *about;		/* a JSON object */
};

struct upstream_server {
	const char *name;	/* of [tools NAME] */
	enum tool_server_state state;
	char *text;		/* DOWN: why; else "" */
	char *revision;		/* of MCP; "": not known */
	struct upstream_tool *tool;	/* from its last list, even if it is down */
	size_t n_tools;
	uint32_t left_out;	/* tools that could not be accepted */
};

/* Starts the process. */
struct upstream *upstream_new(const struct upstream_options *options);

/* Kills the process at once. No call may be left. NULL is fine. */
void upstream_free(struct upstream *upstream);

pid_t upstream_pid(const struct upstream *upstream);	/* 0: there is none now; NULL is fine */

/* Files of credentials may have changed: then the process is started again, with what they have
 * now. Calls that are open fail. NULL is fine. */
void upstream_renew_credentials(struct upstream *upstream);

/* on_listed is called from the loop each time a server has listed its tools. */
void upstream_watch(struct upstream *upstream, void (*on_listed)(void *arg), void *arg);

/* ---- servers ---- */

/* Number i, as in the configuration; NULL: there are no more. Valid until the loop's next turn. */
const struct upstream_server *upstream_server(const struct upstream *upstream, size_t i);

const char *upstream_state_name(enum tool_server_state state);	/* static */

/* NULL: there is none of that name. */
const struct upstream_server *upstream_find(const struct upstream *upstream, const char *name);
const struct upstream_tool *upstream_find_tool(const struct upstream_server *server,
					       const char *name);

/* ---- calls ---- */

/* Gives the result of a call; from the loop, never from within the function that began it. body is
 * JSON with TOOL_RETURNED and TOOL_RAISED, and a sentence with TOOL_FAILED, UTF-8 without NUL; it
 * is valid during the call. The upstream_call is freed. */
typedef void upstream_done(void *arg, enum tool_status status, const char *body, size_t len);

/* Calls a tool. arguments: a JSON object. */
struct upstream_call *upstream_call(struct upstream *upstream,
				    const struct upstream_server *server, const char *tool,
				    const char *arguments, uint32_t seconds, uint32_t result_max,
				    upstream_done *done, void *arg);

/* From now on the call tells how far it is, as its server says: a sentence of printable ASCII,
 * valid meanwhile. arg: that of done. From the loop. */
void upstream_on_progress(struct upstream_call *call,
			  void (*on_progress)(void *arg, const char *text));

/* Waits until it is known which tools a server has: TOOL_RETURNED, without a body; or until it is
 * down: TOOL_FAILED. */
struct upstream_call *upstream_await(struct upstream *upstream,
				     const struct upstream_server *server, upstream_done *done,
				     void *arg);

/* Drops a call: done is not called. */
void upstream_drop(struct upstream_call *call);

#endif
