/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher's two sides: launcher.c in the supervisor, launcher_process.c in the launcher.
 */
#ifndef HOST_LAUNCHER_PARTS_H
#define HOST_LAUNCHER_PARTS_H

#include <sys/types.h>

#include "host/launcher.h"

/* Processes of one program that may live at once: one in use, and one that takes its place. Of
 * zygotes of a tenant's own, so many for each tenant. */
#define LAUNCHER_ALIVE_MAX 2

/* The launcher: serves orders on socket, which blocks, until the supervisor closes its end. */
_Noreturn void launcher_live(const struct launcher_options *options, pid_t supervisor, int socket);

#endif
