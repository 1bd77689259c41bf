/* SPDX-License-Identifier: Apache-2.0 */
/* The outcome of an execution: its status, its output, its results and what it has used. Each
 * execution has exactly one.
 */
#ifndef ENGINE_OUTCOME_H
#define ENGINE_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/output.h"
#include "proto/message.h"

struct limits;

enum outcome_status {
#define OUTCOME(status, name) OUTCOME_##status,
#include "engine/outcomes.def"
	OUTCOME_STATUS_COUNT
};

/* The name that clients see: "ok", "error", "timeout" ... Static. */
static inline const char *
outcome_status_name(enum outcome_status status)
{
	static const char *const names[OUTCOME_STATUS_COUNT] = {
#define OUTCOME(status, name) [OUTCOME_##status] = name,
#include "engine/outcomes.def"
	};

	return names[status];
}

/* Was anything run? */
static inline bool
outcome_ran(enum outcome_status status)
{
	return status != OUTCOME_OVERLOADED && status != OUTCOME_JAIL_FAILED &&
	       status != OUTCOME_AUDIT_UNAVAILABLE;
}

/* Was one of its limits hit? */
static inline bool
outcome_is_limit(enum outcome_status status)
{
	return status >= OUTCOME_TIMEOUT && status <= OUTCOME_DISK_LIMIT;
}

enum cancel_reason {
	CANCEL_BY_CLIENT,
	CANCEL_BY_OPERATOR,
	CANCEL_DISCONNECTED,
	CANCEL_SHUTDOWN,
	CANCEL_SESSION_ENDED,	/* the session of the cell has ended or was closed */
};

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
	uint64_t at;		/* its place: the bytes of the transcript before it, if none were
				 * dropped or replaced */
};

/* A regular file that was in /workspace when the script ended. */
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
	bool given;		/* the caller has sent it, and it has not changed */
	size_t rank;		/* in the order in which the worker found them worth reporting */
	int error;		/* why it is not stored, a code of filestore_calls.end; 0: it is
				 * stored, or storing it was not tried */
};

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
	const char *id;			/* "x-" and a short id */
	struct outcome_stream stream[STREAM_COUNT];
	const char *transcript;		/* both streams in the order of arrival; its cap is that of
					 * a stream */
	size_t transcript_len;
	const char *value_repr;		/* NULL: no trailing expression, or it was None */
	const char *value_json;		/* NULL: no JSON form; else one JSON text */
	bool value_cut;
	bool value_converted;		/* the value has no exact JSON form, and was converted */
	const char *names;		/* with tell_names, if no exception ended the script: its
					 * variables as JSON, from its process; NULL: none */
	const char *error_type;		/* NULL: nothing was raised */
	const char *error_message;
	bool volume_lost;		/* the process that serves its volume has ended meanwhile */
	bool network_lost;		/* and the proxy to the outside */
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
	const char *const *found_module;	/* the modules found in it, in the order of
						 * the imports */
	size_t n_found_modules;		/* at most MODULES_OF_RUN_MAX */
	const char *const *refused_import;	/* the first names that the request's list of
						 * modules did not allow, as the script's process
						 * reports */
	size_t n_refused_imports;	/* at most REFUSED_IMPORTS_MAX, of IMPORT_NAME_MAX bytes */
	const struct outcome_tool_call *tool_call;
	size_t n_tool_calls;		/* at most OUTCOME_CALLS_MAX */
	uint32_t more_tool_calls;	/* how many calls are left out; those that only read and
					 * ended well are left out first */
	uint64_t duration_ms, cpu_ms, cpu_us;
	uint64_t peak_memory_bytes;	/* 0: not known */
	bool made_ready;		/* its worker had imported modules before it */
	uint32_t retry_after_ms;	/* with OUTCOME_OVERLOADED */
	const struct limits *limits;
};

#endif
