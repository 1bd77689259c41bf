/* One worker's life behind its walls: init, which reaps and reports, and the script's
 * process, which waits for RUN and runs it.
 */
#ifndef WORKER_EXECUTION_H
#define WORKER_EXECUTION_H

#include <stdint.h>

#include "worker/jail.h"

/* Called in the new worker's first process, inside its jail: becomes init and makes the
 * script's process. serial: the worker's, for READY. */
_Noreturn void execution_live(const struct jail *jail, uint64_t serial);

#endif
