/* SPDX-License-Identifier: Apache-2.0 */
/* One execution, from the call that asked for it to its single answer.
 *
 * Tools use only this header: they start an execution, may watch its output and cancel it, and get
 * exactly one outcome. They do not see the scheduler's queues, the pool, or the worker.
 * Runs in the supervisor; never blocks.
 */
#ifndef ENGINE_EXECUTION_H
#define ENGINE_EXECUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/limits.h"
#include "proto/message.h"

struct config_network;
struct engine;
struct execution;
struct repl;
struct tenant;
struct why;

enum outcome_status {
	OUTCOME_OK,
	OUTCOME_ERROR,		/* raised, or ended with an exit code other than 0 */
	OUTCOME_TIMEOUT,
	OUTCOME_CPU_LIMIT,
	OUTCOME_MEMORY_LIMIT,
	OUTCOME_PIDS_LIMIT,
	OUTCOME_OUTPUT_LIMIT,
	OUTCOME_DISK_LIMIT,
	OUTCOME_KILLED,		/* by a signal that was sent to it */
	OUTCOME_CRASHED,	/* by a signal that it caused itself: SIGSEGV, SIGABRT ... */
	OUTCOME_CANCELLED,
	OUTCOME_OVERLOADED,
	OUTCOME_JAIL_FAILED,	/* a wall could not be built; nothing was run */
	OUTCOME_WORKER_PROTOCOL_ERROR,
	OUTCOME_STATUS_COUNT
};

/* "ok", "error", "timeout" ...: the names clients see. */
const char *outcome_status_name(enum outcome_status status);

enum cancel_reason {
	CANCEL_BY_CLIENT,
	CANCEL_BY_OPERATOR,
	CANCEL_DISCONNECTED,
	CANCEL_SHUTDOWN,
	CANCEL_SESSION_ENDED,	/* the session of the cell has ended or was closed */
};

enum stream { STREAM_STDOUT, STREAM_STDERR, STREAM_COUNT };

/* The kept part of one stream, as well-formed UTF-8 (other bytes are shown as U+FFFD): all of it
 * or, if it is longer than the cap, its head and its tail, with a line between them that says how
 * much is missing. */
struct outcome_stream {
	const char *text;
	size_t len;
	uint64_t written;	/* bytes that the script wrote */
	uint64_t dropped;	/* bytes of these that are not in text */
};

/* One form of one object that the script showed. An outcome has them in the order in which they
 * were shown. The bytes come from the script: a picture may be invalid. */
struct outcome_display {
	unsigned int object;	/* forms of the same object have the same number, from 0 */
	enum display_kind kind;
	const void *data;
	size_t len;
};

/* A regular file in /workspace when the script had ended. */
struct outcome_file {
	const char *path;	/* relative to /workspace; UTF-8, with other bytes escaped; no NUL
				 * follows */
	size_t path_len;
	uint64_t size;
	const unsigned char *sha256;	/* 32 bytes; NULL: it was not read */
	const void *data;	/* NULL: its content is not here */
	size_t len;
	bool stored;		/* it is in the tenant's store (host/filestore.h), at
				 * file_uri() of the outcome's id and the path */
	int error;		/* why it is not stored, a code of filestore_calls.end; 0: it is
				 * stored, or storing it was not tried */
};

/* An unchanged part of a stream that is longer than its cap. If more follows, the part ends after a
 * line, or between characters. */
struct outcome_part {
	enum stream stream;
	uint64_t offset;	/* of its first byte in the stream */
	const char *at;
	size_t len;		/* at most OUTCOME_PART_MAX */
};

#define OUTCOME_PART_MAX (4 * 1024 * 1024)

/* How a call of another server's tool ended: a status of its answer; or TOOL_CANCELLED: its
 * execution ended before there was an answer. */
enum { TOOL_CANCELLED = TOOL_STATUS_COUNT, TOOL_ENDS };

/* The name in answers, in the audit log and in metrics. Static. */
static inline const char *
tool_end_name(unsigned int end)
{
	static const char *const names[TOOL_ENDS] = {
		[TOOL_RETURNED] = "ok",
		[TOOL_RAISED] = "error",
		[TOOL_REFUSED] = "refused",
		[TOOL_FAILED] = "failed",
		[TOOL_CANCELLED] = "cancelled",
	};

	return names[end];
}

