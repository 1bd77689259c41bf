/* SPDX-License-Identifier: Apache-2.0 */
/* One execution, from the call that asked for it to its single answer.
 *
 * The tools above see only this header: they start an execution, may watch its output
 * and cancel it, and get exactly one outcome. Below it are the scheduler's queues, the
 * pool, the worker and its leaf. Runs in the supervisor; never blocks.
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
	OUTCOME_CRASHED,	/* by a signal of its own making: SIGSEGV, SIGABRT ... */
	OUTCOME_CANCELLED,
	OUTCOME_OVERLOADED,
	OUTCOME_JAIL_FAILED,	/* a wall could not be put up; nothing was run */
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
	CANCEL_SESSION_ENDED,	/* the cell's, or it was closed */
};

enum stream { STREAM_STDOUT, STREAM_STDERR, STREAM_COUNT };

/* What is kept of one stream: well-formed UTF-8 (what is not is shown as U+FFFD), the
 * head and, past the cap, the tail, with a line between them that says what is missing. */
struct outcome_stream {
	const char *text;
	size_t len;
	uint64_t written;	/* bytes that the script wrote */
	uint64_t dropped;	/* bytes of them that are not in text */
};

/* One form of one object that the script showed, in the order of showing. The bytes are a
 * script's: a picture may be none. */
struct outcome_display {
	unsigned int object;	/* forms of the same object have the same number, from 0 */
	enum display_kind kind;
	const void *data;
	size_t len;
};

/* A regular file in /workspace when the script had ended. */
struct outcome_file {
	const char *path;	/* relative to it; UTF-8, what is not is escaped; no NUL behind
				 * it */
	size_t path_len;
	uint64_t size;
	const unsigned char *sha256;	/* 32 bytes; NULL: it was not read */
	const void *data;	/* NULL: its content is not here */
	size_t len;
	bool stored;		/* it is in the tenant's store (host/filestore.h), at
				 * file_uri() of the outcome's id and the path */
	int error;		/* why it is not, as filestore_calls.end; 0: it was not tried */
};

/* A part of a stream that was written past its cap, as it was written. Ends after a line,
 * or between characters, where there is more behind it. */
struct outcome_part {
	enum stream stream;
	uint64_t offset;	/* of its first byte in the stream */
	const char *at;
	size_t len;		/* at most OUTCOME_PART_MAX */
};

#define OUTCOME_PART_MAX (4 * 1024 * 1024)

/* How a call of another server's tool ended: a status of its answer; or TOOL_CANCELLED, its
 * execution ended before there was one. */
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

#define OUTCOME_ARGUMENTS_MAX 120	/* bytes of the arguments of a call */
#define OUTCOME_CALLS_MAX 32		/* calls that an outcome names */

/* A call of another server's tool, in the order of calling. The texts are a script's, UTF-8. */
struct outcome_tool_call {
	char server[TOOL_SERVER_MAX + 1], tool[TOOL_NAME_MAX + 1];
	char arguments[OUTCOME_ARGUMENTS_MAX + 1];	/* their beginning */
	bool arguments_cut;
	unsigned int end;	/* tool_end_name(); TOOL_REFUSED: nothing was done */
	uint64_t ms;		/* from when it was sent to its server; 0: it was not */
	uint64_t bytes;		/* of the result */
};

/* What became of a session's state (engine/repl.h). */
enum outcome_state {
	STATE_NONE,		/* it was no cell, or never ran */
	STATE_COMMITTED,	/* what the cell did is the state of its snapshot now */
	STATE_ROLLED_BACK,	/* the snapshot's state is as before the cell */
	STATE_LOST,		/* the snapshot holds no state any more; with the last one lost, or
				 * the worker itself, the session has ended (on_end) */
};

