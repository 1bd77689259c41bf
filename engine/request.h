/* SPDX-License-Identifier: Apache-2.0 */
/* What the starter of an execution gives: the request, and the callbacks to it.
 */
#ifndef ENGINE_REQUEST_H
#define ENGINE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/outcome.h"
#include "policy/limits.h"
#include "proto/message.h"

struct config_network;
struct repl;

/* A file that is put into /workspace before the script runs. The caller has checked the path: it is
 * relative, stays below /workspace, and is unique. */
struct execution_input {
	const char *path;
	size_t path_len;
	const void *data;
	size_t len;
	const char *uri;		/* NULL: the file has data; else the tenant's stored file at
					 * this uri is mounted in place of data */
};

struct execution_request {
	const char *script;		/* UTF-8 without NUL, checked by the caller */
	size_t script_len;
	const char *script_name;	/* sys.argv[0], and in tracebacks; NULL: script.py */
	const char *const *args;	/* sys.argv[1:] */
	size_t n_args;
	const char *stdin_text;		/* NULL: empty */
	size_t stdin_len;
	const struct execution_input *input;
	size_t n_inputs;
	const char *profile;		/* NULL: the default one */
	const struct config_network *network;	/* NULL, or rules that allow nothing: no network */
	bool spill;			/* also keep the whole of a stream that is longer than its
					 * cap */
	const char *const *imports;	/* modules that it may import; NULL: any. This is policy:
					 * the script's own process checks it. */
	size_t n_imports;		/* at most IMPORTS_MAX */
	const char *globals;		/* variables that it begins with: a JSON object whose keys
					 * are names of variables, at most GLOBALS_MAX bytes; NULL:
					 * none */
	bool tell_names;		/* the outcome has the names of the script's variables, and
					 * its value is the variable "result", if there is one */
	const char *volume;		/* the name of the volume that is mounted at VOLUME_PLACE;
					 * NULL: none, or that of the session */
	bool folder;			/* the user's folder is mounted, if the service has one */
	const char *environment;	/* of the store: the script can import its packages; NULL:
					 * none */
	const int *channel;		/* the descriptor of standard input, in place of stdin_text;
					 * it belongs to the execution from now on, also on failure.
					 * NULL: stdin_text counts */
	struct limits limits;
	/* The session of a cell; NULL: a script in a fresh worker. For a cell, args and profile
	 * must be empty, limits.memory_bytes is the limit of the session, the reported files are
	 * those that the cell made or changed, and inputs replace files of the same name. */
	struct repl *repl;
	unsigned int snapshot;		/* in which the cell runs */
	unsigned int cell;		/* the cell's number, from 1: tracebacks say <cell 1>; 0:
					 * none */
	bool inspect;			/* no cell runs: the value is a list of the state's
					 * variables, and the state does not change (STATE_NONE) */
	enum background_mode background;	/* what happens to threads and processes of the cell
					 * when it has ended by itself */
	uint32_t background_ms;		/* BACKGROUND_RUN: how long they may run after the cell's
					 * end */
	bool internal;			/* one of the service's own programs, run for a tenant */
	bool patient;			/* a job: nobody waits for its answer */
	uint32_t prompts;		/* how many prompts input() may show when standard input is
					 * at its end, at most PROMPTS_OF_RUN_MAX; 0: none */
	uint32_t prompt_ms;		/* the wait for answers does not count as wall time, up to
					 * this many milliseconds for all prompts together */
	uint32_t modules;		/* how many missing modules its imports may ask for, at most
					 * MODULES_OF_RUN_MAX; 0: none */
	const char *const *tools;	/* names of other MCP servers, whose tools it may call */
	size_t n_tools;			/* at most TOOL_SERVERS_MAX; 0: none */
	uint32_t consent_ms;		/* the wait for people's consent to these calls does not
					 * count as wall time, up to this many milliseconds for all
					 * calls together */
	uint32_t tool_calls, tool_calls_at_once;	/* if n_tools > 0: at most TOOL_CALLS_MAX
							 * and TOOL_CALLS_AT_ONCE */
};

/* A module that an import has not found. Valid only during the call. */
struct execution_module {
	const char *name;		/* from the script: letters, digits and _ of ASCII, at most
					 * MODULE_NAME_MAX bytes */
	const char *platform, *extension;	/* of its Python: zygote_platform ... */
	const char *mounted;		/* a set that its worker has already, to be preferred;
					 * NULL: none */
};

/* A script's call of a tool of another MCP server. Valid only during the call. */
struct execution_tool {
	uint32_t number;		/* for execution_answer_tool */
	const char *server;		/* one of the request's */
	const char *tool;		/* from the script: at most TOOL_NAME_MAX bytes of UTF-8;
					 * NULL: it asks for the list of the server's tools */
	const char *arguments;		/* from the script: UTF-8 without NUL, at most
					 * TOOL_ARGUMENTS_MAX bytes, perhaps not JSON; NUL follows
					 */
	size_t arguments_len;
};

/* The callbacks to the starter of an execution. on_output may be NULL; it gets raw bytes, as they
 * were read. No callback is called from within execution_start: the outcome always comes in a later
 * turn of the loop. */
struct execution_watcher {
	void (*on_output)(void *arg, enum stream stream, const char *bytes, size_t len);
	void (*on_outcome)(void *arg, const struct outcome *outcome);
	/* The script waits for a line: call execution_answer_prompt, now or later. prompt comes
	 * from the script: UTF-8 without NUL, at most PROMPT_MAX bytes. If this is NULL, no user
	 * can be asked. */
	void (*on_prompt)(void *arg, unsigned int number, const char *prompt, size_t len);
	/* The script waits for a set of packages that has this module: call
	 * execution_answer_module, now or later. NULL: there is no such set. */
	void (*on_module)(void *arg, const struct execution_module *module);
	/* The script waits for a tool's result: call execution_answer_tool, now or later. Several
	 * calls may wait at the same time. NULL: the script can call no tool. */
	void (*on_tool)(void *arg, const struct execution_tool *tool);
	/* Would on_module answer with this set, if the import were now? Nothing is noted. May be
	 * called from within execution_start. NULL: it would not. */
	bool (*would_find)(void *arg, const struct execution_module *module,
			   const char *environment);
	/* The set of packages that execution_answer_module named is mounted. May be NULL. */
	void (*on_mounted)(void *arg);
	void *arg;
};

#endif