#define OUTCOME_ARGUMENTS_MAX 120	/* bytes of a call's arguments that an outcome has */
#define OUTCOME_CALLS_MAX 32		/* calls that an outcome names */

/* A call of another server's tool, in the order of the calls. The texts come from the script; they
 * are UTF-8. */
struct outcome_tool_call {
	char server[TOOL_SERVER_MAX + 1], tool[TOOL_NAME_MAX + 1];
	char arguments[OUTCOME_ARGUMENTS_MAX + 1];	/* their beginning */
	bool arguments_cut;
	unsigned int end;	/* tool_end_name(); TOOL_REFUSED: nothing was done */
	uint64_t ms;		/* since it was sent to its server; 0: it was not sent */
	uint64_t bytes;		/* of the result */
};

/* The effect of a cell on its session's state (engine/repl.h). */
enum outcome_state {
	STATE_NONE,		/* the execution was not a cell, or never ran */
	STATE_COMMITTED,	/* the snapshot's state has the cell's changes */
	STATE_ROLLED_BACK,	/* the snapshot's state is as before the cell */
	STATE_LOST,		/* the snapshot holds no state any more; if that was the last state,
				 * or the worker is lost, the session has ended (on_end) */
};

/* Valid only during on_outcome; everything in it is borrowed from the execution. */
struct outcome {
	enum outcome_status status;
	const char *id;			/* "x-" and 26 letters or digits, unguessable */
	struct outcome_stream stream[STREAM_COUNT];
	const char *transcript;		/* both streams in the order of arrival; its cap is that of
					 * a stream */
	size_t transcript_len;
	const char *value_repr;		/* NULL: no trailing expression, or it was None */
	const char *value_json;		/* NULL: no JSON form; else one JSON text */
	bool value_cut;
	bool value_converted;		/* the value has no exact JSON form, and was converted */
	const char *names;		/* with tell_names, if it ended well: JSON from the script;
					 * NULL: none */
	const char *error_type;		/* NULL: nothing was raised */
	const char *error_message;
	const char *error_traceback;
	uint32_t error_line;		/* 0: not known */
	const char *message;		/* one sentence for people about the execution's end, with
					 * the limit and the peak */
	int exit_code;			/* as in a shell: 128 + signal if it was killed; -1: never
					 * ran */
	int signal;			/* 0: none */
	const struct outcome_display *display;	/* within limits.results */
	size_t n_displays;
	uint32_t undisplayed;		/* objects that were too many or too large */
	const struct outcome_file *file;	/* ordered by path */
	size_t n_files;
	uint32_t more_files;		/* at least this many files are not reported */
	bool files_unknown;		/* there may be other files: after the script's end there
					 * was no process to report them, or no time */
	const struct outcome_part *part;	/* with spill; ordered by stream and offset */
	size_t n_parts;
	enum outcome_state state;
	struct outcome_stream background[STREAM_COUNT];	/* what threads of earlier cells have
						 * written since the last answer; only the text and
						 * its length are set */
	const char *const *note;	/* sentences that name the threads, processes and
					 * connections of earlier cells that are now lost */
	size_t n_notes;
	const char *environment;	/* a set of packages that imports have found; NULL: none */
	const char *const *found_module;	/* the modules found in it, in this order */
	size_t n_found_modules;		/* at most MODULES_OF_RUN_MAX */
	const char *const *refused_import;	/* the first names that the request's list of
						 * modules did not allow, as the script's process
						 * reports */
	size_t n_refused_imports;	/* at most REFUSED_IMPORTS_MAX, of IMPORT_NAME_MAX bytes */
	const struct outcome_tool_call *tool_call;
	size_t n_tool_calls;		/* at most OUTCOME_CALLS_MAX */
	uint32_t more_tool_calls;	/* how many calls are left out; those that only read and
					 * ended well are left out first */
	uint64_t duration_ms, cpu_ms;
	uint64_t peak_memory_bytes;	/* 0: not known */
	uint32_t retry_after_ms;	/* with OUTCOME_OVERLOADED */
	const struct limits *limits;
};

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
	bool tell_names;		/* the outcome has names, and the value is that of the
					 * variable result, if there is one */
	const char *volume;		/* the name of the volume that is mounted at VOLUME_PLACE;
					 * NULL: none, or that of the session */
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
	uint32_t prompts;		/* how many prompts input() may show when standard input is
					 * at its end, at most PROMPTS_OF_RUN_MAX; 0: none */
	uint32_t prompt_ms;		/* the most milliseconds of waiting for answers, in total,
					 * that do not count as wall time */
	uint32_t modules;		/* how many missing modules its imports may ask for, at most
					 * MODULES_OF_RUN_MAX; 0: none */
	const char *const *tools;	/* names of other MCP servers, whose tools it may call */
	size_t n_tools;			/* at most TOOL_SERVERS_MAX; 0: none */
	uint32_t consent_ms;		/* the most milliseconds of waiting for people's consent to
					 * these calls, in total, that do not count as wall time */
	uint32_t tool_calls, tool_calls_at_once;	/* if n_tools > 0: at most TOOL_CALLS_MAX
							 * and TOOL_CALLS_AT_ONCE */
};