/* Valid only during on_outcome; everything in it belongs to the execution. */
struct outcome {
	enum outcome_status status;
	const char *id;			/* "x-" and 26 letters or digits, unguessable */
	struct outcome_stream stream[STREAM_COUNT];
	const char *transcript;		/* both streams in the order of arrival, capped likewise */
	size_t transcript_len;
	const char *value_repr;		/* NULL: no trailing expression, or it was None */
	const char *value_json;		/* NULL: no JSON form; else one JSON text */
	bool value_cut;
	bool value_converted;		/* the JSON stands for what has no exact JSON form */
	const char *names;		/* with tell_names, when it ended well: JSON, a script's;
					 * NULL: none */
	const char *error_type;		/* NULL: nothing was raised */
	const char *error_message;
	const char *error_traceback;
	uint32_t error_line;		/* 0: not known */
	const char *message;		/* one sentence for people: what happened, with the limit
					 * and the peak */
	int exit_code;			/* as a shell counts: 128 + signal when killed; -1: never
					 * ran */
	int signal;			/* 0: none */
	const struct outcome_display *display;	/* within limits.results */
	size_t n_displays;
	uint32_t undisplayed;		/* objects that were too many or too large */
	const struct outcome_file *file;	/* ordered by path */
	size_t n_files;
	uint32_t more_files;		/* that are not reported; at least so many */
	bool files_unknown;		/* there may be others: its end left nobody to tell of them,
					 * or no time */
	const struct outcome_part *part;	/* with spill; by stream and offset */
	size_t n_parts;
	enum outcome_state state;
	struct outcome_stream background[STREAM_COUNT];	/* what threads of earlier cells have
						 * written since the last answer; the text and
						 * its length alone */
	const char *const *note;	/* sentences: what earlier cells had started and is lost */
	size_t n_notes;
	const char *environment;	/* a set of packages that imports have found; NULL: none */
	const char *const *found_module;	/* what they have found in it, in this order */
	size_t n_found_modules;		/* at most MODULES_OF_RUN_MAX */
	const char *const *refused_import;	/* names that its list of modules did not allow, the
						 * first ones. Told by the script's process */
	size_t n_refused_imports;	/* at most REFUSED_IMPORTS_MAX, of IMPORT_NAME_MAX bytes */
	const struct outcome_tool_call *tool_call;
	size_t n_tool_calls;		/* at most OUTCOME_CALLS_MAX */
	uint32_t more_tool_calls;	/* that are not among these: first those that only read and
					 * ended well */
	uint64_t duration_ms, cpu_ms;
	uint64_t peak_memory_bytes;	/* 0: not known */
	uint32_t retry_after_ms;	/* with OUTCOME_OVERLOADED */
	const struct limits *limits;
};

/* A file that is put into /workspace first. The path is relative, leads nowhere else and
 * is that of no other one; the caller has checked it. */
struct execution_input {
	const char *path;
	size_t path_len;
	const void *data;
	size_t len;
	const char *uri;		/* NULL; or there are no data, and the tenant's stored
					 * file at uri is mounted there */
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
	const struct config_network *network;	/* NULL, or one that allows nothing: none */
	bool spill;			/* streams past their caps are wanted as a whole too */
	const char *const *imports;	/* modules that it may import; NULL: any. This is policy
					 * that the script's own process keeps. */
	size_t n_imports;		/* at most IMPORTS_MAX */
	const char *globals;		/* variables that it begins with: a JSON object whose keys
					 * are names of variables, at most GLOBALS_MAX bytes; NULL:
					 * none */
	bool tell_names;		/* the outcome has names, and the value is that of the
					 * variable result, if there is one */
	const char *volume;		/* name of one that is mounted at VOLUME_PLACE; NULL: none,
					 * or that of its session */
	const char *environment;	/* of the store: its packages are there; NULL: none */
	const int *channel;		/* standard input instead of stdin_text: any descriptor,
					 * the execution's from now on, also on failure; NULL */
	struct limits limits;
	/* A cell; NULL: a script in a fresh worker. Then args and profile must be empty; of the
	 * limits memory_bytes is the session's; files are those that the cell made or changed;
	 * inputs replace files of the same name. */
	struct repl *repl;
	unsigned int snapshot;		/* where it runs */
	unsigned int cell;		/* its number, from 1: tracebacks say <cell 1>; 0: none */
	bool inspect;			/* in place of a cell: the value is a list of the state's
					 * variables, and the state is not touched (STATE_NONE) */
	enum background_mode background;	/* what the cell may leave running when it has ended
					 * by itself */
	uint32_t background_ms;		/* BACKGROUND_RUN: how long after its end */
	bool internal;			/* one of the service's own programs, run for a tenant */
	uint32_t prompts;		/* that its input() may ask when there is no more standard
					 * input, at most PROMPTS_OF_RUN_MAX; 0: none */
	uint32_t prompt_ms;		/* for answers, in all, that do not count as wall_ms */
	uint32_t modules;		/* that its imports may ask for when they have not found
					 * them, at most MODULES_OF_RUN_MAX; 0: none */
	const char *const *tools;	/* names of other MCP servers, whose tools it may call */
	size_t n_tools;			/* at most TOOL_SERVERS_MAX; 0: none */
	uint32_t consent_ms;		/* for people who decide about these calls, in all, that do
					 * not count as wall_ms */
	uint32_t tool_calls, tool_calls_at_once;	/* at most TOOL_CALLS_MAX and
							 * TOOL_CALLS_AT_ONCE; with tools */
};

