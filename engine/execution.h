/* SPDX-License-Identifier: Apache-2.0 */
/* One execution, from the call that asked for it to its single answer.
 *
 * Tools use only this header and the headers that it includes: they start an execution, may watch
 * its output and cancel it, and get exactly one outcome. They do not see the scheduler's queues,
 * the pool, or the worker.
 * Runs in the supervisor; never blocks.
 */
#ifndef ENGINE_EXECUTION_H
#define ENGINE_EXECUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/outcome.h"
#include "engine/request.h"
#include "engine/running.h"

struct engine;
struct execution;
struct tenant;
struct why;

/* Starts an execution. The request is copied. Returns 0 and *execution_r (borrowed: valid until
 * on_outcome returns). Or fills why_r and returns -ENOENT: the profile is not configured; -EACCES:
 * the tenant may not use the profile; -EFBIG: the profile's disk has no room for the input files;
 * -EINVAL: a stored file or the volume cannot be mounted; -ESRCH: the session has ended; or the
 * error of engine_observer.on_start. A full queue is not an error, and neither is a keeper that is
 * away: the outcome is OUTCOME_OVERLOADED. */
int execution_start(struct engine *engine, struct tenant *tenant,
		    const struct execution_request *request,
		    const struct execution_watcher *watcher,
		    struct execution **execution_r, struct why *why_r);

/* Stops the execution. on_outcome still follows, once, with OUTCOME_CANCELLED, or with the status
 * of an end that came first. A cell gets KeyboardInterrupt first, and is killed if it has not ended
 * two seconds later; at shutdown, and for CANCEL_SESSION_ENDED, it is killed at once. Safe to call
 * twice. */
void execution_cancel(struct execution *execution, enum cancel_reason reason);

/* Reports the result of a prompt to the engine's observer; only the code that asks the user knows
 * it. */
enum engine_input;
void engine_tell_input(const struct engine *engine, enum engine_input what);

/* From now on no callback is called. The execution continues, unless execution_cancel was called
 * before. */
void execution_unwatch(struct execution *execution);

const char *execution_id(const struct execution *execution);

#endif
