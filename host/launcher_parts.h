/* SPDX-License-Identifier: Apache-2.0 */
/* The two sides of the launcher: launcher.c in the supervisor, launcher_process.c in the launcher.
 */
#ifndef HOST_LAUNCHER_PARTS_H
#define HOST_LAUNCHER_PARTS_H

#include <sys/types.h>

#include "host/launcher.h"

/* How many processes of one program may exist at the same time: the one in use, and its successor.
 * If each tenant of a profile has its own zygote, each tenant may have this number. */
#define LAUNCHER_ALIVE_MAX 2

/* The launcher: a helper_live_fn. options: struct launcher_options. Serves orders on socket, until
 * the supervisor closes its end. */
_Noreturn void launcher_live(const void *options, int socket, pid_t supervisor);

#endif
