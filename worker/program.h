/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's program in memory, and what runs in it. mcp-python-worker executes a copy of the
 * python3 program, with the worker's own code as a library that is loaded before all others: so
 * scripts run the machine code that they would run without a jail. A build that is linked with
 * libpython instead (configure --without-python-program; sanitizers) executes a copy of itself.
 */
#ifndef WORKER_PROGRAM_H
#define WORKER_PROGRAM_H

#include <stdbool.h>

#define PROGRAM "mcp-python-worker"

/* Environment variables for the dynamic linker, which scripts do not get. */
#define BIND_NOW "LD_BIND_NOW"		/* resolves all symbols now, and not in each worker again */
#define PRELOAD "LD_PRELOAD"		/* the worker's library */
/* The libraries of a Python in a directory of its own. What its program says of their place, such
 * as "$ORIGIN/../lib", is not true of a copy in memory. */
#define LIBRARIES "LD_LIBRARY_PATH"

/* Whether this process executes the sealed copy in memory. */
bool program_is_sealed(void);

/* In the sealed copy: the zygote, to its end. Returns the exit status. */
int program_run(void);

#endif
