/* What the two sides of the launcher know of each other.
 */
#ifndef HOST_LAUNCHER_PARTS_H
#define HOST_LAUNCHER_PARTS_H

#include <sys/types.h>

#include "host/launcher.h"

/* Of one program no more may live at once: one in use, one that takes its place. Of zygotes of
 * tenants' own so many for each. */
#define LAUNCHER_ALIVE_MAX 2

/* The rest of the launcher's life. supervisor: its parent; socket: to that, blocking. */
_Noreturn void launcher_live(const struct launcher_options *options, pid_t supervisor, int socket);

#endif