/* A module that an import has not found. Valid only during the call. */
struct execution_module {
	const char *name;		/* from the script: letters, digits and _ of ASCII, at most
					 * MODULE_NAME_MAX bytes */
	const char *platform, *extension;	/* of its Python: zygote_platform ... */
};

/* A script's call of a tool of another MCP server. Valid only during the call. */
struct execution_tool {
	uint32_t number;		/* of execution_answer_tool */
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
	/* The set of packages that execution_answer_module named is mounted. May be NULL. */
	void (*on_mounted)(void *arg);
	void *arg;
};

/* Starts an execution. The request is copied. Returns 0 and *execution_r (borrowed: valid until
 * on_outcome returns). Or fills why_r and returns -ENOENT: the profile is not configured; -EACCES:
 * the tenant may not use the profile; -EFBIG: the profile's disk has no room for the input files;
 * -EINVAL: a stored file or the volume cannot be mounted; -ESRCH: the session has ended; or the
 * error of engine_observer.on_start. A full queue is not an error: the outcome is
 * OUTCOME_OVERLOADED. */
int execution_start(struct engine *engine, struct tenant *tenant,
		    const struct execution_request *request,
		    const struct execution_watcher *watcher,
		    struct execution **execution_r, struct why *why_r);

/* Stops the execution. on_outcome still follows, once, with OUTCOME_CANCELLED, or with the status
 * of an end that came first. A cell gets KeyboardInterrupt first, and is killed if it has not ended
 * two seconds later; at shutdown, and for CANCEL_SESSION_ENDED, it is killed at once. Safe to call
 * twice. */
void execution_cancel(struct execution *execution, enum cancel_reason reason);

/* The answer to the open prompt: a line of UTF-8 without NUL or line break, at most 4 *
 * ANSWER_CHARACTERS bytes; NULL: there is none, and the script gets EOFError. Does nothing if no
 * prompt is open. */
void execution_answer_prompt(struct execution *execution, const char *line, size_t len);

/* The answer for the module that was asked for last. environment: a set of the store that has the
 * module, which is mounted in place of the earlier set; NULL: there is no such set. Does nothing if
 * no module was asked for. */
void execution_answer_module(struct execution *execution, const char *environment);

/* The answer to a call of a tool. body: JSON with TOOL_RETURNED and TOOL_RAISED, otherwise a
 * sentence; UTF-8 without NUL, at most TOOL_RESULT_MAX bytes. Does nothing if the call is not open.
 */
void execution_answer_tool(struct execution *execution, uint32_t number, enum tool_status status,
			   const char *body, size_t len);

/* To be called when a call of a tool is sent to its server: a call that was not sent had no effect.
 * reads: the server says that the tool changes nothing. */
void execution_begin_tool(struct execution *execution, uint32_t number, bool reads);

/* Says whether a person is being asked about a call of a tool. While awaits is true, the wall clock
 * is stopped, in total for consent_ms at most. */
void execution_await_consent(struct execution *execution, bool awaits);

/* Reports the result of a prompt to the engine's observer; only the code that asks the user knows
 * it. */
enum engine_input;
void engine_tell_input(const struct engine *engine, enum engine_input what);

/* From now on no callback is called. The execution continues, unless execution_cancel was called
 * before. */
void execution_unwatch(struct execution *execution);

const char *execution_id(const struct execution *execution);

/* The resources that a running execution uses. */
struct execution_now {
	uint64_t cpu_ms;	/* since its start */
	uint64_t memory_bytes;	/* now; without a controller the highest sampled value */
};

/* False: it does not run. */
bool execution_uses(struct execution *execution, struct execution_now *now_r);

#endif