/* What an import has not found. Valid during the call only. */
struct execution_module {
	const char *name;		/* a script's: letters, digits and _ of ASCII, at most
					 * MODULE_NAME_MAX bytes */
	const char *platform, *extension;	/* of its Python: zygote_platform ... */
};

/* A script calls a tool of another MCP server. Valid during the call only. */
struct execution_tool {
	uint32_t number;		/* of execution_answer_tool */
	const char *server;		/* one of the request's */
	const char *tool;		/* a script's: at most TOOL_NAME_MAX bytes of UTF-8; NULL:
					 * it asks for the list of the server's tools */
	const char *arguments;		/* a script's: UTF-8 without NUL, at most TOOL_ARGUMENTS_MAX
					 * bytes, perhaps no JSON; NUL behind it */
	size_t arguments_len;
};

/* How the asker hears of it. on_output may be NULL; its bytes are raw, as read. Neither is
 * called from within execution_start: an outcome always comes from a later turn of the loop. */
struct execution_watcher {
	void (*on_output)(void *arg, enum stream stream, const char *bytes, size_t len);
	void (*on_outcome)(void *arg, const struct outcome *outcome);
	/* The script waits for a line: execution_answer_prompt, now or later. prompt: the
	 * script's, UTF-8 without NUL, at most PROMPT_MAX bytes. NULL: there is nobody to ask. */
	void (*on_prompt)(void *arg, unsigned int number, const char *prompt, size_t len);
	/* The script waits for a set of packages: execution_answer_module, now or later. NULL:
	 * there is none for it. */
	void (*on_module)(void *arg, const struct execution_module *module);
	/* The script waits for a tool's result: execution_answer_tool, now or later. Several may
	 * be waited for at once. NULL: it can call none. */
	void (*on_tool)(void *arg, const struct execution_tool *tool);
	/* The set of the answer is mounted. NULL: of no interest. */
	void (*on_mounted)(void *arg);
	void *arg;
};

/* Takes copies of everything in the request. Returns 0 and *execution_r (borrowed: valid until
 * on_outcome returns), or -ENOENT for a profile that is not configured, -EACCES for one that the
 * tenant may not have, -EFBIG for input files that its disk has no room for, -ESRCH for a
 * session that has ended, with why_r filled. A full queue is not an error: the outcome is
 * OUTCOME_OVERLOADED. */
int execution_start(struct engine *engine, struct tenant *tenant,
		    const struct execution_request *request,
		    const struct execution_watcher *watcher,
		    struct execution **execution_r, struct why *why_r);

/* Stops it; on_outcome still follows, once, with OUTCOME_CANCELLED (or what had happened
 * before). A cell gets KeyboardInterrupt first, and is killed when it has not ended two
 * seconds later; at shutdown, and for CANCEL_SESSION_ENDED, it is killed at once. Safe to call
 * twice. */
void execution_cancel(struct execution *execution, enum cancel_reason reason);

/* The answer to the open prompt: a line of UTF-8 without NUL or line break, at most
 * 4 * ANSWER_CHARACTERS bytes; NULL: there is none, which is EOFError there. Fine when no prompt
 * is open. */
void execution_answer_prompt(struct execution *execution, const char *line, size_t len);

/* The answer to the module that was asked for last: a set of the store that has it, which is
 * mounted in place of the one before; NULL: there is none. Fine when nothing is asked for. */
void execution_answer_module(struct execution *execution, const char *environment);

/* The answer to a call of a tool. body: JSON with TOOL_RETURNED and TOOL_RAISED, else a sentence;
 * UTF-8 without NUL, at most TOOL_RESULT_MAX bytes. Fine when the call is not open. */
void execution_answer_tool(struct execution *execution, uint32_t number, enum tool_status status,
			   const char *body, size_t len);

/* A call of a tool is sent to its server now: until then nothing was done for it. reads: it changes
 * nothing, as its server says. */
void execution_begin_tool(struct execution *execution, uint32_t number, bool reads);

/* Whether a person is being asked about a call of a tool: then the wall clock stands still, for
 * consent_ms at most. */
void execution_await_consent(struct execution *execution, bool awaits);

/* The engine's observer hears what became of a prompt: of that only those know who ask. */
enum engine_input;
void engine_tell_input(const struct engine *engine, enum engine_input what);

/* The asker is gone: no callback is called any more. The execution goes on or is
 * cancelled by a call of execution_cancel before this one. */
void execution_unwatch(struct execution *execution);

const char *execution_id(const struct execution *execution);

/* What a running execution uses. */
struct execution_now {
	uint64_t cpu_ms;	/* since its start */
	uint64_t memory_bytes;	/* now; without a controller the most that was seen */
};

/* False: it does not run. */
bool execution_uses(struct execution *execution, struct execution_now *now_r);

#endif
