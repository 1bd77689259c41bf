/* SPDX-License-Identifier: Apache-2.0 */
/* An engine for tests of what is above it: no processes; a script is a command to it.
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

/* What happened in the engine so far. */
const struct fake_record *fake_engine_record(void);

struct event_base *fake_engine_base(const struct engine *engine);

/* The versions of profiles' interpreters, an array whose last item has no profile. With it our
 * own programs that look at environments and metadata are answered: packages there are none,
 * and of metadata there is requires-python = '...' alone. NULL, as at first: they are scripts
 * as all others. */
struct fake_python {
	const char *profile, *version;
};
void fake_engine_pythons(const struct fake_python *pythons);

/* What programs of ours answer, JSON, one after the other up to NULL; the last one goes on
 * answering. Before fake_engine_pythons; NULL, as at first: nothing is answered so. Borrowed. */
void fake_engine_answers(const char *const *answers);

/* The most that a session's memory can be raised to. */
#define FAKE_MEMORY_MOST (1U << 30)

/* Sessions that were opened and not closed. */
unsigned int fake_repls_open(void);

#endif
