/* SPDX-License-Identifier: Apache-2.0 */
/* Exit codes of mcp-python itself. It also uses the codes of sysexits(3). A script's own exit code,
 * or 128 + signal, is passed on unchanged. */
#ifndef CLIENT_EXITS_H
#define CLIENT_EXITS_H

#include <sysexits.h>

enum {
	EXIT_TIMEOUT = 124,	 /* as timeout(1) */
	EXIT_MEMORY_LIMIT = 137, /* 128 + SIGKILL, as a shell shows the kernel's kill */
	EXIT_CPU_LIMIT = 152,	 /* 128 + SIGXCPU */
	EXIT_SPACE_LIMIT = 153,	 /* 128 + SIGXFSZ: output or disk */
};

#endif
