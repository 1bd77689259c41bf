/* SPDX-License-Identifier: Apache-2.0 */
/* The program of workers, a sealed copy in memory. mcp-python-worker executes a copy of the python3
 * program, with the worker's own code as a library that is loaded before all others. So scripts run
 * the same machine code as without a jail. A build that is linked with libpython instead (configure
 * --without-python-program; sanitizers) executes a copy of itself.
 */
#ifndef WORKER_PROGRAM_H
#define WORKER_PROGRAM_H

#include <stdbool.h>

#define PROGRAM "mcp-python-worker"

/* Environment variables for the dynamic linker, which scripts do not get. */
#define BIND_NOW "LD_BIND_NOW"		/* resolves all symbols now, instead of in each worker */
#define PRELOAD "LD_PRELOAD"		/* the worker's library */
/* The libraries of a Python in a directory of its own. The path in its program, such as
 * "$ORIGIN/../lib", is wrong for a copy in memory. */
#define LIBRARIES "LD_LIBRARY_PATH"

/* Does this process execute the sealed copy in memory? */
bool program_is_sealed(void);

/* The arguments of the sealed copy: one of these, and the path of the Python's program. */
#define PROGRAM_ZYGOTE "--zygote"
#define PROGRAM_IN_ROOT "--zygote-in-root"	/* "/" is the Python's own root */

/* In the sealed copy, with main()'s arguments: runs the zygote until it ends. Returns the exit
 * status. */
int program_run(int argc, char **argv);

#endif
