/* SPDX-License-Identifier: Apache-2.0 */
/* The observer is told of every execution, and may refuse it. Quotas, the audit log and metrics are
 * made this way: the engine itself has none.
 */
#ifndef ENGINE_OBSERVER_H
#define ENGINE_OBSERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct limits;
struct outcome;
struct tenant;
struct why;

/* The way in which an observer makes an execution wait before it runs. */
struct engine_hold {
	void *what;			/* the observer's; NULL: it does not wait */
	/* To be called once after what was set, from the loop: the execution may run, or (error is
	 * -errno) ends as OUTCOME_AUDIT_UNAVAILABLE. Not after on_end. */
	void (*on_over)(struct engine_hold *hold, int error);
	/* The observer's, set with what: the execution is freed without an end. */
	void (*release)(struct engine_hold *hold);
};

/* Everything is borrowed, and valid during the call; hold until the execution's end. */
struct engine_event {
	struct engine_hold *hold;
	const struct tenant *tenant;
	const char *id;
	const char *script;
	size_t script_len;
	const char *profile;
	uint64_t disk_bytes;		/* the disk space that the execution may use */
	const struct limits *limits;
	bool internal, is_cell;		/* one of the service's own programs; of a session */
	/* Set at its end; 0 if it never ran. */
	uint64_t waited_us;		/* from the request until it ran */
	uint64_t ran_us;
};

/* A connection from a worker to the outside that has ended, or was refused. */
struct engine_connection {
	const char *tenant, *execution;	/* the tenant's principal; the execution's id */
	const char *verdict;		/* "carried", "denied-by-rule" ... */
	bool connected;			/* a connection to the outside was made */
	const char *host, *address;	/* from the script; no NUL follows; NULL: not known */
	size_t host_len, address_len;
	unsigned int port;
	uint64_t sent, received;	/* bytes */
	uint64_t milliseconds;
};

/* A script asks its user for a line (INPUT_ASKED); another value follows with the result. */
enum engine_input {
	INPUT_ASKED,
	INPUT_LINE,
	INPUT_DECLINED,
	INPUT_CANCELLED,		/* or there was no answer in time */
	INPUT_UNANSWERED,		/* its execution ended first */
	INPUT_NOBODY,			/* no user could be asked */
	INPUT_COUNT,
};

/* The name in the audit log and the metrics; NULL for INPUT_ASKED. Static. */
static inline const char *
engine_input_name(enum engine_input what)
{
	static const char *const names[INPUT_COUNT] = {
		[INPUT_LINE] = "line",
		[INPUT_DECLINED] = "declined",
		[INPUT_CANCELLED] = "cancelled",
		[INPUT_UNANSWERED] = "unanswered",
		[INPUT_NOBODY] = "nobody",
	};

	return names[what];
}

/* A call of another server's tool that has ended. */
struct engine_tool_call {
	const char *server;
	const char *tool;		/* NULL: the call was not sent, so the tool may not exist;
					 * or the server is the client itself, which may give its
					 * tools any names */
	unsigned int end;		/* as in struct outcome_tool_call, like the following */
	uint64_t ms, bytes;
};

struct engine_observer {
	/* Before it runs. 0, perhaps with event->hold->what; or -errno and why_r: it does not run,
	 * and execution_start returns that. */
	int (*on_start)(void *arg, const struct engine_event *event, struct why *why_r);
	/* Called once for each execution that was not refused, before its caller gets the outcome,
	 * so that its use counts when the caller starts the next execution. */
	void (*on_end)(void *arg, const struct engine_event *event,
		       const struct outcome *outcome);
	/* As on_end, but right after the outcome was delivered: for work that must not delay it. */
	void (*on_answered)(void *arg, const struct engine_event *event,
			    const struct outcome *outcome);
	/* Charges processor time that the tenant has used, also while something of it still runs.
	 * Returns what is left of its quota, in milliseconds: 0: what uses more is stopped;
	 * UINT64_MAX: it has no quota. */
	uint64_t (*on_cpu)(void *arg, const struct tenant *tenant, uint64_t cpu_ms);
	/* May be NULL. May be called after the end of its execution. */
	void (*on_connection)(void *arg, const struct engine_connection *connection);
	/* NULL: of no interest. */
	void (*on_input)(void *arg, enum engine_input what);
	/* NULL: of no interest. */
	void (*on_tool_call)(void *arg, const struct engine_tool_call *call);
	void *arg;
};

#endif
