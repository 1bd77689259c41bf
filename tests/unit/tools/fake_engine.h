/* SPDX-License-Identifier: Apache-2.0 */
/* An engine for tests of the libraries above it. It starts no process; a script is a command to it.
 *
 *   hang                 no outcome until it is cancelled
 *   status NAME          an outcome of that status, with message and error
 *   flood N              N bytes 'x' on stdout
 *   bytes HH...          these bytes, in hex, as stdout
 *   json TEXT            TEXT as the JSON of the result, and as its repr
 *   names TEXT           TEXT as the names of the script, when they were asked for
 *   say TEXT             TEXT as output while it runs, then hang
 *   ask TEXT             TEXT as a question; the answer on stdout, or EOFError
 *   anything else        echoed on stdout; result 42
 *
 * Outcomes come from a later turn of the loop, as engine/execution.h says.
 */
#ifndef TESTS_UNIT_TOOLS_FAKE_ENGINE_H
#define TESTS_UNIT_TOOLS_FAKE_ENGINE_H

#include "engine/engine.h"
#include "engine/execution.h"
#include "engine/observer.h"

struct fake_record {
	unsigned int started, cancelled, answered, unwatched, alive, tenants_held;
	enum cancel_reason last_reason;
	char last_args[256];		/* joined by '|' */
	char last_stdin[64], last_profile[64];
	char last_imports[4096];	/* joined by ' '; "any" */
	char last_globals[256];
	struct limits last_limits;
	unsigned int input[INPUT_COUNT];
};

/* The events in the engine so far. */
const struct fake_record *fake_engine_record(void);

struct event_base *fake_engine_base(const struct engine *engine);

/* Sets the versions of profiles' interpreters: an array whose last item has no profile. From then
 * on the service's own programs that look at environments and metadata have answers: there are no
 * packages, and the only metadata is requires-python = '...'. NULL, as at first: these programs
 * are scripts like all others. */
struct fake_python {
	const char *profile, *version;
};
void fake_engine_pythons(const struct fake_python *pythons);

/* Sets the answers (JSON) of the service's own programs, in this order, up to NULL; the last one is
 * repeated. They take precedence over fake_engine_pythons. NULL, as at first: there are none.
 * Borrowed. */
void fake_engine_answers(const char *const *answers);

/* The most that a session's memory can be raised to. */
#define FAKE_MEMORY_MOST (1U << 30)

/* Sessions that were opened and not closed. */
unsigned int fake_repls_open(void);

/* Are copies of sessions' states being made? */
bool fake_repls_copying(void);

/* Copies of sessions' states take so long from now on; 0, as at first: they are told of at once. */
void fake_repls_copy_in(unsigned int ms);

#endif
