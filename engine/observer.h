/* Who hears of every execution, and may refuse one: the engine itself knows nothing of
 * quotas and audit.
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

/* Everything is borrowed, and valid during the call. */
struct engine_event {
	const struct tenant *tenant;
	const char *id;
	const char *script;
	size_t script_len;
	const char *profile;
	uint64_t disk_bytes;		/* that the execution may use */
	const struct limits *limits;
	bool internal;			/* one of the service's own programs */
	/* When it is over; 0 of one that never ran. */
	uint64_t waited_us;		/* from being asked for until it ran */
	uint64_t ran_us;
};

/* A connection out of a worker that is over, or was refused. */
struct engine_connection {
	const char *tenant, *execution;	/* a principal, an id */
	const char *verdict;		/* "carried", "denied-by-rule" ... */
	bool connected;			/* to the outside, however it ended */
	const char *host, *address;	/* hostile, no NUL behind; NULL: not known */
	size_t host_len, address_len;
	unsigned int port;
	uint64_t sent, received;	/* bytes */
	uint64_t milliseconds;
};

/* A script asks its user for a line, and how that ends: one of the others follows INPUT_ASKED. */
enum engine_input {
	INPUT_ASKED,
	INPUT_LINE,
	INPUT_DECLINED,
	INPUT_CANCELLED,		/* or there was no answer in time */
	INPUT_UNANSWERED,		/* its execution ended first */
	INPUT_NOBODY,			/* could be asked */
	INPUT_COUNT,
};

/* As the audit log and the metrics have it; what is no end has none. Static. */
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

struct engine_observer {
	/* Before anything of it is run. 0, or -errno and why_r, which execution_start gives
	 * back: it is not run. */
	int (*on_start)(void *arg, const struct engine_event *event, struct why *why_r);
	/* Once for each that was let through, before its asker hears of it: what it used is
	 * to count when the asker starts the next one. */
	void (*on_end)(void *arg, const struct engine_event *event,
		       const struct outcome *outcome);
	/* The same, right after the answer was given: for what need not delay it. */
	void (*on_answered)(void *arg, const struct engine_event *event,
			    const struct outcome *outcome);
	/* NULL: of no interest. May come after the end of its execution. */
	void (*on_connection)(void *arg, const struct engine_connection *connection);
	/* NULL: of no interest. */
	void (*on_input)(void *arg, enum engine_input what);
	void *arg;
};

#endif
