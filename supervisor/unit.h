/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the unit of systemd that this process belongs to.
 */
#ifndef SUPERVISOR_UNIT_H
#define SUPERVISOR_UNIT_H

#include <stdbool.h>

#include "supervisor/arguments.h"

/* Is this process a system service? It is if the system's systemd, and not a user's manager, has
 * started it directly, and if it runs as root or has the capabilities that start-up needs. For a
 * system service a missing controller or capability is an error (host/startup.h). */
bool unit_is_system_service(void);

/* For ExecStopPost= of the unit. If the service has ended on request, does nothing: the remaining
 * processes are sessions that the next process of the service takes over. After any other end,
 * kills all remaining processes, before the service is started again. */
enum exit_code unit_sweep(void);

#endif
